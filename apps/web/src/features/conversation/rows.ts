// SPDX-License-Identifier: Apache-2.0
//
// From messages to rows: day lines, the line of the first unread message, groups of one author, folded tombstones and
// what waits in the outbox.
import type { Id, Message } from "../../api/types";
import { dayKey } from "../../client/times";
import type { OutboxEntry } from "../../engine/outbox";
import type { MessageWindow } from "../../store/state";

/** One row of the list. `key` is stable as long as the row means the same. */
export type Row =
  | {
      readonly kind: "beginning";
      readonly key: string;
      /** Nobody has written anything here yet. */
      readonly empty: boolean;
    }
  | { readonly kind: "older"; readonly key: string }
  | { readonly kind: "day"; readonly key: string; readonly time: string }
  | { readonly kind: "new"; readonly key: string }
  | {
      readonly kind: "message";
      readonly key: string;
      readonly message: Message;
      /** First of a group: shows who speaks. */
      readonly head: boolean;
      /** Work on this message that the server has not answered yet. */
      readonly pending: OutboxEntry | undefined;
    }
  | { readonly kind: "run"; readonly key: string; readonly message: Message; readonly runId: Id }
  | { readonly kind: "system"; readonly key: string; readonly message: Message }
  | { readonly kind: "gone"; readonly key: string; readonly count: number; readonly message: Message }
  | { readonly kind: "echo"; readonly key: string; readonly entry: OutboxEntry; readonly head: boolean };

const groupWithin = 5 * 60_000;
const foldAbove = 3;

interface Input {
  readonly window: MessageWindow;
  readonly outbox: readonly OutboxEntry[];
  readonly me: Id | undefined;
  /** First unread message at the moment the place was opened. */
  readonly newFrom: number | undefined;
}

/** Builds the rows of a window. */
export function rowsOf({ window, outbox, me, newFrom }: Input): Row[] {
  const empty = window.messages.length === 0 && !outbox.some((entry) => entry.work.kind === "create");
  const rows: Row[] = [
    window.atStart ? { kind: "beginning", key: "beginning", empty } : { kind: "older", key: "older" },
  ];
  const pending = new Map<Id, OutboxEntry>();
  for (const entry of outbox) if (entry.work.kind !== "create") pending.set(entry.work.messageId, entry);

  let day = "";
  let former: Message | undefined;
  for (const message of window.messages) {
    const today = dayKey(message.created_at);
    if (today !== day) {
      rows.push({ kind: "day", key: `day-${today}`, time: message.created_at });
      day = today;
      former = undefined;
    }
    if (message.thread_seq === newFrom) {
      rows.push({ kind: "new", key: "new" });
      former = undefined;
    }
    rows.push(rowOf(message, former, pending.get(message.id)));
    former = message;
  }
  return [...foldTombstones(rows), ...echoes(window, outbox, former, me)];
}

function rowOf(message: Message, former: Message | undefined, pending: OutboxEntry | undefined): Row {
  const key = message.client_msg_id ?? message.id;
  if (message.deleted !== null) return { kind: "gone", key, count: 1, message };
  if (message.kind === "system") return { kind: "system", key, message };
  if (message.kind === "run" && message.run_id !== null) return { kind: "run", key, message, runId: message.run_id };
  return { kind: "message", key, message, head: !continues(former, message), pending };
}

function continues(former: Message | undefined, message: Message): boolean {
  return (
    former !== undefined &&
    former.kind === "message" &&
    former.deleted === null &&
    former.author.id === message.author.id &&
    former.author.label === message.author.label &&
    Date.parse(message.created_at) - Date.parse(former.created_at) < groupWithin
  );
}

function foldTombstones(rows: readonly Row[]): Row[] {
  const folded: Row[] = [];
  let at = 0;
  while (at < rows.length) {
    const row = rows[at];
    if (row === undefined) break;
    let end = at;
    while (rows[end]?.kind === "gone") end += 1;
    const count = end - at;
    if (row.kind === "gone" && count > foldAbove) {
      folded.push({ ...row, count });
      at = end;
    } else {
      folded.push(row);
      at += 1;
    }
  }
  return folded;
}

/** Own messages on their way. One whose answer arrived is left out: the message itself is there. */
function echoes(
  window: MessageWindow,
  outbox: readonly OutboxEntry[],
  last: Message | undefined,
  me: Id | undefined,
): Row[] {
  const known = new Set(window.messages.slice(-100).map((message) => message.client_msg_id));
  const waiting = outbox.filter((entry) => entry.work.kind === "create" && !known.has(entry.key));
  return waiting.map((entry, at) => {
    const follows = at > 0 || (last?.kind === "message" && last.author.id === me && last.deleted === null);
    return { kind: "echo" as const, key: entry.key, entry, head: !follows };
  });
}

/** Rows of one day. Grouped, so that the line of a day stays in view exactly as long as the day. */
export interface DayGroup {
  readonly key: string;
  readonly rows: readonly Row[];
}

/** Splits rows before each day line. */
export function byDay(rows: readonly Row[]): DayGroup[] {
  const groups: { key: string; rows: Row[] }[] = [];
  for (const row of rows) {
    const open = groups.at(-1);
    if (row.kind === "day" || open === undefined) groups.push({ key: row.key, rows: [row] });
    else open.rows.push(row);
  }
  return groups;
}
