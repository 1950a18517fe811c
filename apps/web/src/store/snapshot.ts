// SPDX-License-Identifier: Apache-2.0
//
// The snapshot to state: a new client's first knowledge, and the repair after a gap that the log cannot fill.
import type { Access, Agent, Channel, Id, Principal, ReadState, RunSummary, Space, Thread } from "../api/types";
import { Draft } from "./draft";
import { mergeRunSummary } from "./runDocument";
import { emptyState, type InstanceInfo, type MessageWindow, type Self, type State } from "./state";

/** One page of the snapshot, reduced to what this client keeps. */
export interface SnapshotPage {
  readonly syncEpoch: string;
  readonly headSeq: number;
  readonly pageSeq: number;
  readonly nextCursor: string | null;
  readonly instance?: InstanceInfo | undefined;
  readonly self?: Self | undefined;
  readonly spaces: readonly Space[];
  readonly channels: readonly Channel[];
  readonly threads: readonly Thread[];
  readonly readStates: readonly ReadState[];
  readonly principals: readonly Principal[];
  readonly agents: readonly Agent[];
  readonly runs: readonly RunSummary[];
  readonly access: readonly (readonly [Id, Access])[];
}

/**
 * Replaces the structure by the pages of a whole snapshot. In the same epoch the loaded messages stay and count as
 * stale; another epoch means another history, and they go.
 */
export function applySnapshot(state: State, pages: readonly SnapshotPage[]): State {
  const first = pages[0];
  if (first === undefined) return state;
  const sameEpoch = state.syncEpoch === first.syncEpoch;
  const base: State = {
    ...emptyState,
    connection: state.connection,
    lastLiveAt: state.lastLiveAt,
    outbox: state.outbox,
    windows: sameEpoch ? staleWindows(state.windows) : new Map(),
    syncEpoch: first.syncEpoch,
    cursor: first.headSeq,
  };
  const draft = new Draft(base);
  for (const page of pages) applyPage(draft, page);
  if (sameEpoch) keepRunDocuments(draft, state);
  return draft.state;
}

/** Lays a scoped page over the state, after rights on its targets were gained. */
export function applyScopedPage(state: State, page: SnapshotPage): State {
  const draft = new Draft(state);
  applyPage(draft, page);
  return draft.state;
}

/** Windows of an earlier life of the tab: good to look at, to be loaded anew before they count. */
export function staleWindows(windows: ReadonlyMap<Id, MessageWindow>): ReadonlyMap<Id, MessageWindow> {
  return new Map([...windows].map(([id, window]) => [id, { ...window, stale: true }]));
}

function applyPage(draft: Draft, page: SnapshotPage): void {
  const stamp = page.pageSeq;
  if (page.instance !== undefined) draft.assign({ instance: page.instance });
  if (page.self !== undefined) draft.assign({ self: page.self });
  for (const space of page.spaces) draft.put("spaces", space.id, space, stamp);
  for (const channel of page.channels) draft.put("channels", channel.id, channel, stamp);
  for (const thread of page.threads) draft.put("threads", thread.id, thread, stamp);
  for (const read of page.readStates) draft.set("readStates", read.thread_id, read, stamp);
  for (const principal of page.principals) draft.put("principals", principal.id, principal, stamp);
  for (const agent of page.agents) {
    draft.put("agents", agent.principal_id, agent, stamp);
    draft.map("presence").set(agent.principal_id, agent.runtime?.presence_state ?? "unknown");
  }
  for (const run of page.runs) {
    draft.set("runs", run.id, mergeRunSummary(draft.get("runs", run.id)?.value, run), stamp);
  }
  for (const [target, access] of page.access) draft.map("access").set(target, access);
}

/** Ended runs are not part of a snapshot, but the rows of loaded messages still show them. */
function keepRunDocuments(draft: Draft, former: State): void {
  for (const [id, { value: run, stamp }] of former.tables.runs) {
    if (draft.get("threads", run.thread_id) === undefined) continue;
    const current = draft.get("runs", id);
    if (current === undefined) draft.set("runs", id, run, stamp);
    else draft.set("runs", id, mergeRunSummary(run, current.value), current.stamp);
  }
}
