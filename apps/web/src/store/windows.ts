// SPDX-License-Identifier: Apache-2.0
//
// Pure operations on the loaded stretch of a thread. Their common promise: the result has no hole.
import type { Message, MessagePage } from "../api/types";
import type { MessageWindow } from "./state";

/** Rows that stay in memory for the open thread; the far side is dropped beyond it. */
export const windowLimit = 400;

/** Window of a page that was asked for without a position, or around one. */
export function windowOf(page: MessagePage, stamp: number): MessageWindow {
  return { messages: page.items, atStart: !page.has_before, atEnd: !page.has_after, stale: false, stamp };
}

/** The newer of two states of one message. A tombstone is never overwritten by content. */
export function newerMessage(known: Message, next: Message): Message {
  if (known.deleted !== null && next.deleted === null) return known;
  return next.version >= known.version ? next : known;
}

/** Replaces messages that are in the window by newer states; others are left out. */
export function mergeMessages(window: MessageWindow, updates: readonly Message[]): MessageWindow {
  let messages: Message[] | undefined;
  for (const update of updates) {
    const at = indexOf(messages ?? window.messages, update.thread_seq);
    const known = (messages ?? window.messages)[at];
    if (known === undefined || known.id !== update.id) continue;
    const chosen = newerMessage(known, update);
    if (chosen === known) continue;
    messages ??= [...window.messages];
    messages[at] = chosen;
  }
  return messages === undefined ? window : { ...window, messages };
}

/**
 * Adds a message that was just created. One that does not follow the last message marks the window as not reaching the
 * end, and the caller loads the rest.
 */
export function appendMessage(window: MessageWindow, message: Message): MessageWindow {
  const last = window.messages.at(-1);
  if (last !== undefined && message.thread_seq <= last.thread_seq) return mergeMessages(window, [message]);
  const follows = last === undefined ? window.atStart && window.atEnd : message.thread_seq === last.thread_seq + 1;
  if (!window.atEnd || !follows) return window.atEnd ? { ...window, atEnd: false } : window;
  return trim({ ...window, messages: [...window.messages, message] }, "start");
}

/** Joins a page that was asked for before the first message. */
export function prependPage(window: MessageWindow, page: MessagePage): MessageWindow {
  const first = window.messages[0];
  const older = first === undefined ? page.items : page.items.filter((item) => item.thread_seq < first.thread_seq);
  return trim({ ...window, messages: [...older, ...window.messages], atStart: !page.has_before }, "end");
}

/** Joins a page that was asked for after the last message. */
export function appendPage(window: MessageWindow, page: MessagePage, stamp: number): MessageWindow {
  const last = window.messages.at(-1);
  const newer = last === undefined ? page.items : page.items.filter((item) => item.thread_seq > last.thread_seq);
  const joined = { ...window, messages: [...window.messages, ...newer], atEnd: !page.has_after, stamp };
  return trim(joined, "start");
}

/**
 * Takes the newest page for a window that may be stale: keeps the older rows when the two overlap or touch, otherwise
 * the page alone, because nothing is known about what lies between.
 */
export function refreshWith(window: MessageWindow, page: MessagePage, stamp: number): MessageWindow {
  const fresh = windowOf(page, stamp);
  const first = page.items[0];
  const last = window.messages.at(-1);
  if (first === undefined || last === undefined || last.thread_seq + 1 < first.thread_seq) return fresh;
  const older = window.messages.filter((message) => message.thread_seq < first.thread_seq);
  if (older.length === 0) return fresh;
  const beyond = page.has_after ? [] : window.messages.filter((message) => message.thread_seq > lastSeq(page));
  return { ...fresh, messages: [...older, ...page.items, ...beyond], atStart: window.atStart };
}

function lastSeq(page: MessagePage): number {
  return page.items.at(-1)?.thread_seq ?? 0;
}

function trim(window: MessageWindow, side: "start" | "end"): MessageWindow {
  const excess = window.messages.length - windowLimit;
  if (excess <= 0) return window;
  if (side === "start") return { ...window, messages: window.messages.slice(excess), atStart: false };
  return { ...window, messages: window.messages.slice(0, windowLimit), atEnd: false };
}

/** Index of a thread sequence number; -1 when the window does not hold it. */
export function indexOf(messages: readonly Message[], threadSeq: number): number {
  const first = messages[0];
  if (first === undefined) return -1;
  // Without holes the index follows from the number.
  const at = threadSeq - first.thread_seq;
  return messages[at]?.thread_seq === threadSeq ? at : messages.findIndex((item) => item.thread_seq === threadSeq);
}
