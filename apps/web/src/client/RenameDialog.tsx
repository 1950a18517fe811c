// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { Button } from "../ui/Button";
import { Dialog, DialogActions } from "../ui/Dialog";
import { TextField } from "../ui/Field";
import { Form } from "../ui/Form";
import { useSubmit } from "./useSubmit";

interface Props {
  readonly title: string;
  readonly name: string;
  readonly onSave: (name: string) => Promise<void>;
  readonly onClose: () => void;
}

/** Gives a thing of one's own another name. */
export function RenameDialog({ title, name, onSave, onClose }: Props) {
  const submit = useSubmit();
  const [text, setText] = useState(name);
  const save = async () => {
    const saved = await submit.run(() => onSave(text.trim()), { "/name": text });
    if (saved) onClose();
    return saved;
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        onSubmit={save}
        error={submit.error}
        actions={
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone="primary" busy={submit.busy}>
              Save
            </Button>
          </DialogActions>
        }
      >
        <TextField
          label="Name"
          maxLength={60}
          autoComplete="off"
          dir="auto"
          value={text}
          onChange={(event) => setText(event.target.value)}
          error={submit.faultOf("/name")}
        />
      </Form>
    </Dialog>
  );
}
