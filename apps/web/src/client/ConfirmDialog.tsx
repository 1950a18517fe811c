// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, useState } from "react";
import { Button } from "../ui/Button";
import { Dialog, DialogActions } from "../ui/Dialog";
import { TextField } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { useSubmit } from "./useSubmit";

interface Props {
  readonly title: string;
  /** What happens, in sentences. */
  readonly children: ReactNode;
  /** Words of the button that does it. */
  readonly action: string;
  readonly tone?: "primary" | "danger";
  /** Has to be typed before the button acts; only for what cannot be undone. */
  readonly typed?: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
  /** What happens after success instead of closing. */
  readonly onDone?: () => void;
}

/** Names an act and its consequences, and does it. Closes itself after success. */
export function ConfirmDialog({
  title,
  children,
  action,
  tone = "danger",
  typed,
  onConfirm,
  onClose,
  onDone = onClose,
}: Props) {
  const submit = useSubmit();
  const [text, setText] = useState("");
  const ready = typed === undefined || text.trim() === typed;
  const act = async () => {
    if (ready && (await submit.run(onConfirm))) onDone();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <div>{children}</div>
      {typed === undefined ? null : (
        <TextField
          label={`Type ${typed} to go on`}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      )}
      {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button tone={tone} busy={submit.busy} disabled={!ready} onClick={() => void act()}>
          {action}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
