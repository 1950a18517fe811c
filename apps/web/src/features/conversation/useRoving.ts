// SPDX-License-Identifier: Apache-2.0
import { type FocusEvent, type KeyboardEvent, type RefObject, useEffect } from "react";

/** One tab stop for a list of rows; arrows, Home and End move inside it. */
export interface Roving {
  /** Returns true when the key was used. */
  readonly onKeyDown: (event: KeyboardEvent<HTMLElement>) => boolean;
  readonly onFocus: (event: FocusEvent<HTMLElement>) => void;
  /** Key of the row an element lies in. */
  readonly keyOf: (target: EventTarget) => string | undefined;
}

/** Rows are the elements with `data-row` inside the list. */
export function useRoving(list: RefObject<HTMLElement | null>): Roving {
  const rows = () => [...(list.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
  const rowOf = (target: EventTarget) => (target instanceof Element ? target.closest<HTMLElement>("[data-row]") : null);

  // The last row is the way in until another one had the focus.
  useEffect(() => {
    const all = rows();
    if (all.length > 0 && !all.some((row) => row.tabIndex === 0)) {
      const last = all.at(-1);
      if (last !== undefined) last.tabIndex = 0;
    }
  });

  const move = (row: HTMLElement | undefined) => {
    if (row === undefined) return;
    for (const each of rows()) each.tabIndex = -1;
    row.tabIndex = 0;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };

  return {
    onKeyDown(event) {
      const current = rowOf(event.target);
      if (current !== event.target) return false;
      const all = rows();
      const at = current === null ? -1 : all.indexOf(current);
      if (event.key === "ArrowUp" && at > 0) move(all[at - 1]);
      else if (event.key === "ArrowDown" && at >= 0 && at < all.length - 1) move(all[at + 1]);
      else if (event.key === "Home") move(all[0]);
      else if (event.key === "End") move(all.at(-1));
      else if (event.key === "ArrowRight") current?.querySelector<HTMLElement>("[role=toolbar] button")?.focus();
      else return false;
      event.preventDefault();
      return true;
    },
    onFocus(event) {
      const row = rowOf(event.target);
      if (row === null || row.tabIndex === 0) return;
      for (const each of rows()) each.tabIndex = -1;
      row.tabIndex = 0;
    },
    keyOf: (target) => rowOf(target)?.dataset.key,
  };
}
