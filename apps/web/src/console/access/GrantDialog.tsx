// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import type { Capability, Grant, Id, Level, Target } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ExpiryField, type ExpiryValue } from "../../client/ExpiryField";
import { expiryOf, localValue } from "../../client/expiry";
import { Button } from "../../ui/Button";
import { Checks } from "../../ui/Check";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { Choice, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Row, Rows } from "../../ui/Page";
import { type Member, placeName, useKnown, useMember } from "../directory";
import { MemberMark, MemberName } from "../MemberMark";
import { MemberPicker } from "../MemberPicker";
import { capabilities, capabilityWords, isStrong, levelSentences, levels } from "../rights";
import { I1Ways } from "./I1Ways";
import { Preview } from "./Preview";
import { useI1 } from "./useI1";

interface Props {
  readonly target: Target;
  /** The grant that is changed; a grant never changes itself, another takes its place. */
  readonly replaces?: Grant;
  /** Members that have a grant here already. */
  readonly taken: ReadonlySet<Id>;
  readonly onClose: () => void;
  readonly onGiven: () => void;
}

type Request = components["schemas"]["CreateGrantRequest"];

/** Gives somebody access to a place, or other access than before. */
export function GrantDialog({ target, replaces, taken, onClose, onGiven }: Props) {
  const { api } = useAccount();
  const known = useKnown();
  const [member, setMember] = useState<Member>();
  const [level, setLevel] = useState<Level>(replaces?.level ?? "write");
  const [extra, setExtra] = useState<readonly Capability[]>(replaces?.capabilities ?? []);
  const [expiry, setExpiry] = useState<ExpiryValue>(
    replaces?.expires_at === undefined
      ? { choice: "never", at: "" }
      : { choice: "at", at: localValue(replaces.expires_at) },
  );
  const [note, setNote] = useState(replaces?.note ?? "");
  // At the highest level all but these come with it.
  const offered = level === "manage" ? (["export", "costs.read", "terminal.open"] as const) : capabilities;
  const chosen = extra.filter((each) => (offered as readonly Capability[]).includes(each));
  const place = placeName(known, target);

  const subject: Request["subject"] | undefined =
    replaces?.subject ??
    (member === undefined ? undefined : { kind: member.group ? "group" : "principal", id: member.id });
  const write = useI1(async (resolve) => {
    if (subject === undefined) return;
    const expires = expiryOf(expiry.choice, expiry.at, Date.now());
    const request: Request = {
      subject,
      target,
      level,
      capabilities: [...chosen],
      ...(expires === undefined ? {} : { expires_at: expires }),
      ...(note.trim() === "" ? {} : { note: note.trim() }),
      ...(replaces === undefined ? {} : { replaces: replaces.id }),
      ...(resolve === undefined ? {} : { resolve_i1: resolve }),
    };
    body(await api.POST("/grants", { body: request }));
    onGiven();
  });
  const { submit } = write;

  const give = async () => {
    const needed = { "/subject": subject?.id ?? "", ...(expiry.choice === "at" ? { "/expires_at": expiry.at } : {}) };
    const given = await write.attempt(undefined, needed);
    if (given) onClose();
    return given;
  };
  const title = replaces === undefined ? `Give access to ${place}` : `Change access to ${place}`;
  if (write.problem !== undefined) {
    return (
      <Dialog title="A personal agent would be open to others" onClose={onClose} size="wide">
        <I1Ways write={write} problem={write.problem} onDone={onClose} />
      </Dialog>
    );
  }

  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        onSubmit={give}
        error={submit.error}
        actions={
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone="primary" busy={submit.busy}>
              {replaces === undefined ? "Give access" : "Change"}
            </Button>
          </DialogActions>
        }
      >
        {replaces !== undefined ? (
          <SubjectRow id={replaces.subject.id} />
        ) : member === undefined ? (
          <MemberPicker
            label="Who"
            groups
            without={taken}
            onPick={setMember}
            error={submit.faultOf("/subject") ?? submit.faultOf("/subject/id")}
          />
        ) : (
          <Rows label="Who">
            <Row
              mark={<MemberMark member={member} />}
              title={<MemberName member={member} />}
              end={<Button onClick={() => setMember(undefined)}>Another</Button>}
            />
          </Rows>
        )}
        <Choice<Level>
          legend="May"
          value={level}
          onChange={setLevel}
          options={levels.map((each) => ({ value: each, label: levelSentences[each] }))}
        />
        <Checks<Capability>
          legend="Besides"
          value={chosen}
          onChange={setExtra}
          options={offered.map((each) => ({ value: each, label: capital(capabilityWords[each]) }))}
          error={submit.faultOf("/capabilities")}
        />
        <ExpiryField
          label="Ends"
          value={expiry}
          onChange={setExpiry}
          choices={["never", "1d", "7d", "30d", "90d", "at"]}
          hint="Whoever loses access by this is reminded before."
          error={submit.faultOf("/expires_at")}
        />
        <TextField
          label="Why"
          maxLength={200}
          autoComplete="off"
          dir="auto"
          value={note}
          onChange={(event) => setNote(event.target.value)}
          hint={
            isStrong(target.kind, level, chosen)
              ? "May stay empty. This access reaches far: you are asked for a fresh proof."
              : "May stay empty. Others who manage this place read it."
          }
          error={submit.faultOf("/note")}
        />
        {subject === undefined ? null : (
          <Preview change={{ grant_create: { subject, target, level, capabilities: [...chosen] } }} />
        )}
      </Form>
    </Dialog>
  );
}

function SubjectRow({ id }: { readonly id: Id }) {
  const member = useMember(id);
  return (
    <Rows label="Who">
      <Row mark={<MemberMark member={member} />} title={<MemberName member={member} />} />
    </Rows>
  );
}

function capital(text: string): string {
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}
