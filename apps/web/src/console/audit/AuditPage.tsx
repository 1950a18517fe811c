// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import { actions } from "../../api/gen/actions";
import type { components } from "../../api/gen/schema";
import type { AuditEvent } from "../../api/types";
import { useAccount } from "../../client/Account";
import { PagesView } from "../../client/Listing";
import { shortMoment } from "../../client/times";
import { usePages, useResource } from "../../client/useResource";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Select, TextField } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { Page, Row, Tag } from "../../ui/Page";
import styles from "../console.module.css";
import { type Member, useMember } from "../directory";
import { MemberMark } from "../MemberMark";
import { MemberPicker } from "../MemberPicker";
import { actionWords, actorWords, verdict, warningWords } from "./auditWords";
import { EntryDialog } from "./EntryDialog";

type Outcome = components["schemas"]["AuditOutcome"];

/** Families of actions, by the first part of their names. */
const families = [...new Set(actions.map(({ id }) => id.slice(0, id.indexOf(".") + 1)))].sort();

interface Filter {
  readonly action: string;
  readonly outcome: Outcome | "";
  readonly actor: Member | undefined;
  readonly from: string;
}

const everything: Filter = { action: "", outcome: "", actor: undefined, from: "" };

/** What was done and what was refused, and whether the log is intact. */
export function AuditPage() {
  const { api } = useAccount();
  const [filter, setFilter] = useState(everything);
  const [open, setOpen] = useState<AuditEvent>();
  const change = (part: Partial<Filter>) => setFilter({ ...filter, ...part });
  const from = filter.from === "" ? undefined : new Date(`${filter.from}T00:00`).toISOString();
  const key = JSON.stringify([filter.action, filter.outcome, filter.actor?.id, from]);
  const events = usePages<AuditEvent>(`audit ${key}`, async (cursor, signal) => {
    const query = {
      ...(filter.action === "" ? {} : { action: filter.action }),
      ...(filter.outcome === "" ? {} : { outcome: filter.outcome }),
      ...(filter.actor === undefined ? {} : { actor_id: filter.actor.id }),
      ...(from === undefined ? {} : { from }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    return body(await api.GET("/audit/events", { signal, params: { query } }));
  });
  return (
    <Page
      title="Audit log"
      lead="What was done and what was refused, newest first. Entries are chained: none can be changed or taken out unseen."
    >
      <Verification />
      <div className={styles.filter}>
        {filter.actor === undefined ? (
          <MemberPicker label="Who" onPick={(actor) => change({ actor })} />
        ) : (
          <div>
            <Button icon="x" onClick={() => change({ actor: undefined })}>
              Only {filter.actor.name}
            </Button>
          </div>
        )}
        <Select
          label="What"
          value={filter.action}
          onChange={(action) => change({ action })}
          options={[
            { value: "", label: "Everything" },
            ...families.map((each) => ({ value: each, label: each.slice(0, -1).replaceAll("_", " ") })),
          ]}
        />
        <Select
          label="Outcome"
          value={filter.outcome}
          onChange={(outcome) => change({ outcome: outcome as Filter["outcome"] })}
          options={[
            { value: "", label: "Both" },
            { value: "allow", label: "Done" },
            { value: "deny", label: "Refused" },
          ]}
        />
        <TextField
          label="Since"
          type="date"
          value={filter.from}
          onChange={(event) => change({ from: event.target.value })}
        />
      </div>
      <PagesView pages={events} label="Entries" empty="No entry fits.">
        {(event) => <EntryRow key={event.id} event={event} onOpen={() => setOpen(event)} />}
      </PagesView>
      {open === undefined ? null : <EntryDialog event={open} onClose={() => setOpen(undefined)} />}
    </Page>
  );
}

function EntryRow({ event, onOpen }: { readonly event: AuditEvent; readonly onOpen: () => void }) {
  return (
    <Row
      mark={event.actor.id === undefined ? <Icon name="gear-six" size={24} /> : <ActorMark id={event.actor.id} />}
      title={
        <>
          {event.actor.id === undefined ? (
            <span>{actorWords[event.actor.kind] ?? event.actor.kind}</span>
          ) : (
            <ActorName id={event.actor.id} />
          )}
          {event.outcome === "deny" ? <Tag tone="danger">refused</Tag> : null}
          {event.actor.view_as_id === undefined ? null : <Tag>in a view</Tag>}
        </>
      }
      note={`${actionWords(event.action)} · ${shortMoment(event.occurred_at)}`}
      end={
        <Button onClick={onOpen} aria-label={`Details of entry ${event.seq}`}>
          Details
        </Button>
      }
    />
  );
}

function ActorMark({ id }: { readonly id: string }) {
  return <MemberMark member={useMember(id)} />;
}

function ActorName({ id }: { readonly id: string }) {
  return <span dir="auto">{useMember(id).name}</span>;
}

/** Recomputes the chain, and gives the log to take along. */
function Verification() {
  const { api } = useAccount();
  const verifying = useSubmit();
  const exporting = useSubmit();
  const [result, setResult] = useState<components["schemas"]["AuditVerifyResult"]>();
  const checkpoints = useResource(
    "checkpoints",
    async (signal) => body(await api.GET("/audit/checkpoints", { signal, params: { query: { limit: 1 } } })).items,
  );
  const newest = checkpoints.loaded.state === "ready" ? checkpoints.loaded.value[0] : undefined;
  const verify = () => verifying.run(async () => setResult(body(await api.POST("/audit/verify", { body: {} }))));
  const save = () =>
    exporting.run(async () => {
      const { data } = await api.GET("/audit/export", { parseAs: "blob" });
      if (data === undefined) throw new TypeError("answer without a body");
      download(data as Blob, `audit-${new Date().toISOString().slice(0, 10)}.ndjson`);
    });
  const error = verifying.error ?? exporting.error;
  return (
    <div className={styles.answer}>
      {result === undefined ? (
        <Notice>
          {newest === undefined
            ? "No checkpoint is signed yet; the first comes by itself."
            : `The newest signed checkpoint covers everything up to entry ${newest.seq}, of ${shortMoment(newest.created_at)}.`}{" "}
          Whether the log is intact is computed anew each time somebody asks.
        </Notice>
      ) : (
        <Notice tone={result.ok ? "ok" : "danger"}>
          <strong>{verdict(result)}</strong>
          {result.warnings.map((each) => ` ${warningWords(each)}`).join("")}
        </Notice>
      )}
      {error === undefined ? null : <Notice tone="danger">{error}</Notice>}
      <div className={styles.buttons}>
        <Button icon="shield-check" busy={verifying.busy} onClick={() => void verify()}>
          Verify the log
        </Button>
        <Button icon="arrow-down" busy={exporting.busy} onClick={() => void save()}>
          Export
        </Button>
      </div>
    </div>
  );
}

function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
