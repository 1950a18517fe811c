// SPDX-License-Identifier: Apache-2.0
//
// Events to state. Every function here is pure: the same events over the same state give the same state, whether they
// come live, from a catch-up page or a second time.
import type {
  Access,
  Agent,
  Channel,
  Id,
  Message,
  Presence,
  Principal,
  ReadState,
  RunSummary,
  Space,
  Thread,
  ThreadCounters,
} from "../api/types";
import { Draft } from "./draft";
import { mergeRunSummary, mergeRunUpdate, type RunUpdate } from "./runDocument";
import type { State } from "./state";
import { countCreated, countDeleted, freshReadState } from "./unread";
import { appendMessage } from "./windows";

/** An event as the gateway and the catch-up list send it; `seq` is absent on ephemeral ones. */
export interface Envelope {
  readonly seq?: number;
  readonly type: string;
  readonly occurred_at?: string;
  readonly data: unknown;
  readonly redacted?: boolean;
}

/** Work that an event asks for beyond the state, done by the engine. */
export type Effect =
  | { readonly kind: "load_targets"; readonly targets: readonly string[] }
  | { readonly kind: "load_end"; readonly threadId: Id }
  | { readonly kind: "load_run"; readonly runId: Id }
  | { readonly kind: "resync"; readonly reason: string }
  | { readonly kind: "session_revoked"; readonly sessionId: Id; readonly reason: string }
  | { readonly kind: "message_arrived"; readonly message: Message };

/** Result of applying a batch. */
export interface Applied {
  readonly state: State;
  readonly effects: readonly Effect[];
}

interface Context {
  readonly draft: Draft;
  readonly seq: number;
  readonly effects: Effect[];
  /** Milliseconds since the epoch, for ephemeral state that expires. */
  readonly now: number;
}

type Handler = (context: Context, data: unknown) => void;

/** Applies durable events in log order and moves the cursor. Events at or below the cursor are dropped. */
export function applyEvents(state: State, events: readonly Envelope[], through: number | null, now: number): Applied {
  const draft = new Draft(state);
  const effects: Effect[] = [];
  let cursor = state.cursor ?? -1;
  for (const event of events) {
    const seq = event.seq ?? -1;
    if (seq <= cursor) continue;
    applyOne({ draft, seq, effects, now }, event);
    cursor = seq;
  }
  cursor = Math.max(cursor, through ?? -1);
  if (cursor >= 0 && cursor !== state.cursor) draft.assign({ cursor });
  return { state: draft.state, effects };
}

/** Applies one event that is not in the log. */
export function applyEphemeral(state: State, event: Envelope, now: number): Applied {
  const draft = new Draft(state);
  const effects: Effect[] = [];
  // Ephemeral facts are unordered against the log: they are stamped as if they came right behind the cursor.
  applyOne({ draft, seq: state.cursor ?? 0, effects, now }, event);
  return { state: draft.state, effects };
}

function applyOne(context: Context, event: Envelope): void {
  const handler = handlers[event.type];
  // An unknown type belongs to a newer server; the cursor moves on and nothing else happens.
  if (handler === undefined || event.redacted === true) return;
  handler(context, event.data);
}

const onSpace: Handler = ({ draft, seq }, data) => {
  const space = data as Space;
  draft.put("spaces", space.id, space, seq);
};

const onChannel: Handler = ({ draft, seq }, data) => {
  const channel = data as Channel;
  const known = draft.get("channels", channel.id) !== undefined;
  const placed = channel.space_id === null || draft.get("spaces", channel.space_id) !== undefined;
  if (known || placed) draft.put("channels", channel.id, channel, seq);
};

const onThread: Handler = ({ draft, seq }, data) => {
  const thread = data as Thread;
  const known = draft.get("threads", thread.id);
  if (known === undefined && draft.get("channels", thread.channel_id) === undefined) return;
  const counters = newerCounters(known?.value.counters, thread.counters);
  draft.put("threads", thread.id, { ...thread, counters }, seq);
};

const onThreadGone: Handler = ({ draft, seq }, data) => {
  removeThread(draft, (data as { thread_id: Id }).thread_id, seq);
};

const onMessageCreated: Handler = ({ draft, seq, effects, now }, data) => {
  const { message, counters } = data as { message: Message; counters: ThreadCounters };
  if (!takeCounters(draft, message.thread_id, counters)) return;
  const window = draft.state.windows.get(message.thread_id);
  if (window !== undefined) {
    const next = appendMessage(window, message);
    if (next !== window) draft.map("windows").set(message.thread_id, next);
    if (!next.atEnd) effects.push({ kind: "load_end", threadId: message.thread_id });
  }
  changeReadState(draft, message, seq, (read, me) => countCreated(read, message, me));
  if (message.author.id !== null) stopTyping(draft, message.thread_id, message.author.id);
  if (now - Date.parse(message.created_at) < 60_000) effects.push({ kind: "message_arrived", message });
};

