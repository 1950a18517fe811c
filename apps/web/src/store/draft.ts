// SPDX-License-Identifier: Apache-2.0
import type { Id } from "../api/types";
import type { MessageWindow, Stamped, State, Tables } from "./state";
import { mergeMessages } from "./windows";

type Resource<N extends keyof Tables> = Tables[N] extends ReadonlyMap<Id, Stamped<infer T>> ? T : never;
type MapName = "access" | "windows" | "tombstones" | "presence" | "typing" | "loads";
type MapValue<N extends MapName> = State[N] extends ReadonlyMap<Id, infer T> ? T : never;

/**
 * A state under change. Tables are copied at the first write of a batch, so a batch of two thousand events copies each
 * table once and the former state stays as it was.
 */
export class Draft {
  #state: State;
  readonly #own = new Set<string>();

  constructor(base: State) {
    this.#state = base;
  }

  get state(): State {
    return this.#state;
  }

  /** Replaces top-level members. */
  assign(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
  }

  get<N extends keyof Tables>(name: N, id: Id): Stamped<Resource<N>> | undefined {
    return this.#state.tables[name].get(id) as Stamped<Resource<N>> | undefined;
  }

  /**
   * Stores a resource unless the known one is newer: by position when the new one is an older fact, by `version` when
   * the positions do not decide. Returns whether it was stored.
   */
  put<N extends keyof Tables>(name: N, id: Id, value: Resource<N>, stamp: number): boolean {
    const known = this.get(name, id);
    if (known !== undefined && (stamp < known.stamp || versionOf(value) < versionOf(known.value))) return false;
    if (known === undefined && (this.#state.tombstones.get(id) ?? -1) >= stamp) return false;
    this.set(name, id, value, stamp);
    return true;
  }

  /** Stores a resource without comparison. */
  set<N extends keyof Tables>(name: N, id: Id, value: Resource<N>, stamp: number): void {
    (this.#table(name) as Map<Id, Stamped<Resource<N>>>).set(id, { value, stamp });
  }

  remove(name: keyof Tables, id: Id, stamp: number): void {
    if (!this.#state.tables[name].has(id)) return;
    this.#table(name).delete(id);
    this.map("tombstones").set(id, stamp);
  }

  /** A writable copy of one of the plain maps. */
  map<N extends MapName>(name: N): Map<Id, MapValue<N>> {
    if (!this.#own.has(name)) {
      this.#own.add(name);
      this.#state = { ...this.#state, [name]: new Map(this.#state[name] as ReadonlyMap<Id, unknown>) };
    }
    return this.#state[name] as unknown as Map<Id, MapValue<N>>;
  }

  /** Changes the window of a thread, if there is one. */
  editWindow(threadId: Id, change: (window: MessageWindow) => MessageWindow): void {
    const window = this.#state.windows.get(threadId);
    if (window === undefined) return;
    const changed = change(window);
    if (changed !== window) this.map("windows").set(threadId, changed);
  }

  /** Puts one message over the known one of the same place when it is newer. */
  patchMessage(threadId: Id, message: MessageWindow["messages"][number]): void {
    this.editWindow(threadId, (window) => mergeMessages(window, [message]));
  }

  #table(name: keyof Tables): Map<Id, Stamped<unknown>> {
    const key = `tables.${name}`;
    if (!this.#own.has(key)) {
      this.#own.add(key);
      const copy = new Map<Id, Stamped<unknown>>(this.#state.tables[name]);
      this.#state = { ...this.#state, tables: { ...this.#state.tables, [name]: copy } };
    }
    return this.#state.tables[name] as unknown as Map<Id, Stamped<unknown>>;
  }
}

function versionOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const { version } = value as { version?: unknown };
  return typeof version === "number" ? version : 0;
}
