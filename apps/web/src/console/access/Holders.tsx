// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import type { AccessStep, Target } from "../../api/types";
import { useAccount } from "../../client/Account";
import { PagesView } from "../../client/Listing";
import { shortMoment } from "../../client/times";
import { usePages } from "../../client/useResource";
import { Select } from "../../ui/Field";
import { Row, Section, Tag } from "../../ui/Page";
import styles from "../console.module.css";
import { targetText, useMember } from "../directory";
import { MemberMark, MemberName } from "../MemberMark";
import { levelNames } from "../rights";
import { heldWords } from "./rightsWords";

type Holder = components["schemas"]["AccessHolder"];

const filters = [
  { value: "read", label: "Everybody who comes in" },
  { value: "write", label: "Who may write" },
  { value: "trigger", label: "Who may set agents to work" },
  { value: "manage", label: "Who may manage" },
] as const;

type Filter = (typeof filters)[number]["value"];

/** Who has access to a place, each with the reasons. */
export function Holders({ target, round }: { readonly target: Target; readonly round: number }) {
  const { api } = useAccount();
  const [least, setLeast] = useState<Filter>("read");
  const holders = usePages<Holder>(`holders ${targetText(target)} ${least} ${round}`, async (cursor, signal) => {
    const query = { target: targetText(target), min_level: least, ...(cursor === undefined ? {} : { cursor }) };
    return body(await api.GET("/access/holders", { signal, params: { query } }));
  });
  return (
    <Section title="Who has access, and why" hint="Each person, agent and app with the reasons that count.">
      <div className={styles.filter}>
        <Select
          label="Show"
          value={least}
          onChange={(value) => setLeast(value as Filter)}
          options={filters.map(({ value, label }) => ({ value, label }))}
        />
      </div>
      <PagesView pages={holders} label="Who has access" empty="Nobody.">
        {(holder) => <HolderRow key={holder.principal_id} holder={holder} />}
      </PagesView>
    </Section>
  );
}

function HolderRow({ holder }: { readonly holder: Holder }) {
  const member = useMember(holder.principal_id);
  return (
    <Row
      mark={<MemberMark member={member} />}
      title={<MemberName member={member} />}
      note={<Steps steps={holder.sources} />}
      end={
        <>
          {holder.expires_at === undefined ? null : <Tag tone="warn">until {shortMoment(holder.expires_at)}</Tag>}
          <Tag tone={holder.level === "manage" ? "ok" : "plain"}>{levelNames[holder.level]}</Tag>
        </>
      }
    />
  );
}

/** The reasons of a right, one sentence each. Those that do not count say why. */
export function Steps({ steps }: { readonly steps: readonly AccessStep[] }) {
  return (
    <span className={styles.steps}>
      {steps.map((step, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the steps of one answer never move
        <span key={at} data-counted={step.counted}>
          {step.text}
        </span>
      ))}
    </span>
  );
}

/** What somebody holds, for the end of a row. */
export function HeldTag({ held }: { readonly held: Parameters<typeof heldWords>[0] }) {
  return <Tag>{heldWords(held)}</Tag>;
}
