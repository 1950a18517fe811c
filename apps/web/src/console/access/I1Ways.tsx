// SPDX-License-Identifier: Apache-2.0
import type { components } from "../../api/gen/schema";
import type { I1PlanStep, I1Problem } from "../../api/types";
import { Button } from "../../ui/Button";
import { DialogActions } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { Row, Rows, Section, Tag } from "../../ui/Page";
import styles from "../console.module.css";
import { placeName, useKnown, useMember } from "../directory";
import { MemberMark, NameOf } from "../MemberMark";
import type { GuardedWrite } from "./useI1";

type Option = components["schemas"]["I1Option"];
type Violation = components["schemas"]["I1Violation"];

interface Props {
  readonly write: GuardedWrite;
  readonly problem: I1Problem;
  readonly onDone: () => void;
}

/** Who could set a personal agent to work by a change, and the two ways to go on all the same. */
export function I1Ways({ write, problem, onDone }: Props) {
  const agents = [...new Set(problem.violations.map((each) => each.agent_id))];
  const take = async (strategy: Option["strategy"]) => {
    if (await write.attempt({ strategy, digest: problem.digest })) onDone();
  };
  return (
    <>
      <Notice tone="warn">
        {write.changed
          ? "Somebody changed access in the meantime, and nothing was done. This is how it stands now. "
          : ""}
        A personal agent works on the plan of one person, for that person alone. This change would let others set{" "}
        {agents.length === 1 ? "one" : `${agents.length} of them`} to work. Nothing is changed yet.
      </Notice>
      <Rows label="Who could">
        {problem.violations.map((violation) => (
          <ViolationRow
            key={`${violation.agent_id}${violation.principal_id}${violation.target.id}`}
            violation={violation}
          />
        ))}
      </Rows>
      {problem.truncated ? <p className={styles.dense}>There are more than these.</p> : null}
      {problem.options.map((option) => (
        <Way key={option.strategy} option={option} busy={write.submit.busy} onTake={() => void take(option.strategy)} />
      ))}
      {write.submit.error === undefined ? null : <Notice tone="danger">{write.submit.error}</Notice>}
      <DialogActions>
        <Button onClick={write.back}>Back, change nothing</Button>
      </DialogActions>
    </>
  );
}

function ViolationRow({ violation }: { readonly violation: Violation }) {
  const known = useKnown();
  const agent = useMember(violation.agent_id);
  return (
    <Row
      mark={<MemberMark member={agent} />}
      title={
        <>
          {violation.principal_id === undefined ? "The new person" : <NameOf id={violation.principal_id} />}
          <small>could set</small>
          <span dir="auto">{agent.name}</span>
          <small>to work</small>
        </>
      }
      note={
        <>
          in <span dir="auto">{placeName(known, violation.target)}</span>, on the plan of{" "}
          <NameOf id={violation.holder_id} />
          {violation.path.map((path, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the paths of one answer never move
            <span key={at}>
              {at === 0 ? " · because " : " and because "}
              {path.requested ? "of what you ask for" : null}
              {path.requested ? null : (
                <>
                  {path.group_id === undefined ? "of" : <NameOf id={path.group_id} />}
                  {path.group_id === undefined ? " a grant of " : " has "}
                  {path.level} on <span dir="auto">{placeName(known, path.target)}</span>
                </>
              )}
            </span>
          ))}
        </>
      }
    />
  );
}

const refusals: Readonly<Record<string, string>> = {
  not_owner: "Only an owner can take this way.",
  undoes_request: "It would undo what you ask for.",
  touches_holder: "It would take rights from the person whose plan it is.",
  too_many_steps: "It would take too many steps. Change the access of groups by hand first.",
};

interface WayProps {
  readonly option: Option;
  readonly busy: boolean;
  readonly onTake: () => void;
}

function Way({ option, busy, onTake }: WayProps) {
  const pays = option.strategy === "switch_to_organization";
  const plan = option.plan ?? [];
  return (
    <Section
      title={pays ? "Let the organisation pay" : "Take rights away"}
      hint={
        pays
          ? "The agents work for everybody who may start them, and what they use is billed to the organisation."
          : "The agents stay personal. Exactly this is changed together with what you ask for:"
      }
    >
      {pays ? (
        <ul className={styles.plan}>
          {(option.agent_ids ?? []).map((id) => (
            <li key={id}>
              <NameOf id={id} />
            </li>
          ))}
        </ul>
      ) : (
        <ul className={styles.plan}>
          {plan.map((step, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the steps of one answer never move
            <li key={at}>
              <PlanStep step={step} />
              {step.severe ? <Tag tone="danger">takes manage away</Tag> : null}
            </li>
          ))}
        </ul>
      )}
      {option.allowed ? (
        <div>
          <Button tone={pays ? "plain" : "danger"} busy={busy} onClick={onTake}>
            {pays ? "Switch and go on" : "Take away and go on"}
          </Button>
        </div>
      ) : (
        <Notice>{refusals[option.reason ?? ""] ?? "This way is not open here."}</Notice>
      )}
    </Section>
  );
}

function PlanStep({ step }: { readonly step: I1PlanStep }) {
  const known = useKnown();
  const place = step.target === undefined ? "" : placeName(known, step.target);
  switch (step.kind) {
    case "reduce_request":
      return <>What you ask for gives only {step.level ?? "write"} instead.</>;
    case "replace_grant":
      return (
        <>
          {step.principal_id !== undefined ? (
            <NameOf id={step.principal_id} />
          ) : step.group_id !== undefined ? (
            <NameOf id={step.group_id} />
          ) : (
            "A grant"
          )}{" "}
          keeps only {step.level ?? "write"} on <span dir="auto">{place}</span>.
        </>
      );
    case "remove_member":
      return (
        <>
          {step.principal_id === undefined ? "Somebody" : <NameOf id={step.principal_id} />} leaves the group{" "}
          {step.group_id === undefined ? "" : <NameOf id={step.group_id} />}.
        </>
      );
    case "unset_operator": {
      const channel = step.channel_id === undefined ? "" : placeName(known, { kind: "channel", id: step.channel_id });
      return (
        <>
          No agent answers in <span dir="auto">{channel}</span> any more.
        </>
      );
    }
  }
}
