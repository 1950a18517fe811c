// SPDX-License-Identifier: Apache-2.0
//
// Tells the server how far the person has read: the newest position wins, at most one request in three seconds per
// thread. The store changes at once, so a number never outlives its reason.
import type { Id } from "../api/types";
import { Draft } from "../store/draft";
import type { Store } from "../store/store";
import { readPosition } from "../store/unread";
import type { Clock, EngineApi } from "./ports";

const pace = 3_000;

export interface ReadPositionsDeps {
  readonly api: EngineApi;
  readonly store: Store;
  readonly clock: Clock;
}

/** Acknowledges what was on the screen. */
export class ReadPositions {
  readonly #deps: ReadPositionsDeps;
  readonly #wanted = new Map<Id, { seq: number; clear: boolean }>();
  readonly #waiting = new Map<Id, () => void>();

  constructor(deps: ReadPositionsDeps) {
    this.#deps = deps;
  }

  /**
   * Marks a thread as read up to a message. `clearManual` also takes back a "mark unread"; only a deliberate act of the
   * person may do that.
   */
  acknowledge(threadId: Id, seq: number, clearManual: boolean): void {
    const read = this.#deps.store.getState().tables.readStates.get(threadId)?.value;
    const done =
      read !== undefined && readPosition(read) >= seq && (read.manually_unread_from === null || !clearManual);
    if (done) return;
    this.#show(threadId, seq, clearManual);
    const wanted = this.#wanted.get(threadId);
    this.#wanted.set(threadId, { seq: Math.max(seq, wanted?.seq ?? 0), clear: clearManual || wanted?.clear === true });
    if (!this.#waiting.has(threadId)) void this.#send(threadId);
  }

  /** Sends what is still waiting, when a place is left. */
  flush(threadId: Id): void {
    this.#waiting.get(threadId)?.();
    this.#waiting.delete(threadId);
    void this.#send(threadId);
  }

  async #send(threadId: Id): Promise<void> {
    const wanted = this.#wanted.get(threadId);
    if (wanted === undefined) return;
    this.#wanted.delete(threadId);
    this.#waiting.set(
      threadId,
      this.#deps.clock.after(pace, () => {
        this.#waiting.delete(threadId);
        void this.#send(threadId);
      }),
    );
    try {
      await this.#deps.api.updateReadState(threadId, wanted.seq, wanted.clear);
    } catch {
      // Kept for the next round; a later position replaces it.
      if (!this.#wanted.has(threadId)) this.#wanted.set(threadId, wanted);
    }
  }

  #show(threadId: Id, seq: number, clearManual: boolean): void {
    this.#deps.store.update((state) => {
      const draft = new Draft(state);
      const known = draft.get("readStates", threadId);
      if (known === undefined) return state;
      const { value: read, stamp } = known;
      const manual = clearManual ? null : read.manually_unread_from;
      const all = seq >= read.as_of_thread_seq && manual === null;
      draft.set(
        "readStates",
        threadId,
        {
          ...read,
          last_read_thread_seq: Math.max(read.last_read_thread_seq, seq),
          manually_unread_from: manual,
          ...(all ? { unread_count: 0, mention_count: 0, first_unread_thread_seq: null } : {}),
        },
        stamp,
      );
      return draft.state;
    });
  }
}
