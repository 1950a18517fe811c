// SPDX-License-Identifier: Apache-2.0
import { type InputHTMLAttributes, type ReactNode, type Ref, useId, useState } from "react";
import { IconButton } from "./Button";
import styles from "./Field.module.css";
import { Icon } from "./Icon";

type Native = Omit<InputHTMLAttributes<HTMLInputElement>, "className" | "id">;

interface TextFieldProps extends Native {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly prefix?: string;
  readonly ref?: Ref<HTMLInputElement>;
}

/** One line of text with its name above, and below it a hint or what is wrong. */
export function TextField({ label, hint, error, prefix, type, ...rest }: TextFieldProps) {
  const id = useId();
  const [shown, setShown] = useState(false);
  const secret = type === "password";
  const note = error ?? hint;
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      <div className={styles.box} data-invalid={error !== undefined}>
        {prefix === undefined ? null : <span aria-hidden="true">{prefix}</span>}
        <input
          {...rest}
          id={id}
          type={secret && shown ? "text" : type}
          aria-invalid={error !== undefined}
          aria-describedby={note === undefined ? undefined : `${id}-note`}
        />
        {secret ? (
          <IconButton
            icon={shown ? "eye-slash" : "eye"}
            label={shown ? "Hide password" : "Show password"}
            tip="none"
            onClick={() => setShown(!shown)}
          />
        ) : null}
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

interface ChoiceProps<T extends string> {
  readonly legend: string;
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly options: readonly {
    readonly value: T;
    readonly label: string;
    readonly hint?: string;
    readonly disabled?: boolean;
  }[];
}

/** One of a few, each with a sentence of its own. */
export function Choice<T extends string>({ legend, value, onChange, options }: ChoiceProps<T>) {
  const name = useId();
  return (
    <fieldset className={styles.choice}>
      <legend>{legend}</legend>
      {options.map((option) => (
        <label key={option.value} data-disabled={option.disabled === true}>
          <input
            type="radio"
            name={name}
            checked={option.value === value}
            disabled={option.disabled}
            onChange={() => onChange(option.value)}
          />
          <span>
            {option.label}
            {option.hint === undefined ? null : <small>{option.hint}</small>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly { readonly value: string; readonly label: string }[];
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
}

/** One of many, by the picker of the platform. */
export function Select({ label, value, onChange, options, hint, error }: SelectProps) {
  const id = useId();
  const note = error ?? hint;
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      <div className={styles.box} data-invalid={error !== undefined}>
        <select
          id={id}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          aria-invalid={error !== undefined}
          aria-describedby={note === undefined ? undefined : `${id}-note`}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
        <Icon name="caret-down" size={16} className={styles.caret} />
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

/** A secret that is shown once, with a way to copy it. */
export function CopyField({
  label,
  value,
  hint,
}: {
  readonly label: string;
  readonly value: string;
  readonly hint?: string;
}) {
  const id = useId();
  const [copied, setCopied] = useState(false);
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      <div className={styles.box}>
        <input id={id} readOnly value={value} className={styles.code} onFocus={(event) => event.target.select()} />
        <IconButton
          icon={copied ? "check" : "copy"}
          label={copied ? "Copied" : `Copy ${label.toLowerCase()}`}
          onClick={async () => {
            await navigator.clipboard.writeText(value);
            setCopied(true);
          }}
        />
      </div>
      {hint === undefined ? null : <p className={styles.hint}>{hint}</p>}
    </div>
  );
}
