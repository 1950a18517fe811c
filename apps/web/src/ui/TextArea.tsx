// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, type TextareaHTMLAttributes, useId } from "react";
import styles from "./Field.module.css";
import { Icon } from "./Icon";

interface Props extends Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "className" | "id"> {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
}

/** Several lines of text with their name above, and below them a hint or what is wrong. */
export function TextArea({ label, hint, error, rows = 3, ...rest }: Props) {
  const id = useId();
  const note = error ?? hint;
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      <div className={styles.box} data-invalid={error !== undefined}>
        <textarea
          {...rest}
          id={id}
          rows={rows}
          dir="auto"
          aria-invalid={error !== undefined}
          aria-describedby={note === undefined ? undefined : `${id}-note`}
        />
      </div>
      {note === undefined ? null : (
        <p id={`${id}-note`} className={error === undefined ? styles.hint : styles.error}>
          {error === undefined ? null : <Icon name="warning-circle" size={16} />}
          {note}
        </p>
      )}
    </div>
  );
}
