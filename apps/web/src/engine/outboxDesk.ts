// SPDX-License-Identifier: Apache-2.0
//
// What a tab may do with the outbox. Every tab writes to it; the runner of the leading one sends.
import type { Id } from "../api/types";
import { afterRestart, enqueue, type OutboxEntry, type OutboxWork, retryNow, wakeAll } from "./outbox";
import { type OutboxDeps, OutboxRunner } from "./outboxRunner";

interface Deps extends OutboxDeps {
  readonly newId: () => Id;
}

/** The outbox as the tab sees it: stored first, then shown, then sent. */
export class OutboxDesk {
  readonly #deps: Deps;
  readonly #runner: OutboxRunner;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#runner = new OutboxRunner(deps);
  }

  /** Begins to send; for the leading tab. */
  start(): void {
    this.#runner.start();
  }

  stop(): void {
    this.#runner.stop();
  }

  /** What a closed tab left behind. */
  async restore(): Promise<readonly OutboxEntry[]> {
    return afterRestart(await this.#deps.storage.loadOutbox(), this.#deps.clock.now());
  }

  async submit(work: OutboxWork): Promise<void> {
    const { storage, store, clock, newId } = this.#deps;
    const entry = enqueue(newId(), work, clock.now());
    await storage.putOutbox([entry]);
    store.update((state) => ({ ...state, outbox: [...state.outbox, entry] }));
    this.#changed();
  }

  /** Sends a failed or held entry again. */
  async retry(key: Id): Promise<void> {
    const { store, storage, clock } = this.#deps;
    store.update((state) => ({ ...state, outbox: retryNow(state.outbox, key, clock.now()) }));
    await storage.putOutbox(store.getState().outbox.filter((entry) => entry.key === key));
    this.#changed();
  }

  /** Gives an entry up. */
  async discard(key: Id): Promise<void> {
    const { store, storage } = this.#deps;
    store.update((state) => ({ ...state, outbox: state.outbox.filter((entry) => entry.key !== key) }));
    await storage.deleteOutbox([key]);
    this.#changed();
  }

  /** Another tab changed what is stored. */
  async reload(): Promise<void> {
    const stored = await this.#deps.storage.loadOutbox();
    this.#deps.store.update((state) => {
      const sending = new Set(state.outbox.filter((entry) => entry.state === "sending").map((entry) => entry.key));
      const outbox = stored.map((entry) => (sending.has(entry.key) ? { ...entry, state: "sending" as const } : entry));
      return { ...state, outbox };
    });
    this.#runner.pump();
  }

  /** Ends the waiting between attempts. */
  wake(): void {
    const { store, clock } = this.#deps;
    store.update((state) => ({ ...state, outbox: wakeAll(state.outbox, clock.now()) }));
    this.#runner.pump();
  }

  #changed(): void {
    this.#deps.onChange();
    this.#runner.pump();
  }
}
