// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import { useAccount } from "../../client/Account";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Check } from "../../ui/Check";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { Choice, Select, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { TextArea } from "../../ui/TextArea";
import { rangeWords, settingName, splitDuration, type Unit, unitNames, unitSize, valueWords } from "./settingWords";

type Settings = components["schemas"]["InstanceSettings"];
type Schema = components["schemas"]["SettingSchema"];

interface Props {
  readonly name: string;
  readonly settings: Settings;
  readonly onClose: () => void;
  readonly onSaved: (settings: Settings) => void;
  /** Somebody else saved first. */
  readonly onConflict: () => void;
}

/** Changes one setting. */
export function SettingDialog({ name, settings, onClose, onSaved, onConflict }: Props) {
  const { api, announcer } = useAccount();
  const submit = useSubmit();
  const schema = settings.schema[name];
  const [value, setValue] = useState<unknown>(settings.values[name]);
  if (schema === undefined) return null;
  const atDefault = JSON.stringify(settings.values[name]) === JSON.stringify(schema.default);

  const write = async (next: unknown) => {
    const saved = await submit.run(async () => {
      const answer = body(
        await api.PATCH("/instance/settings", {
          params: { header: { "If-Match": `"${settings.version}"` } },
          // A list is written line by line; empty lines are no values.
          body: { [name]: Array.isArray(next) ? next.map((each) => String(each).trim()).filter(Boolean) : next },
        }),
      );
      onSaved(answer);
      announcer.say("Saved");
    });
    if (saved) onClose();
    return saved;
  };

  return (
    <Dialog title={settingName(name)} onClose={onClose}>
      <Form
        onSubmit={() => write(value)}
        error={submit.error}
        actions={
          <DialogActions>
            {atDefault ? null : (
              <Button onClick={() => void write(null)}>Back to {valueWords(schema.type, schema.default)}</Button>
            )}
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone="primary" busy={submit.busy}>
              Save
            </Button>
          </DialogActions>
        }
      >
        <SettingField schema={schema} value={value} onChange={setValue} error={submit.faultOf(`/${name}`)} />
        {submit.error !== undefined && submit.faults.length === 0 ? (
          <Button onClick={onConflict}>Load what counts now</Button>
        ) : null}
      </Form>
    </Dialog>
  );
}

interface FieldProps {
  readonly schema: Schema;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly error: string | undefined;
}

function SettingField({ schema, value, onChange, error }: FieldProps) {
  const range = schema.range as { min?: number; max?: number; values?: string[] } | undefined;
  const hint = [rangeWords(schema.type, range), `Default: ${valueWords(schema.type, schema.default)}.`]
    .filter((part) => part !== undefined)
    .join(" ");
  switch (schema.type) {
    case "bool":
      return <Check label="On" hint={hint} checked={value === true} onChange={onChange} />;
    case "enum":
      return (
        <Choice
          legend="Value"
          value={String(value)}
          onChange={onChange}
          options={(range?.values ?? []).map((each) => ({ value: each, label: each }))}
        />
      );
    case "duration":
      return <DurationField value={Number(value)} onChange={onChange} hint={hint} error={error} />;
    case "int":
      return (
        <TextField
          label="Value"
          type="number"
          inputMode="numeric"
          value={String(value)}
          onChange={(event) => onChange(Math.trunc(Number(event.target.value)))}
          hint={hint}
          error={error}
        />
      );
    case "string_list":
      return (
        <TextArea
          label="Values, one per line"
          value={(Array.isArray(value) ? value : []).join("\n")}
          onChange={(event) => onChange(event.target.value.split("\n"))}
          hint={hint}
          error={error}
        />
      );
    default:
      return (
        <TextField
          label="Value"
          value={String(value ?? "")}
          onChange={(event) => onChange(event.target.value)}
          hint={hint}
          error={error}
        />
      );
  }
}

interface DurationProps {
  readonly value: number;
  readonly onChange: (value: number) => void;
  readonly hint: string;
  readonly error: string | undefined;
}

function DurationField({ value, onChange, hint, error }: DurationProps) {
  const [unit, setUnit] = useState<Unit>(splitDuration(value).unit);
  return (
    <>
      <TextField
        label="Amount"
        type="number"
        inputMode="numeric"
        min={0}
        value={String(value / unitSize[unit])}
        onChange={(event) => onChange(Math.round(Number(event.target.value) * unitSize[unit]))}
        hint={hint}
        error={error}
      />
      <Select
        label="Unit"
        value={unit}
        onChange={(next) => {
          const amount = value / unitSize[unit];
          setUnit(next as Unit);
          onChange(Math.round(amount * unitSize[next as Unit]));
        }}
        options={Object.entries(unitNames).map(([each, label]) => ({ value: each, label }))}
      />
    </>
  );
}