const onMessageUpdated: Handler = ({ draft }, data) => {
  const { message } = data as { message: Message };
  draft.patchMessage(message.thread_id, message);
};

const onMessageDeleted: Handler = ({ draft, seq }, data) => {
  const { message, counters } = data as { message: Message; counters: ThreadCounters };
  if (!takeCounters(draft, message.thread_id, counters)) return;
  const window = draft.state.windows.get(message.thread_id);
  const before = window?.messages.find((known) => known.id === message.id);
  draft.patchMessage(message.thread_id, message);
  if (before?.deleted == null)
    changeReadState(draft, message, seq, (read, me) => countDeleted(read, message, before, me));
};

const onReadStates: Handler = ({ draft, seq }, data) => {
  for (const read of (data as { read_states: readonly ReadState[] }).read_states) {
    const known = draft.get("readStates", read.thread_id);
    if (known === undefined || read.version >= known.value.version) draft.set("readStates", read.thread_id, read, seq);
  }
};

const onPrincipal: Handler = ({ draft, seq }, data) => {
  const { user } = data as { user: Principal };
  draft.put("principals", user.id, user, seq);
  const { self } = draft.state;
  if (self !== null && self.id === user.id) {
    draft.assign({
      self: { ...self, handle: user.handle, displayName: user.display_name, owner: user.owner === true },
    });
  }
};

const onAgent: Handler = ({ draft, seq }, data) => {
  const agent = data as Agent;
  // The event leaves out what the runtime reports; that part stays.
  const runtime = agent.runtime ?? draft.get("agents", agent.principal_id)?.value.runtime;
  draft.put("agents", agent.principal_id, runtime === undefined ? agent : { ...agent, runtime }, seq);
};

const onPresence: Handler = ({ draft }, data) => {
  const { agent_id, state } = data as { agent_id: Id; state: Presence };
  draft.map("presence").set(agent_id, state);
};

const onRunState: Handler = ({ draft, seq }, data) => {
  const { run: summary } = data as { run: RunSummary };
  if (draft.get("threads", summary.thread_id) === undefined) return;
  const known = draft.get("runs", summary.id);
  if (known !== undefined && seq <= known.stamp) return;
  draft.set("runs", summary.id, mergeRunSummary(known?.value, summary), seq);
};

const onRunUpdated: Handler = ({ draft, effects }, data) => {
  const update = data as RunUpdate;
  const known = draft.get("runs", update.run_id);
  const merged = mergeRunUpdate(known?.value, update);
  if (merged.kind === "merged") draft.set("runs", update.run_id, merged.run, known?.stamp ?? 0);
  if (merged.kind === "missed") effects.push({ kind: "load_run", runId: update.run_id });
};

const onTyping: Handler = ({ draft, now }, data) => {
  const { thread_id, principal_id, expires_at } = data as { thread_id: Id; principal_id: Id; expires_at: string };
  const until = Date.parse(expires_at);
  if (until <= now) {
    stopTyping(draft, thread_id, principal_id);
    return;
  }
  const typists = new Map(draft.state.typing.get(thread_id));
  // The clock of the server may be ahead or behind; nobody types longer than ten seconds without a new sign.
  typists.set(principal_id, Math.min(until, now + 10_000));
  draft.map("typing").set(thread_id, typists);
};

interface Target {
  readonly kind: string;
  readonly id?: Id;
}

/** Name of a target as requests write it; the snapshot can be limited to spaces and channels. */
function targetName({ kind, id }: Target): string | undefined {
  return id !== undefined && (kind === "space" || kind === "channel") ? `${kind}:${id}` : undefined;
}

interface AccessEntry extends Access {
  readonly target: Target;
}

interface AccessChange {
  readonly gained?: readonly AccessEntry[];
  readonly changed?: readonly AccessEntry[];
  readonly lost?: readonly Target[];
  readonly full?: boolean;
}

/** Key of a target in the access map; the instance itself has no identifier. */
export function targetKey(target: Target): Id {
  return target.id ?? target.kind;
}

const onAccess: Handler = ({ draft, seq, effects }, data) => {
  const change = data as AccessChange;
  if (change.full === true) {
    effects.push({ kind: "resync", reason: "access" });
    return;
  }
  for (const target of change.lost ?? []) removeTarget(draft, targetKey(target), seq);
  for (const { target, level, capabilities } of [...(change.changed ?? []), ...(change.gained ?? [])]) {
    draft.map("access").set(targetKey(target), { level, capabilities });
  }
  const gained = (change.gained ?? []).flatMap(({ target }) => targetName(target) ?? []);
  if (gained.length > 0) effects.push({ kind: "load_targets", targets: gained });
};

