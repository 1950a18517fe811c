// SPDX-License-Identifier: Apache-2.0
//
// A gateway and an API in memory that can be cut, delayed and made to lose answers.
import { NetworkError } from "../src/api/problem";
import type { Message } from "../src/api/types";
import type { OutboxEntry } from "../src/engine/outbox";
import type { EngineApi, Frame, OpenSocket, SocketHandlers, Storage } from "../src/engine/ports";
import type { TabHandlers, Tabs } from "../src/engine/tabs";
import type { Envelope } from "../src/store/reduce";
import type { LogState } from "../src/store/state";
import { counters, created, me, message, snapshot } from "./builders";

/** The server. */
export class FakeServer {
  readonly log: Envelope[] = [];
  readonly messages: Message[] = [];
  readonly sent: Frame[] = [];
  epoch = "epoch";
  head = 10;
  /** Requests fail without an answer while it is down. */
  down = false;
  /** The next write is done, but its answer is lost. */
  loseAnswer = false;
  /** Takes frames and answers none, as after a cut that nobody noticed. */
  silent = false;
  connections = 0;
  #client: SocketHandlers | undefined;

  readonly open: OpenSocket = (handlers) => {
    this.connections += 1;
    this.#client = handlers;
    queueMicrotask(() => {
      if (this.down) handlers.onClose(1006, "");
      else this.#frame("hello", { heartbeat_interval_ms: 20_000, dpop_nonce: "n", sync_epoch: this.epoch });
    });
    return {
      send: (frame) => {
        this.sent.push(frame);
        if (this.silent) return;
        if (frame.op === "identify") queueMicrotask(() => this.#identify(frame.d as { cursor?: number }));
        if (frame.op === "heartbeat")
          queueMicrotask(() => this.#frame("heartbeat_ack", { cursor: this.head, interval_ms: 20_000 }));
      },
      close: () => {
        this.#client = undefined;
      },
    };
  };

  /** Ends the connection. */
  close(code: number, reason = ""): void {
    const client = this.#client;
    this.#client = undefined;
    client?.onClose(code, reason);
  }

  /** Writes a message and tells whoever listens. */
  post(change: Partial<Message> = {}): Message {
    const made = message(this.messages.length + 1, change);
    this.messages.push(made);
    this.head += 1;
    const event = created(this.head, made);
    this.log.push(event);
    this.#frame("dispatch", event);
    return made;
  }

  /** Sends a frame as it is. */
  push(op: string, d: unknown): void {
    this.#frame(op, d);
  }

  readonly api: EngineApi = {
    snapshot: async () => {
      this.#reach();
      return snapshot({ syncEpoch: this.epoch, headSeq: this.head, pageSeq: this.head });
    },
    messages: async () => {
      this.#reach();
      const value = { items: [...this.messages], next_cursor: null, has_before: false, has_after: false };
      return { value: { ...value, counters: counters(this.messages.length), referenced: [] }, stamp: this.head };
    },
    message: async (id) => {
      this.#reach();
      return { value: this.messages.find((each) => each.id === id) ?? message(1), stamp: this.head };
    },
    run: async () => {
      throw new NetworkError("none");
    },
    createMessage: async (_thread, key, content) => {
      this.#reach();
      const author = { kind: "person" as const, id: me, label: null };
      const known = this.messages.find((each) => each.client_msg_id === key);
      const made = known ?? this.post({ client_msg_id: key, content, author });
      this.#answer();
      return { value: made, stamp: this.head };
    },
    updateMessage: async () => {
      this.#reach();
      return { value: message(1), stamp: this.head };
    },
    deleteMessage: async () => this.#reach(),
    updateReadState: async () => this.#reach(),
  };

  #identify(d: { cursor?: number }): void {
    const cursor = d.cursor ?? this.head;
    const missed = this.log.filter((event) => (event.seq ?? 0) > cursor);
    this.#frame("ready", { catchup: missed.length === 0 ? null : { from_seq: cursor + 1, to_seq: this.head } });
    if (missed.length > 0) this.#frame("catchup.page", { events: missed, through_seq: this.head, to_seq: this.head });
    this.#frame("catchup.complete", { cursor: this.head });
  }

  #frame(op: string, d: unknown): void {
    this.#client?.onFrame({ op, d });
  }

  #reach(): void {
    if (this.down) throw new NetworkError("down");
  }

  #answer(): void {
    if (!this.loseAnswer) return;
    this.loseAnswer = false;
    throw new NetworkError("answer lost");
  }
}

/** Storage that outlives an engine, as the browser's does. */
export function memoryStorage(): Storage & { readonly outbox: Map<string, OutboxEntry>; log: LogState | undefined } {
  const outbox = new Map<string, OutboxEntry>();
  return {
    outbox,
    log: undefined,
    async loadLog() {
      return this.log;
    },
    async saveLog(state) {
      this.log = state;
    },
    loadOutbox: async () => [...outbox.values()],
    async putOutbox(entries) {
      for (const entry of entries) outbox.set(entry.key, entry);
    },
    async deleteOutbox(keys) {
      for (const key of keys) outbox.delete(key);
    },
  };
}

/** Tabs of one profile: the first to join leads, and the next one when it leaves. */
export class FakeTabs {
  readonly #joined: TabHandlers[] = [];

  tab(): Tabs {
    let mine: TabHandlers | undefined;
    return {
      join: (handlers) => {
        mine = handlers;
        this.#joined.push(handlers);
        if (this.#joined.length === 1) handlers.onLead();
        return () => {
          const led = this.#joined[0] === handlers;
          this.#joined.splice(this.#joined.indexOf(handlers), 1);
          if (led) this.#joined[0]?.onLead();
        };
      },
      post: (sent) => {
        for (const each of this.#joined) if (each !== mine) each.onMessage(structuredClone(sent));
      },
    };
  }
}
