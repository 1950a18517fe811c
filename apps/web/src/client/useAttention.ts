// SPDX-License-Identifier: Apache-2.0
import { useSyncExternalStore } from "react";

function subscribe(listener: () => void): () => void {
  const names = ["focus", "blur"] as const;
  for (const name of names) window.addEventListener(name, listener);
  document.addEventListener("visibilitychange", listener);
  return () => {
    for (const name of names) window.removeEventListener(name, listener);
    document.removeEventListener("visibilitychange", listener);
  };
}

/** True while the tab is visible and has the focus: only then does the person read. */
export function useAttention(): boolean {
  return useSyncExternalStore(subscribe, () => document.visibilityState === "visible" && document.hasFocus());
}
