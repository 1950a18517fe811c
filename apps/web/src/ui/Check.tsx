// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, useId } from "react";
import styles from "./Field.module.css";
import { Icon } from "./Icon";

interface CheckProps {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onChange: (checked: boolean) => void;
}

/** Something that is on or off. */
export function Check({ label, hint, checked, disabled = false, onChange }: CheckProps) {
  return (
    <label className={styles.check} data-disabled={disabled}>
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>
        {label}
        {hint === undefined ? null : <small>{hint}</small>}
      </span>
    </label>
  );
}

interface ChecksProps<T extends string> {
  readonly legend: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  readonly value: readonly T[];
  readonly onChange: (value: readonly T[]) => void;
  readonly options: readonly { readonly value: T; readonly label: string; readonly hint?: ReactNode }[];
}

/** Several of a few. */
export function Checks<T extends string>({ legend, hint, error, value, onChange, options }: ChecksProps<T>) {
  const id = useId();
  const note = error ?? hint;
  return (
    <fieldset
      className={styles.choice}
      aria-describedby={note === undefined ? undefined : id}
      aria-invalid={error !== undefined}
      tabIndex={-1}
    >
      <legend>{legend}</legend>
      {note === undefined ? null : (
        <p id={id} className={error === undefined ? styles.hint : styles.error}>
          {error === undefined ? null : <Icon name="warning-circle" size={16} />}
          {note}
        </p>
      )}
      {options.map((option) => (
        <Check
          key={option.value}
          label={option.label}
          hint={option.hint}
          checked={value.includes(option.value)}
          onChange={(checked) =>
            onChange(checked ? [...value, option.value] : value.filter((each) => each !== option.value))
          }
        />
      ))}
    </fieldset>
  );
}
