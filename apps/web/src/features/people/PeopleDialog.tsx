// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import type { Agent, Presence } from "../../api/types";
import { everybody, type Face } from "../../client/names";
import { timeAgo } from "../../client/times";
import { useNow } from "../../client/useNow";
import { useStore } from "../../client/useStore";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import styles from "./PeopleDialog.module.css";

interface Props {
  readonly onClose: () => void;
  readonly onNewPerson: (() => void) | undefined;
  readonly onNewAgent: (() => void) | undefined;
}

/** Everybody who may be met here, people and agents. */
export function PeopleDialog({ onClose, onNewPerson, onNewAgent }: Props) {
  const principals = useStore((state) => state.tables.principals);
  const agents = useStore((state) => state.tables.agents);
  const faces = useStore(
    everybody,
    (a, b) => a.length === b.length && a.every((face, at) => face.name === b[at]?.name),
  );
  const people = faces.filter((face) => face.shape === "person").sort(byName);
  const machines = faces.filter((face) => face.shape === "agent").sort(byName);
  return (
    <Dialog title="Who is here" onClose={onClose}>
      <section className={styles.group} aria-label="People">
        <header>
          <h3>People</h3>
          {onNewPerson === undefined ? null : (
            <Button icon="user-plus" onClick={onNewPerson}>
              New person
            </Button>
          )}
        </header>
        <ul>
          {people.map((face) => (
            <Row key={face.id} face={face}>
              {principals.get(face.id)?.value.owner === true ? "owner" : ""}
            </Row>
          ))}
        </ul>
      </section>
      <section className={styles.group} aria-label="Agents">
        <header>
          <h3>Agents</h3>
          {onNewAgent === undefined ? null : (
            <Button icon="plus" onClick={onNewAgent}>
              New agent
            </Button>
          )}
        </header>
        {machines.length === 0 ? (
          <Notice>No agents yet. An agent is a member that works when it is asked.</Notice>
        ) : null}
        <ul>
          {machines.map((face) => (
            <AgentRow key={face.id} face={face} agent={agents.get(face.id)?.value} />
          ))}
        </ul>
      </section>
    </Dialog>
  );
}

function byName(a: Face, b: Face): number {
  return a.name.localeCompare(b.name);
}

function Row({ face, children }: { readonly face: Face; readonly children: ReactNode }) {
  return (
    <li>
      <Avatar name={face.name} id={face.id} shape={face.shape} size={28} />
      <span>
        <strong dir="auto">{face.name}</strong>
        <small>@{face.handle}</small>
      </span>
      <span className={styles.note}>{children}</span>
    </li>
  );
}

const words: Record<Presence, string> = {
  unknown: "not seen yet",
  online: "online",
  degraded: "online, with trouble",
  offline: "offline",
};

function AgentRow({ face, agent }: { readonly face: Face; readonly agent: Agent | undefined }) {
  const presence = useStore((state) => state.presence.get(face.id) ?? "unknown");
  const now = useNow(presence === "offline");
  const seen = agent?.runtime?.last_heartbeat_at ?? null;
  return (
    <Row face={face}>
      <span className={styles.presence} data-presence={presence}>
        {words[presence]}
        {presence === "offline" && seen !== null ? `, last ${timeAgo(seen, now)}` : ""}
      </span>
    </Row>
  );
}
