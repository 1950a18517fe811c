// SPDX-License-Identifier: Apache-2.0
//
// The little world the development server tells of. It follows the contract, not the server's inner life.
import { randomUUID } from "node:crypto";
import type { Agent, Channel, Grant, Message, Principal, ReadState, Run, Space, Thread } from "../src/api/types";

/** An event with the people who may see it; none means everybody. */
export interface LoggedEvent {
  readonly envelope: Record<string, unknown>;
  readonly only: string | undefined;
}

const now = () => new Date().toISOString();

/** Everything there is. */
export class World {
  readonly instanceId = randomUUID();
  readonly epoch = randomUUID();
  readonly principals = new Map<string, Principal>();
  readonly passwords = new Map<string, string>();
  readonly codes = new Map<string, string>();
  readonly spaces = new Map<string, Space>();
  readonly channels = new Map<string, Channel>();
  readonly threads = new Map<string, Thread>();
  readonly messages = new Map<string, Message[]>();
  readonly reads = new Map<string, ReadState>();
  readonly agents = new Map<string, Agent>();
  readonly runs = new Map<string, Run>();
  readonly grants = new Map<string, Grant>();
  readonly everyone = randomUUID();
  readonly log: LoggedEvent[] = [];
  listener: (event: LoggedEvent) => void = () => {};
  ephemeral: (event: Record<string, unknown>, thread: string | undefined, except?: string) => void = () => {};
  #seq = 0;

  get head(): number {
    return this.#seq;
  }

  append(type: string, data: unknown, only?: string): number {
    this.#seq += 1;
    const envelope = {
      seq: this.#seq,
      event_id: randomUUID(),
      type,
      occurred_at: now(),
      actor: { id: null, kind: "system" },
      place: null,
      personal: only !== undefined,
      data,
    };
    const event = { envelope, only };
    this.log.push(event);
    this.listener(event);
    return this.#seq;
  }

  person(handle: string, name: string, owner = false): Principal {
    const person: Principal = {
      id: randomUUID(),
      kind: "person",
      handle,
      display_name: name,
      status: "active",
      placeholder: false,
      owner,
      guest: false,
      title: null,
      pronouns: null,
      bio: null,
      time_zone: "Europe/Berlin",
      custom_status: null,
      avatar: null,
      version: 1,
    };
    this.principals.set(person.id, person);
    this.append("user.updated", { change: ["created"], user: person });
    return person;
  }

  space(name: string): Space {
    const space: Space = {
      id: randomUUID(),
      name,
      description: "",
      icon: null,
      color: null,
      position_key: `a${this.spaces.size}`,
      operator_agent_id: null,
      archived: null,
      created_at: now(),
      created_by: "",
      version: 1,
    };
    this.spaces.set(space.id, space);
    this.append("space.created", space);
    return space;
  }

  channel(space: Space, name: string, topic = ""): Channel {
    const main = randomUUID();
    const channel: Channel = {
      id: randomUUID(),
      kind: "text",
      space_id: space.id,
      name,
      topic,
      icon: null,
      position_key: `a${this.channels.size}`,
      inherits: true,
      main_thread_id: main,
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
      created_at: now(),
      created_by: "",
      version: 1,
    };
    this.channels.set(channel.id, channel);
    this.append("channel.created", channel);
    this.thread(channel, "main", main);
    return channel;
  }

  thread(channel: Channel, kind: Thread["kind"], id: string = randomUUID(), parent: string | null = null): Thread {
    const thread: Thread = {
      id,
      channel_id: channel.id,
      space_id: channel.space_id,
      kind,
      title: kind === "main" ? null : "Thread",
      title_source: kind === "main" ? "none" : "auto",
      parent_message_id: parent,
      state: "open",
      closed: null,
      tag_ids: [],
      created_at: now(),
      created_by: null,
      counters: {
        rev: 0,
        first_thread_seq: 1,
        last_thread_seq: 0,
        last_countable_seq: 0,
        message_count: 0,
        last_message_at: now(),
      },
      version: 1,
    };
    this.threads.set(id, thread);
    this.messages.set(id, []);
    this.append("thread.created", thread);
    return thread;
  }

