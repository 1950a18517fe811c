// SPDX-License-Identifier: Apache-2.0
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button } from "../../ui/Button";
import styles from "./EditBox.module.css";
import { isComposing } from "./ime";

interface Props {
  readonly text: string;
  readonly onSave: (text: string) => void;
  readonly onCancel: () => void;
}

/** Changes the text of one message. It belongs to this message alone and never mixes with the composer. */
export function EditBox({ text, onSave, onCancel }: Props) {
  const [draft, setDraft] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    const box = field.current;
    box?.focus();
    box?.setSelectionRange(box.value.length, box.value.length);
  }, []);

  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    event.stopPropagation();
    if (isComposing(event)) return;
    if (event.key === "Escape") onCancel();
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      onSave(draft);
    }
  };

  return (
    <div className={styles.box}>
      <textarea
        ref={field}
        aria-label="Edit message"
        dir="auto"
        rows={Math.min(12, draft.split("\n").length + 1)}
        value={draft}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div>
        <Button tone="quiet" onClick={onCancel}>
          Cancel
        </Button>
        <Button tone="primary" onClick={() => onSave(draft)} disabled={draft.trim() === ""}>
          Save
        </Button>
      </div>
    </div>
  );
}