const onSessionRevoked: Handler = ({ effects }, data) => {
  const { session_id, reason } = data as { session_id: Id; reason: string };
  effects.push({ kind: "session_revoked", sessionId: session_id, reason });
};

interface DevicePendingData {
  readonly device: { readonly id: Id; readonly name: string };
  readonly principal: { readonly id: Id; readonly display_name: string };
  readonly expires_at: string;
  readonly resolved?: string;
}

const onDevicePending: Handler = ({ draft }, data) => {
  const { device, principal, expires_at, resolved } = data as DevicePendingData;
  const waiting = new Map(draft.state.waitingDevices);
  if (resolved === undefined) {
    waiting.set(device.id, {
      id: device.id,
      name: device.name,
      principalId: principal.id,
      principalName: principal.display_name,
      until: Date.parse(expires_at),
    });
    draft.assign({ waitingDevices: waiting });
    return;
  }
  waiting.delete(device.id);
  draft.assign({ waitingDevices: waiting, decidedDevices: new Set([...draft.state.decidedDevices, device.id]) });
};

/** Every event type the client knows. A type with nothing to do has no entry. */
export const handlers: Readonly<Record<string, Handler>> = {
  "space.created": onSpace,
  "space.updated": onSpace,
  "space.archived": onSpace,
  "channel.created": onChannel,
  "channel.updated": onChannel,
  "channel.archived": onChannel,
  "thread.created": onThread,
  "thread.updated": onThread,
  "thread.closed": onThread,
  "thread.reopened": onThread,
  "thread.moved": onThread,
  "thread.moved_out": onThreadGone,
  "message.created": onMessageCreated,
  "message.updated": onMessageUpdated,
  "message.deleted": onMessageDeleted,
  "read_state.updated": onReadStates,
  "user.updated": onPrincipal,
  "agent.updated": onAgent,
  "agent.presence_changed": onPresence,
  "run.state_changed": onRunState,
  "run.updated": onRunUpdated,
  "typing.started": onTyping,
  "access.changed": onAccess,
  "session.revoked": onSessionRevoked,
  "device.pending": onDevicePending,
};

/** The counters with the higher revision. */
export function newerCounters(known: ThreadCounters | undefined, next: ThreadCounters): ThreadCounters {
  return known !== undefined && known.rev > next.rev ? known : next;
}

function takeCounters(draft: Draft, threadId: Id, counters: ThreadCounters): boolean {
  const thread = draft.get("threads", threadId);
  if (thread === undefined) return false;
  if (counters.rev > thread.value.counters.rev) {
    draft.set("threads", threadId, { ...thread.value, counters }, thread.stamp);
  }
  return true;
}

function changeReadState(
  draft: Draft,
  message: Message,
  seq: number,
  change: (read: ReadState, me: Id) => ReadState,
): void {
  const me = draft.state.self?.id;
  if (me === undefined) return;
  const known = draft.get("readStates", message.thread_id);
  const read = known?.value ?? freshReadState(message.thread_id, message.channel_id, message.thread_seq - 1);
  const next = change(read, me);
  if (next !== known?.value) draft.set("readStates", message.thread_id, next, known?.stamp ?? seq);
}

function stopTyping(draft: Draft, threadId: Id, principalId: Id): void {
  const typists = draft.state.typing.get(threadId);
  if (!typists?.has(principalId)) return;
  const rest = new Map(typists);
  rest.delete(principalId);
  draft.map("typing").set(threadId, rest);
}

function removeThread(draft: Draft, threadId: Id, seq: number): void {
  draft.remove("threads", threadId, seq);
  draft.remove("readStates", threadId, seq);
  draft.map("windows").delete(threadId);
  for (const { value: run } of draft.state.tables.runs.values()) {
    if (run.thread_id === threadId) draft.remove("runs", run.id, seq);
  }
}

function removeChannel(draft: Draft, channelId: Id, seq: number): void {
  draft.remove("channels", channelId, seq);
  draft.map("access").delete(channelId);
  for (const { value: thread } of draft.state.tables.threads.values()) {
    if (thread.channel_id === channelId) removeThread(draft, thread.id, seq);
  }
}

/** Takes away a space or channel with everything below it. */
export function removeTarget(draft: Draft, id: Id, seq: number): void {
  if (draft.get("channels", id) !== undefined) removeChannel(draft, id, seq);
  if (draft.get("spaces", id) === undefined) return;
  draft.remove("spaces", id, seq);
  draft.map("access").delete(id);
  for (const { value: channel } of draft.state.tables.channels.values()) {
    if (channel.space_id === id) removeChannel(draft, channel.id, seq);
  }
}
