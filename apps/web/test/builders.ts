// SPDX-License-Identifier: Apache-2.0
//
// Legal values for tests; a test states only what matters to it.
import type { Channel, Message, MessagePage, Principal, ReadState, RunSummary, Space, Thread } from "../src/api/types";
import type { Clock } from "../src/engine/ports";
import type { Envelope } from "../src/store/reduce";
import type { SnapshotPage } from "../src/store/snapshot";

const time = "2026-11-30T09:00:00.000Z";

export const me = "00000000-0000-7000-8000-00000000000a";
export const other = "00000000-0000-7000-8000-00000000000b";

export function space(change: Partial<Space> = {}): Space {
  return {
    id: "space",
    name: "Workshop",
    description: "",
    icon: null,
    color: null,
    position_key: "a0",
    operator_agent_id: null,
    archived: null,
    created_at: time,
    created_by: me,
    version: 1,
    ...change,
  };
}

export function channel(change: Partial<Channel> = {}): Channel {
  return {
    id: "channel",
    kind: "text",
    space_id: "space",
    name: "general",
    topic: "",
    icon: null,
    position_key: "a0",
    inherits: true,
    main_thread_id: "thread",
    read_only: null,
    archived: null,
    operator: { mode: "none", agent_id: null },
    trigger_rule: "mention",
    agent_chaining: false,
    agent_sources: "any",
    slow_mode_seconds: 0,
    forum: null,
    participants: null,
    project: null,
    config_version: 1,
    created_at: time,
    created_by: me,
    version: 1,
    ...change,
  };
}

export function thread(change: Partial<Thread> = {}): Thread {
  return {
    id: "thread",
    channel_id: "channel",
    space_id: "space",
    kind: "main",
    title: null,
    title_source: "none",
    parent_message_id: null,
    state: "open",
    closed: null,
    tag_ids: [],
    created_at: time,
    created_by: null,
    counters: counters(0),
    version: 1,
    ...change,
  };
}

export function counters(last: number): Thread["counters"] {
  return {
    rev: last,
    first_thread_seq: 1,
    last_thread_seq: last,
    last_countable_seq: last,
    message_count: last,
    last_message_at: time,
  };
}

export function message(seq: number, change: Partial<Message> = {}): Message {
  return {
    id: `message-${seq}`,
    kind: "message",
    channel_id: "channel",
    space_id: "space",
    thread_id: "thread",
    thread_seq: seq,
    version: 1,
    revision: 1,
    author: { kind: "person", id: other, label: null },
    created_at: new Date(Date.parse(time) + seq * 1000).toISOString(),
    edited_at: null,
    imported: false,
    client_msg_id: null,
    notify: "normal",
    content: `text ${seq}`,
    dialect: 1,
    mentions: [],
    links: { message_ids: [], thread_ids: [], channel_ids: [] },
    reply_to: null,
    attachments: [],
    components: [],
    run_id: null,
    trigger_state: "none",
    triggers: [],
    reactions: [],
    reactions_rev: 0,
    pinned: null,
    started_thread_id: null,
    system: null,
    deleted: null,
    ...change,
  };
}

/** The tombstone of a message. */
export function tombstone(of: Message): Message {
  return {
    ...of,
    content: "",
    mentions: [],
    version: of.version + 1,
    deleted: { at: time, by: of.author.id, kind: "author" },
  };
}

/** Messages `from` to `to` as the server would page them out of a thread of `last` messages. */
export function page(from: number, to: number, last: number): MessagePage {
  const items = Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => message(from + at));
  return {
    items,
    next_cursor: null,
    has_before: from > 1,
    has_after: to < last,
    counters: counters(last),
    referenced: [],
  };
}

export function readState(change: Partial<ReadState> = {}): ReadState {
  return {
    thread_id: "thread",
    channel_id: "channel",
    last_read_thread_seq: 0,
    manually_unread_from: null,
    first_unread_thread_seq: null,
    unread_count: 0,
    unread_capped: false,
    mention_count: 0,
    as_of_thread_seq: 0,
    version: 1,
    updated_at: time,
    ...change,
  };
}

export function person(id: string, handle: string, change: Partial<Principal> = {}): Principal {
  return {
    id,
    kind: "person",
    handle,
    display_name: handle,
    status: "active",
    placeholder: false,
    owner: false,
    guest: false,
    title: null,
    pronouns: null,
    bio: null,
    time_zone: null,
    custom_status: null,
    avatar: null,
    version: 1,
    ...change,
  };
}

export function run(change: Partial<RunSummary> = {}): RunSummary {
  return {
    id: "run",
    agent_id: "agent",
    thread_id: "thread",
    channel_id: "channel",
    space_id: "space",
    trigger_kind: "message",
    trigger_message_id: null,
    triggered_by: me,
    parent_run_id: null,
    root_run_id: "run",
    chain_depth: 0,
    state: "running",
    end_reason: null,
    doc_version: 1,
    title: "",
    status_line: "",
    anchor_message_id: null,
    output_message_id: null,
    output_length: 0,
    agent_session_id: null,
    model: null,
    held_until: null,
    queued_at: time,
    delivered_at: null,
    started_at: null,
    last_activity_at: null,
    stall_warned_at: null,
    ended_at: null,
    cancel_requested_at: null,
    cancel_requested_by: null,
    cancel_reason: null,
    input_tokens: 0,
    output_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    cost: { amount: null, currency: null, state: "none", billing_mode: "organization" },
    error_code: null,
    error_message: null,
    followups: { pending: 0, mode: "queue" },
    sources: { outside: 0, restricted: 0 },
    ...change,
  };
}

export function snapshot(change: Partial<SnapshotPage> = {}): SnapshotPage {
  return {
    syncEpoch: "epoch",
    headSeq: 10,
    pageSeq: 10,
    nextCursor: null,
    instance: { name: "Hut", maxMessageBytes: 40_000 },
    self: { id: me, handle: "me", displayName: "Me", owner: false },
    spaces: [space()],
    channels: [channel()],
    threads: [thread()],
    readStates: [readState()],
    principals: [person(me, "me"), person(other, "other")],
    agents: [],
    runs: [],
    access: [["channel", { level: "trigger", capabilities: [] }]],
    ...change,
  };
}

/** A durable event. */
export function event(seq: number, type: string, data: unknown): Envelope {
  return { seq, type, data };
}

/** The event of a new message. */
export function created(seq: number, of: Message): Envelope {
  return event(seq, "message.created", { message: of, counters: counters(of.thread_seq) });
}

/** A clock that moves when it is told to. Timers run in the order of their time. */
export class FakeClock implements Clock {
  #now = 1_000_000;
  #timers: { at: number; call: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  readonly random = (): number => 0.5;

  after(milliseconds: number, call: () => void): () => void {
    const timer = { at: this.#now + milliseconds, call };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** Moves on and runs what falls due, letting promises settle in between. */
  async advance(milliseconds: number): Promise<void> {
    const until = this.#now + milliseconds;
    for (;;) {
      await settle();
      const next = this.#timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.at);
      next.call();
    }
    this.#now = until;
    await settle();
  }
}

/** Lets everything that is already resolved run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}
