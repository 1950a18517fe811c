// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import { actions } from "../../api/gen/actions";
import type { AccessExplanation, Target } from "../../api/types";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { useResource } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { Select } from "../../ui/Field";
import { Notice } from "../../ui/Notice";
import { Row, Rows, Section } from "../../ui/Page";
import styles from "../console.module.css";
import { type Member, targetText } from "../directory";
import { MemberMark, MemberName, NameOf } from "../MemberMark";
import { MemberPicker } from "../MemberPicker";
import { capabilityWords } from "../rights";
import { Steps } from "./Holders";
import { heldWords } from "./rightsWords";

/** Acts that are asked about most, in the words of the catalogue. */
const common = [
  "message.read",
  "message.create",
  "agent.invoke",
  "thread.create",
  "file.upload",
  "message.delete",
  "channel.update",
  "grant.create",
];

const choices = [
  { value: "", label: "Anything" },
  ...common.flatMap((id) => {
    const action = actions.find((each) => each.id === id);
    return action === undefined ? [] : [{ value: id, label: action.summary }];
  }),
];

/** May this member do that here? The answer names what is missing and who could give it. */
export function Check({ target }: { readonly target: Target }) {
  const [member, setMember] = useState<Member>();
  const [action, setAction] = useState("");
  return (
    <Section title="Check" hint="Choose a member to see what they may do here, step by step.">
      {member === undefined ? (
        <div className={styles.filter}>
          <MemberPicker label="Member" onPick={setMember} />
        </div>
      ) : (
        <>
          <Rows label="Member">
            <Row
              mark={<MemberMark member={member} />}
              title={<MemberName member={member} />}
              end={<Button onClick={() => setMember(undefined)}>Another</Button>}
            />
          </Rows>
          <div className={styles.filter}>
            <Select label="May they" value={action} onChange={setAction} options={choices} />
          </div>
          <Answer member={member} target={target} action={action} />
        </>
      )}
    </Section>
  );
}

interface AnswerProps {
  readonly member: Member;
  readonly target: Target;
  readonly action: string;
}

function Answer({ member, target, action }: AnswerProps) {
  const { api } = useAccount();
  const key = `explain ${member.id} ${targetText(target)} ${action}`;
  const explanation = useResource<AccessExplanation>(key, async (signal) => {
    const query = {
      principal_id: member.id,
      target: targetText(target),
      ...(action === "" ? {} : { action }),
    };
    return body(await api.GET("/access/explain", { signal, params: { query } }));
  });
  return (
    <LoadedView loaded={explanation.loaded} onRetry={explanation.reload} rows={2}>
      {(value) => <Explained explanation={value} name={member.name} />}
    </LoadedView>
  );
}

function Explained({ explanation, name }: { readonly explanation: AccessExplanation; readonly name: string }) {
  const { decision, steps, needed = [], ask = [], summary } = explanation;
  const needs = needed.map((need) =>
    need.owner === true
      ? "being an owner"
      : need.level !== undefined
        ? `the level ${need.level}`
        : need.capability === undefined
          ? "something else"
          : `the right to ${capabilityWords[need.capability]}`,
  );
  return (
    <div aria-live="polite" className={styles.answer}>
      <Notice tone={decision === "allow" ? "ok" : "warn"}>
        <strong>{decision === "allow" ? "Yes. " : "No. "}</strong>
        <span dir="auto">{name}</span> has {heldWords(explanation)} here. {summary}
      </Notice>
      <p className={styles.dense}>
        <Steps steps={steps} />
      </p>
      {decision === "deny" && needs.length > 0 ? <p>It would take {needs.join(", or ")}.</p> : null}
      {decision === "deny" && ask.length > 0 ? (
        <p>
          Who can give it:{" "}
          {ask.map((id, at) => (
            <span key={id}>
              {at === 0 ? "" : ", "}
              <NameOf id={id} />
            </span>
          ))}
          .
        </p>
      ) : null}
    </div>
  );
}
