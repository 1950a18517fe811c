// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { useResource } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { TextField } from "../../ui/Field";
import { Nothing, Page, Row, Rows, Section, Tag } from "../../ui/Page";
import styles from "../console.module.css";
import { SettingDialog } from "./SettingDialog";
import { settingName, valueWords } from "./settingWords";

type Settings = components["schemas"]["InstanceSettings"];

/** The settings of the instance, module by module. */
export function InstancePage() {
  const { api } = useAccount();
  const [text, setText] = useState("");
  const [editing, setEditing] = useState<string>();
  const settings = useResource<Settings>("instance settings", async (signal) =>
    body(await api.GET("/instance/settings", { signal })),
  );
  return (
    <Page title="Settings" lead="Rules of this instance. They count at once for everybody; each has a safe default.">
      <div className={styles.filter}>
        <TextField
          label="Search"
          type="search"
          placeholder="Word or key"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      <LoadedView loaded={settings.loaded} onRetry={settings.reload} rows={6}>
        {(value) => (
          <>
            <Modules settings={value} text={text.trim().toLocaleLowerCase()} onEdit={setEditing} />
            {editing === undefined ? null : (
              <SettingDialog
                name={editing}
                settings={value}
                onClose={() => setEditing(undefined)}
                onSaved={(next) => settings.put(() => next)}
                onConflict={settings.reload}
              />
            )}
          </>
        )}
      </LoadedView>
    </Page>
  );
}

interface ModulesProps {
  readonly settings: Settings;
  readonly text: string;
  readonly onEdit: (key: string) => void;
}

function Modules({ settings, text, onEdit }: ModulesProps) {
  const keys = Object.keys(settings.schema)
    .filter((key) => `${key} ${settingName(key)}`.toLocaleLowerCase().includes(text))
    .sort();
  const modules = [...new Set(keys.map((key) => settings.schema[key]?.module ?? ""))].sort();
  if (keys.length === 0) return <Nothing>No setting has this in its name.</Nothing>;
  return modules.map((module) => (
    <Section key={module} title={module.charAt(0).toUpperCase() + module.slice(1)}>
      <Rows label={module}>
        {keys
          .filter((key) => settings.schema[key]?.module === module)
          .map((key) => (
            <SettingRow key={key} name={key} settings={settings} onEdit={() => onEdit(key)} />
          ))}
      </Rows>
    </Section>
  ));
}

interface RowProps {
  readonly name: string;
  readonly settings: Settings;
  readonly onEdit: () => void;
}

function SettingRow({ name, settings, onEdit }: RowProps) {
  const schema = settings.schema[name];
  if (schema === undefined) return null;
  const value = settings.values[name];
  const changed = JSON.stringify(value) !== JSON.stringify(schema.default);
  return (
    <Row
      title={
        <>
          {settingName(name)}
          {changed ? <Tag tone="ok">changed</Tag> : null}
          {schema.sensitive ? <Tag>asks for a proof</Tag> : null}
        </>
      }
      note={
        <>
          {valueWords(schema.type, value)}
          {changed ? ` · default ${valueWords(schema.type, schema.default)}` : ""}
          {" · "}
          <span className={styles.value}>{name}</span>
        </>
      }
      end={
        <Button onClick={onEdit} aria-label={`Change ${settingName(name)}`}>
          Change
        </Button>
      }
    />
  );
}
