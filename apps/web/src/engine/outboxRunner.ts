// SPDX-License-Identifier: Apache-2.0
//
// Moves outbox entries from storage to the server. Only the leader runs one.
import { ApiError, isTransient, NetworkError } from "../api/problem";
import type { Id, Message } from "../api/types";
import { SignedOutError } from "../auth/session";
import { Draft } from "../store/draft";
import type { Store } from "../store/store";
import { appendMessage } from "../store/windows";
import { holdOld, markSending, nextWake, type OutboxEntry, type Outcome, sendable, settle } from "./outbox";
import type { Answer, Clock, EngineApi, Storage } from "./ports";

export interface OutboxDeps {
  readonly api: EngineApi;
  readonly store: Store;
  readonly storage: Storage;
  readonly clock: Clock;
  /** Other tabs read the outbox again. */
  readonly onChange: () => void;
}

/** Sends what waits, in order, as long as it takes. */
export class OutboxRunner {
  readonly #deps: OutboxDeps;
  #cancelWake: (() => void) | undefined;
  #running = false;

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#running = true;
    this.pump();
  }

  stop(): void {
    this.#running = false;
    this.#cancelWake?.();
  }

  /** Looks for work; cheap, and safe to call at any time. */
  pump(): void {
    if (!this.#running) return;
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    const now = this.#deps.clock.now();
    this.#change((entries) => holdOld(entries, now));
    const ready = sendable(this.#deps.store.getState().outbox, now);
    if (ready.length > 0) {
      const keys = new Set(ready.map((entry) => entry.key));
      this.#change((entries) => markSending(entries, keys));
      for (const entry of ready) void this.#send(entry);
      return;
    }
    const wake = nextWake(this.#deps.store.getState().outbox);
    if (wake !== undefined && wake > now) this.#cancelWake = this.#deps.clock.after(wake - now, () => this.pump());
  }

  async #send(entry: OutboxEntry): Promise<void> {
    const { outcome, message } = await this.#attempt(entry);
    const { clock, storage } = this.#deps;
    if (message !== undefined) this.#apply(message);
    this.#change((entries) => settle(entries, entry.key, outcome, clock.now(), clock.random));
    const left = this.#deps.store.getState().outbox.find((known) => known.key === entry.key);
    // Stored after the answer: a crash in between repeats the request, which the key makes harmless.
    await (left === undefined ? storage.deleteOutbox([entry.key]) : storage.putOutbox([left]));
    this.#deps.onChange();
    this.pump();
  }

  async #attempt(entry: OutboxEntry): Promise<{ outcome: Outcome; message?: Answer<Message> | undefined }> {
    const { api } = this.#deps;
    const { work, key } = entry;
    try {
      switch (work.kind) {
        case "create":
          return { outcome: { kind: "done" }, message: await api.createMessage(work.threadId, key, work.content) };
        case "edit":
          return {
            outcome: { kind: "done" },
            message: await api.updateMessage(work.messageId, key, work.version, work.content),
          };
        case "delete":
          await api.deleteMessage(work.messageId, key);
          return { outcome: { kind: "done" } };
      }
    } catch (cause) {
      return { outcome: await this.#judge(entry, cause) };
    }
  }

  async #judge(entry: OutboxEntry, cause: unknown): Promise<Outcome> {
    if (cause instanceof NetworkError || cause instanceof SignedOutError) return { kind: "retry" };
    if (!(cause instanceof ApiError)) return { kind: "refused", fault: { code: "client_fault" } };
    const { problem } = cause;
    if (isTransient(problem)) return { kind: "retry", after: problem.retryAfter };
    if (problem.status === 401) return { kind: "retry" };
    if (problem.code === "version_conflict" && entry.work.kind === "edit") return this.#rebase(entry.work);
    return { kind: "refused", fault: { code: problem.code, reason: problem.reason ?? problem.errors[0]?.code } };
  }

  /** An edit met a newer version: repeated when only the trigger state changed, shown when the text did. */
  async #rebase(work: { messageId: Id; revision: number }): Promise<Outcome> {
    try {
      const { value: current, stamp } = await this.#deps.api.message(work.messageId);
      this.#apply({ value: current, stamp });
      if (current.revision === work.revision) return { kind: "rebase", version: current.version };
      return { kind: "refused", fault: { code: "version_conflict", current: current.content } };
    } catch (cause) {
      if (cause instanceof ApiError && !isTransient(cause.problem)) {
        return { kind: "refused", fault: { code: cause.problem.code } };
      }
      return { kind: "retry" };
    }
  }

  /** Shows the answer at once; the event of the same message then changes nothing. */
  #apply({ value: message }: Answer<Message>): void {
    this.#deps.store.update((state) => {
      const draft = new Draft(state);
      draft.editWindow(message.thread_id, (window) => appendMessage(window, message));
      return draft.state;
    });
  }

  #change(change: (entries: readonly OutboxEntry[]) => readonly OutboxEntry[]): void {
    this.#deps.store.update((state) => {
      const outbox = change(state.outbox);
      return outbox === state.outbox ? state : { ...state, outbox };
    });
  }
}