  agent(handle: string, name: string): Agent {
    const principal: Principal = { ...this.person(handle, name), kind: "agent" };
    this.principals.set(principal.id, principal);
    const agent: Agent = {
      principal_id: principal.id,
      handle,
      display_name: name,
      avatar: null,
      status: "active",
      description: "",
      billing_mode: "organization",
      credential_holder_id: null,
      tool_class: "chat",
      max_concurrent_runs: 4,
      allowed_models: [],
      untrusted_context: "mark",
      max_trigger_age_ms: null,
      run_cost_limit: null,
      budget_amount: null,
      budget_currency: null,
      budget_period: null,
      budget_action: "warn",
      budget_state: "ok",
      budget_period_start: null,
      version: 1,
      created_at: now(),
      created_by: "",
      updated_at: now(),
      runtime: {
        presence_state: "online",
        last_heartbeat_at: now(),
        reported_billing_mode: "organization",
        reported_tool_class: "chat",
        reported_modes: null,
        billing_evidence: null,
        runtime_version: null,
        capabilities: null,
        degraded_reasons: [],
        adapter: null,
        warnings: [],
      },
    };
    this.agents.set(principal.id, agent);
    this.append("agent.updated", agent);
    return agent;
  }

  /** Writes a message; `at` back-dates it for the seed. */
  post(threadId: string, author: Principal, content: string, extra: Partial<Message> = {}): Message {
    const thread = this.threads.get(threadId);
    const list = this.messages.get(threadId);
    if (thread === undefined || list === undefined) throw new Error("no such thread");
    const { content: canonical, mentions } = this.#mentions(content);
    const message: Message = {
      id: randomUUID(),
      kind: "message",
      channel_id: thread.channel_id,
      space_id: thread.space_id,
      thread_id: threadId,
      thread_seq: list.length + 1,
      version: 1,
      revision: 1,
      author: { kind: author.kind, id: author.id, label: null },
      created_at: now(),
      edited_at: null,
      imported: false,
      client_msg_id: null,
      notify: "normal",
      content: canonical,
      dialect: 1,
      mentions,
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
      ...extra,
    };
    list.push(message);
    const countable = message.kind === "message";
    thread.counters = {
      ...thread.counters,
      rev: thread.counters.rev + 1,
      last_thread_seq: message.thread_seq,
      last_countable_seq: countable ? message.thread_seq : thread.counters.last_countable_seq,
      message_count: thread.counters.message_count + (countable ? 1 : 0),
      last_message_at: message.created_at,
    };
    this.append("message.created", { message, counters: thread.counters });
    if (author.kind === "person") this.read(author.id, threadId, message.thread_seq);
    return message;
  }

  #mentions(content: string): Pick<Message, "content" | "mentions"> {
    const mentions: Message["mentions"] = [];
    const canonical = content.replace(/(^|[^\w.\-/@#])@([\w.-]+)/g, (whole, before: string, name: string) => {
      const found = [...this.principals.values()].find(
        (one) => one.handle === name.replace(/[._-]+$/, "").toLowerCase(),
      );
      if (found === undefined) return whole;
      mentions.push({ kind: "principal", id: found.id, label: found.display_name, silent: false });
      return `${before}<@${found.id}>${name.slice(found.handle.length)}`;
    });
    return { content: canonical, mentions };
  }

  find(messageId: string): Message | undefined {
    for (const list of this.messages.values()) {
      const found = list.find((message) => message.id === messageId);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  replace(message: Message, type: string, cause?: string): number {
    const list = this.messages.get(message.thread_id) ?? [];
    list[message.thread_seq - 1] = message;
    const counters = this.threads.get(message.thread_id)?.counters;
    return this.append(type, cause === undefined ? { message, counters } : { message, cause });
  }

  readState(principalId: string, threadId: string): ReadState {
    const thread = this.threads.get(threadId);
    const key = `${principalId}/${threadId}`;
    const known = this.reads.get(key);
    const position = known?.last_read_thread_seq ?? 0;
    const from = known?.manually_unread_from ?? null;
    const r = from === null ? position : from - 1;
    const unread = (this.messages.get(threadId) ?? []).filter(
      (message) =>
        message.thread_seq > r &&
        message.kind === "message" &&
        message.deleted === null &&
        message.author.id !== principalId,
    );
    return {
      thread_id: threadId,
      channel_id: thread?.channel_id ?? "",
      last_read_thread_seq: position,
      manually_unread_from: from,
      first_unread_thread_seq: unread[0]?.thread_seq ?? null,
      unread_count: unread.length,
      unread_capped: false,
      mention_count: unread.filter((message) => message.mentions.some((mention) => mention.id === principalId)).length,
      as_of_thread_seq: thread?.counters.last_thread_seq ?? 0,
      version: known?.version ?? 0,
      updated_at: now(),
    };
  }

  read(principalId: string, threadId: string, seq: number, manual: number | null = null): ReadState {
    const before = this.readState(principalId, threadId);
    this.reads.set(`${principalId}/${threadId}`, {
      ...before,
      last_read_thread_seq: Math.max(before.last_read_thread_seq, seq),
      manually_unread_from: manual,
      version: before.version + 1,
    });
    const after = this.readState(principalId, threadId);
    this.append("read_state.updated", { read_states: [after] }, principalId);
    return after;
  }
}
