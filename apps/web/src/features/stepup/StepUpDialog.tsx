// SPDX-License-Identifier: Apache-2.0
import { type FormEvent, useState } from "react";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";

interface Props {
  /** Proves the password; throws when it is wrong. */
  readonly prove: (password: string) => Promise<void>;
  readonly onDone: (proved: boolean) => void;
}

/** Asks for the password once more; the interrupted request goes on by itself. */
export function StepUpDialog({ prove, onDone }: Props) {
  const submit = useSubmit();
  const [password, setPassword] = useState("");
  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    if (await submit.run(() => prove(password))) onDone(true);
  };
  return (
    <Dialog title="Is it really you?" onClose={() => onDone(false)}>
      <form onSubmit={onSubmit}>
        <TextField
          label="Password"
          type="password"
          autoComplete="current-password"
          autoFocus
          required
          value={password}
          onChange={(event) => setPassword(event.target.value)}
          hint="What you are about to do needs a fresh proof. It counts for five minutes."
          error={submit.error}
        />
        <DialogActions>
          <Button onClick={() => onDone(false)}>Cancel</Button>
          <Button type="submit" tone="primary" busy={submit.busy}>
            Confirm
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
