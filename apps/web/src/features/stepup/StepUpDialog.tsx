// SPDX-License-Identifier: Apache-2.0
import { type FormEvent, useEffect, useState } from "react";
import type { StepUpMethods, StepUpProofs } from "../../auth/stepUp";
import { useSubmit, wordsFor } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Notice } from "../../ui/Notice";
import styles from "./StepUpDialog.module.css";

interface Props {
  readonly proofs: StepUpProofs;
  readonly onDone: (proved: boolean) => void;
}

const why = "What you are about to do needs a fresh proof. It counts for five minutes.";

/** Asks the person once more, by passkey or password; the interrupted request goes on by itself. */
export function StepUpDialog({ proofs, onDone }: Props) {
  const [methods, setMethods] = useState<StepUpMethods>();
  const [trouble, setTrouble] = useState<string>();
  useEffect(() => {
    let open = true;
    proofs.methods().then(
      (found) => open && setMethods(found),
      (cause) => open && setTrouble(wordsFor(cause)),
    );
    return () => {
      open = false;
    };
  }, [proofs]);
  const cancel = () => onDone(false);
  const close = (
    <DialogActions>
      <Button onClick={cancel}>Close</Button>
    </DialogActions>
  );
  return (
    <Dialog title="Is it really you?" onClose={cancel}>
      {trouble === undefined ? null : (
        <>
          <Notice>{trouble}</Notice>
          {close}
        </>
      )}
      {methods === undefined ? null : methods.passkey ? (
        <PasskeyProof proofs={proofs} onDone={onDone} />
      ) : methods.password ? null : (
        <>
          <Notice>
            You have neither a passkey nor a password on this account yet. Sign out, sign in again, and add one.
          </Notice>
          {close}
        </>
      )}
      {methods?.password === true ? <PasswordProof proofs={proofs} second={methods.passkey} onDone={onDone} /> : null}
    </Dialog>
  );
}

function PasskeyProof({ proofs, onDone }: Props) {
  const submit = useSubmit();
  return (
    <div className={styles.way}>
      <p>{why}</p>
      <Button
        icon="key"
        tone="primary"
        busy={submit.busy}
        autoFocus
        onClick={async () => {
          if (await submit.run(proofs.passkey)) onDone(true);
        }}
      >
        Use a passkey
      </Button>
      {submit.error === undefined ? null : <p role="alert">{submit.error}</p>}
    </div>
  );
}

/** The password stands behind the passkey where there are both. */
function PasswordProof({ proofs, second, onDone }: Props & { readonly second: boolean }) {
  const submit = useSubmit();
  const [password, setPassword] = useState("");
  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    if (await submit.run(() => proofs.password(password))) onDone(true);
  };
  return (
    <form onSubmit={onSubmit}>
      <TextField
        label={second ? "Or your password" : "Password"}
        type="password"
        autoComplete="current-password"
        autoFocus={!second}
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        hint={second ? undefined : why}
        error={submit.error}
      />
      <DialogActions>
        <Button onClick={() => onDone(false)}>Cancel</Button>
        <Button type="submit" tone={second ? "plain" : "primary"} busy={submit.busy}>
          Confirm
        </Button>
      </DialogActions>
    </form>
  );
}
