// SPDX-License-Identifier: Apache-2.0
import { useRef, useSyncExternalStore } from "react";
import type { State } from "../store/state";
import { useClient } from "./Client";

/**
 * Observes a value derived from the state. The component draws again only when the value changed by `equal`, so a
 * selection that builds a list names `sameItems`.
 */
export function useStore<T>(select: (state: State) => T, equal: (a: T, b: T) => boolean = Object.is): T {
  const { store } = useClient();
  const last = useRef<{ value: T } | null>(null);
  const getSnapshot = () => {
    const value = select(store.getState());
    if (last.current !== null && equal(last.current.value, value)) return last.current.value;
    last.current = { value };
    return value;
  };
  return useSyncExternalStore(store.subscribe, getSnapshot);
}

/** Equality of lists by their items. */
export function sameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, at) => Object.is(item, b[at]));
}

/** Equality of flat objects by their members. */
export function sameMembers<T extends object>(a: T, b: T): boolean {
  const keys = Object.keys(a) as (keyof T)[];
  return keys.length === Object.keys(b).length && keys.every((key) => Object.is(a[key], b[key]));
}
