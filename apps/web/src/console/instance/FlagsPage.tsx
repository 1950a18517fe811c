// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import type { FeatureFlag, Id } from "../../api/types";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { useResource } from "../../client/useResource";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { Choice, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Icon } from "../../ui/Icon";
import { Nothing, Page, Row, Rows, Tag } from "../../ui/Page";
import styles from "../console.module.css";
import { useMember } from "../directory";
import { MemberMark, MemberName } from "../MemberMark";
import { MemberPicker } from "../MemberPicker";

type FlagState = components["schemas"]["FlagState"];

/** What is being tried out, and by whom. */
export function FlagsPage() {
  const { api } = useAccount();
  const [editing, setEditing] = useState<FeatureFlag>();
  const flags = useResource("flags", async (signal) => body(await api.GET("/instance/flags", { signal })).items);
  return (
    <Page title="Feature flags" lead="Parts of the product that can be turned on for some before they are on for all.">
      <LoadedView loaded={flags.loaded} onRetry={flags.reload}>
        {(items) =>
          items.length === 0 ? (
            <Nothing>Nothing is being tried out in this version.</Nothing>
          ) : (
            <Rows label="Flags">
              {items.map((flag) => (
                <Row
                  key={flag.key}
                  mark={<Icon name="flag" />}
                  title={
                    <>
                      {flag.summary}
                      <StateTag flag={flag} />
                    </>
                  }
                  note={
                    <>
                      {reach(flag)} · <span className={styles.value}>{flag.key}</span>
                    </>
                  }
                  end={
                    <Button onClick={() => setEditing(flag)} aria-label={`Change ${flag.key}`}>
                      Change
                    </Button>
                  }
                />
              ))}
            </Rows>
          )
        }
      </LoadedView>
      {editing === undefined ? null : (
        <FlagDialog
          flag={editing}
          onClose={() => setEditing(undefined)}
          onSaved={(flag) => flags.put((items) => items.map((each) => (each.key === flag.key ? flag : each)))}
        />
      )}
    </Page>
  );
}

function StateTag({ flag }: { readonly flag: FeatureFlag }) {
  if (flag.state === "on") return <Tag tone="ok">on</Tag>;
  return flag.state === "off" ? <Tag>off</Tag> : <Tag tone="warn">for some</Tag>;
}

/** For whom a flag is on, in words. */
export function reach({ state, people, groups, percent }: FeatureFlag): string {
  if (state === "on") return "For everybody, agents too";
  if (state === "off") return "For nobody";
  const parts = [
    people.length === 0 ? undefined : people.length === 1 ? "one person" : `${people.length} people`,
    groups.length === 0 ? undefined : groups.length === 1 ? "one group" : `${groups.length} groups`,
    percent === 0 ? undefined : `${percent} % of everybody`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? "For nobody yet" : `For ${parts.join(", ")}`;
}

interface DialogProps {
  readonly flag: FeatureFlag;
  readonly onClose: () => void;
  readonly onSaved: (flag: FeatureFlag) => void;
}

function FlagDialog({ flag, onClose, onSaved }: DialogProps) {
  const { api } = useAccount();
  const submit = useSubmit();
  const [state, setState] = useState<FlagState>(flag.state);
  const [people, setPeople] = useState<readonly Id[]>(flag.people);
  const [groups, setGroups] = useState<readonly Id[]>(flag.groups);
  const [percent, setPercent] = useState(String(flag.percent));
  const save = async () => {
    const saved = await submit.run(async () => {
      const change = {
        state,
        ...(state === "rollout"
          ? { people: [...people], groups: [...groups], percent: Math.trunc(Number(percent) || 0) }
          : {}),
      };
      const params = { path: { key: flag.key }, header: { "If-Match": `"${flag.version}"` } };
      onSaved(body(await api.PATCH("/instance/flags/{key}", { params, body: change })));
    });
    if (saved) onClose();
    return saved;
  };
  return (
    <Dialog title={flag.summary} onClose={onClose}>
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
        <Choice<FlagState>
          legend="On for"
          value={state}
          onChange={setState}
          options={[
            { value: "off", label: "Nobody" },
            { value: "rollout", label: "Some", hint: "People and groups you name, and a part of everybody else." },
            { value: "on", label: "Everybody" },
          ]}
        />
        {state === "rollout" ? (
          <>
            <MemberPicker
              label="Add a person or a group"
              kinds={["person"]}
              groups
              without={new Set([...people, ...groups])}
              onPick={(member) =>
                member.group ? setGroups([...groups, member.id]) : setPeople([...people, member.id])
              }
              error={submit.faultOf("/people") ?? submit.faultOf("/groups")}
            />
            {people.length + groups.length === 0 ? null : (
              <Rows label="Named">
                {[...groups, ...people].map((id) => (
                  <NamedRow
                    key={id}
                    id={id}
                    onRemove={() => {
                      setPeople(people.filter((each) => each !== id));
                      setGroups(groups.filter((each) => each !== id));
                    }}
                  />
                ))}
              </Rows>
            )}
            <TextField
              label="Part of everybody, in percent"
              type="number"
              inputMode="numeric"
              min={0}
              max={100}
              value={percent}
              onChange={(event) => setPercent(event.target.value)}
              hint="The same people stay in it when the number grows."
              error={submit.faultOf("/percent")}
            />
          </>
        ) : null}
      </Form>
    </Dialog>
  );
}

function NamedRow({ id, onRemove }: { readonly id: Id; readonly onRemove: () => void }) {
  const member = useMember(id);
  return (
    <Row
      mark={<MemberMark member={member} />}
      title={<MemberName member={member} />}
      end={<Button onClick={onRemove}>Remove</Button>}
    />
  );
}
