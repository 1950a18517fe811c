// SPDX-License-Identifier: Apache-2.0
import { emptyState, type State } from "./state";

/** The one holder of state of a tab. Readers subscribe; only the engine writes. */
export class Store {
  #state: State = emptyState;
  readonly #listeners = new Set<() => void>();

  readonly getState = (): State => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Replaces the state and tells everybody once, if it changed. */
  update(change: (state: State) => State): void {
    const next = change(this.#state);
    if (next === this.#state) return;
    this.#state = next;
    for (const listener of this.#listeners) listener();
  }
}
