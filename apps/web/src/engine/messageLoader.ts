// SPDX-License-Identifier: Apache-2.0
//
// Pages of messages and single runs, loaded when they are looked at.
import { ApiError } from "../api/problem";
import type { Id, MessagePage } from "../api/types";
import { SignedOutError } from "../auth/session";
import { Draft } from "../store/draft";
import { newerCounters } from "../store/reduce";
import { isFinal } from "../store/runDocument";
import type { MessageWindow } from "../store/state";
import type { Store } from "../store/store";
import { appendPage, prependPage, refreshWith, windowOf } from "../store/windows";
import type { Answer, EngineApi, PagePosition } from "./ports";

const firstPage = 60;
const nextPage = 50;

export interface LoaderDeps {
  readonly api: EngineApi;
  readonly store: Store;
}

/** Loads what the store lacks. Each page and each run is under way at most once. */
export class MessageLoader {
  readonly #deps: LoaderDeps;
  readonly #busy = new Set<string>();

  constructor(deps: LoaderDeps) {
    this.#deps = deps;
  }

  /** Makes sure that the newest messages of a thread are there and true. */
  async open(threadId: Id): Promise<void> {
    const window = this.#window(threadId);
    if (window !== undefined && !window.stale && window.atEnd) return;
    await this.#load(threadId, {}, firstPage, (known, page, stamp) =>
      known === undefined ? windowOf(page, stamp) : refreshWith(known, page, stamp),
    );
  }

  /** Loads the stretch around one message and shows that instead of the newest. */
  async openAround(threadId: Id, target: number | Id): Promise<void> {
    await this.#load(threadId, { around: target }, firstPage, (_known, page, stamp) => windowOf(page, stamp));
  }

  async loadOlder(threadId: Id): Promise<void> {
    const first = this.#window(threadId)?.messages[0];
    if (first === undefined || this.#window(threadId)?.atStart === true) return;
    await this.#load(threadId, { before: first.thread_seq }, nextPage, (known, page, stamp) =>
      known === undefined ? windowOf(page, stamp) : prependPage(known, page),
    );
  }

  async loadNewer(threadId: Id): Promise<void> {
    const last = this.#window(threadId)?.messages.at(-1);
    if (last === undefined) {
      await this.open(threadId);
      return;
    }
    await this.#load(threadId, { after: last.thread_seq }, nextPage, (known, page, stamp) =>
      known === undefined ? windowOf(page, stamp) : appendPage(known, page, stamp),
    );
  }

  /** Goes to the newest messages of a window that shows older ones. */
  async openEnd(threadId: Id): Promise<void> {
    await this.#load(threadId, {}, firstPage, (_known, page, stamp) => windowOf(page, stamp));
  }

  async loadRun(runId: Id): Promise<void> {
    await this.#once(`run:${runId}`, async () => {
      const { value: run, stamp } = await this.#deps.api.run(runId);
      this.#deps.store.update((state) => {
        const draft = new Draft(state);
        const known = draft.get("runs", runId);
        const older = known !== undefined && known.value.doc_version > run.doc_version;
        if (!older || isFinal(run.state)) draft.set("runs", runId, run, Math.max(stamp, known?.stamp ?? 0));
        return draft.state;
      });
    });
  }

  #window(threadId: Id): MessageWindow | undefined {
    return this.#deps.store.getState().windows.get(threadId);
  }

  async #load(
    threadId: Id,
    position: PagePosition,
    limit: number,
    join: (known: MessageWindow | undefined, page: MessagePage, stamp: number) => MessageWindow,
  ): Promise<void> {
    await this.#once(`${threadId}:${JSON.stringify(position)}`, async () => {
      this.#mark(threadId, "loading");
      try {
        const answer = await this.#deps.api.messages(threadId, position, limit);
        this.#store(threadId, answer, join);
        this.#mark(threadId, undefined);
      } catch (cause) {
        this.#mark(threadId, isGone(cause) ? "gone" : "failed");
        if (cause instanceof ApiError || cause instanceof SignedOutError) return;
      }
    });
  }

  #store(
    threadId: Id,
    { value: page, stamp }: Answer<MessagePage>,
    join: (known: MessageWindow | undefined, page: MessagePage, stamp: number) => MessageWindow,
  ): void {
    this.#deps.store.update((state) => {
      const draft = new Draft(state);
      const joined = join(state.windows.get(threadId), page, stamp);
      draft.map("windows").set(threadId, joined);
      const thread = draft.get("threads", threadId);
      if (thread !== undefined) {
        const counters = newerCounters(thread.value.counters, page.counters);
        if (counters !== thread.value.counters)
          draft.set("threads", threadId, { ...thread.value, counters }, thread.stamp);
      }
      return draft.state;
    });
  }

  #mark(threadId: Id, mark: "loading" | "failed" | "gone" | undefined): void {
    this.#deps.store.update((state) => {
      if (state.loads.get(threadId) === mark) return state;
      const loads = new Map(state.loads);
      if (mark === undefined) loads.delete(threadId);
      else loads.set(threadId, mark);
      return { ...state, loads };
    });
  }

  async #once(key: string, work: () => Promise<void>): Promise<void> {
    if (this.#busy.has(key)) return;
    this.#busy.add(key);
    try {
      await work();
    } finally {
      this.#busy.delete(key);
    }
  }
}

function isGone(cause: unknown): boolean {
  return cause instanceof ApiError && (cause.problem.status === 404 || cause.problem.status === 410);
}
