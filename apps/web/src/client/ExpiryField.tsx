// SPDX-License-Identifier: Apache-2.0
import { Select, TextField } from "../ui/Field";
import { type ExpiryChoice, expiryWords } from "./expiry";

/** What was chosen: a span or a moment. */
export interface ExpiryValue {
  readonly choice: ExpiryChoice;
  /** Value of the date field. */
  readonly at: string;
}

interface Props {
  readonly label: string;
  readonly value: ExpiryValue;
  readonly onChange: (value: ExpiryValue) => void;
  readonly choices: readonly ExpiryChoice[];
  readonly hint?: string;
  readonly error?: string | undefined;
}

/** Asks when something ends. */
export function ExpiryField({ label, value, onChange, choices, hint, error }: Props) {
  const named = value.choice === "at";
  return (
    <>
      <Select
        label={label}
        value={value.choice}
        onChange={(choice) => onChange({ ...value, choice: choice as ExpiryChoice })}
        options={choices.map((choice) => ({ value: choice, label: expiryWords[choice] }))}
        hint={hint}
        error={named ? undefined : error}
      />
      {named ? (
        <TextField
          label="Moment"
          type="datetime-local"
          value={value.at}
          onChange={(event) => onChange({ ...value, at: event.target.value })}
          error={error}
        />
      ) : null}
    </>
  );
}
