// SPDX-License-Identifier: Apache-2.0
//
// Where the list stands. At the end new rows keep it at the end; elsewhere the first visible row stays where it is,
// whatever loads, streams, grows or shrinks around it.
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

const nearEnd = 40;

interface Anchor {
  readonly key: string;
  /** Distance of the row's top from the top of the list, in CSS pixels. */
  readonly top: number;
}

interface Options {
  readonly list: RefObject<HTMLElement | null>;
  readonly content: RefObject<HTMLElement | null>;
  /** Changes when rows changed. */
  readonly rows: unknown;
  /** Row to start at, a third from the top; undefined starts at the end. */
  readonly startAt: string | undefined;
  /** False until the first rows are there. */
  readonly ready: boolean;
  readonly onNearStart: () => void;
  readonly onNearEnd: () => void;
}

/** Position of the list and ways to change it. */
export interface Scroll {
  readonly atEnd: boolean;
  readonly onScroll: () => void;
  readonly toEnd: () => void;
}

/** Keeps the place of the reader. */
export function useScroll({ list, content, rows, startAt, ready, onNearStart, onNearEnd }: Options): Scroll {
  const stick = useRef(startAt === undefined);
  const anchor = useRef<Anchor | undefined>(undefined);
  const started = useRef(false);
  const lastTop = useRef(0);
  const [atEnd, setAtEnd] = useState(true);

  const measure = useCallback(() => {
    const box = list.current;
    if (box === null) return;
    const left = box.scrollHeight - box.scrollTop - box.clientHeight;
    // Text that grew between two frames looks like a distance from the end; only a movement upwards leaves the end.
    const leaves = !stick.current || box.scrollTop < lastTop.current - 1;
    stick.current = left <= nearEnd || !leaves;
    lastTop.current = box.scrollTop;
    setAtEnd(stick.current);
    anchor.current = stick.current ? undefined : firstVisible(box);
  }, [list]);

  const settle = useCallback(() => {
    const box = list.current;
    if (box === null) return;
    if (stick.current) {
      box.scrollTop = box.scrollHeight;
      lastTop.current = box.scrollTop;
      return;
    }
    const { current } = anchor;
    const row = current === undefined ? null : rowByKey(box, current.key);
    if (current === undefined || row === null) return;
    const moved = row.getBoundingClientRect().top - box.getBoundingClientRect().top - current.top;
    if (Math.abs(moved) >= 1) box.scrollTop += moved;
  }, [list]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of the rows is the reason to settle
  useLayoutEffect(() => {
    const box = list.current;
    if (!ready || box === null) return;
    if (!started.current) {
      started.current = true;
      const row = startAt === undefined ? null : rowByKey(box, startAt);
      if (row !== null) {
        box.scrollTop += row.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
        stick.current = false;
        measure();
        return;
      }
    }
    settle();
  }, [rows, ready, startAt, settle, measure, list]);

  // Pictures, streamed text and late fonts change heights without a change of rows.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list exists only once it is ready
  useEffect(() => {
    const box = list.current;
    const inner = content.current;
    if (box === null || inner === null) return;
    const observer = new ResizeObserver(settle);
    observer.observe(inner);
    observer.observe(box);
    return () => observer.disconnect();
  }, [list, content, settle, ready]);

  const onScroll = () => {
    const box = list.current;
    if (box === null || !started.current) return;
    measure();
    if (box.scrollTop < box.clientHeight * 2) onNearStart();
    if (box.scrollHeight - box.scrollTop - box.clientHeight < box.clientHeight * 2) onNearEnd();
  };

  const toEnd = () => {
    stick.current = true;
    anchor.current = undefined;
    setAtEnd(true);
    settle();
  };

  return { atEnd, onScroll, toEnd };
}

function rowByKey(box: HTMLElement, key: string): HTMLElement | null {
  return box.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
}

function firstVisible(box: HTMLElement): Anchor | undefined {
  const top = box.getBoundingClientRect().top;
  for (const row of box.querySelectorAll<HTMLElement>("[data-key]")) {
    const rect = row.getBoundingClientRect();
    if (rect.bottom > top + 1) return { key: row.dataset.key ?? "", top: rect.top - top };
  }
  return undefined;
}
