// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import { body } from "../../api/client";
import type { AuditEvent } from "../../api/types";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { fullTime } from "../../client/times";
import { useResource } from "../../client/useResource";
import { Dialog } from "../../ui/Dialog";
import { Facts } from "../../ui/Page";
import styles from "../console.module.css";
import { placeName, useKnown } from "../directory";
import { NameOf } from "../MemberMark";
import { actionWords, actorWords, detailWords } from "./auditWords";

/** One entry of the log with everything it holds. */
export function EntryDialog({ event, onClose }: { readonly event: AuditEvent; readonly onClose: () => void }) {
  const { api } = useAccount();
  const full = useResource<AuditEvent>(`entry ${event.id}`, async (signal) =>
    body(await api.GET("/audit/events/{event_id}", { signal, params: { path: { event_id: event.id } } })),
  );
  return (
    <Dialog title={`Entry ${event.seq}`} onClose={onClose} size="wide">
      <p>
        {actionWords(event.action)}
        {event.outcome === "deny" ? `, refused${event.reason === undefined ? "" : `: ${event.reason}`}` : ""}.
      </p>
      <LoadedView loaded={full.loaded} onRetry={full.reload} rows={6}>
        {(entry) => <EntryFacts entry={entry} />}
      </LoadedView>
    </Dialog>
  );
}

function EntryFacts({ entry }: { readonly entry: AuditEvent }) {
  const known = useKnown();
  const { actor, resource, place } = entry;
  const code = (text: string) => <span className={styles.value}>{text}</span>;
  const facts: [string, ReactNode][] = [
    ["Who", actor.id === undefined ? (actorWords[actor.kind] ?? actor.kind) : <NameOf key="who" id={actor.id} />],
    ["When", fullTime(entry.occurred_at)],
    ["Action", code(entry.action)],
  ];
  if (actor.acting_for_id !== undefined) facts.push(["For", <NameOf key="for" id={actor.acting_for_id} />]);
  if (actor.view_as_id !== undefined) facts.push(["In the view of", <NameOf key="view" id={actor.view_as_id} />]);
  if (place?.channel_id !== undefined) {
    facts.push(["Channel", placeName(known, { kind: "channel", id: place.channel_id })]);
  } else if (place?.space_id !== undefined) {
    facts.push(["Space", placeName(known, { kind: "space", id: place.space_id })]);
  }
  if (resource?.id !== undefined) facts.push([`About ${resource.kind ?? "something"}`, code(resource.id)]);
  for (const [name, value] of Object.entries(entry.details))
    facts.push([name.replaceAll("_", " "), detailWords(value)]);
  if (entry.address !== undefined) facts.push(["Address", code(entry.address.pseudonym)]);
  if (actor.session_id !== undefined) facts.push(["Session", code(actor.session_id)]);
  if (actor.token_id !== undefined) facts.push(["Token", code(actor.token_id)]);
  if (entry.correlation_id !== undefined) facts.push(["Correlation", code(entry.correlation_id)]);
  if (entry.prev_hash !== undefined) facts.push(["Hash before", code(entry.prev_hash)]);
  if (entry.hash !== undefined) facts.push(["Hash", code(entry.hash)]);
  return <Facts facts={facts} />;
}
