// SPDX-License-Identifier: Apache-2.0
import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    for (const each of listeners) each();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

const never = () => () => {};
/** Whole seconds, so that the value is the same for everybody who draws in between. */
const second = () => Math.floor(Date.now() / 1_000) * 1_000;

/** The time, ticking once a second by one timer for all. With `active` false nothing wakes the component. */
export function useNow(active = true): number {
  return useSyncExternalStore(active ? subscribe : never, second);
}
