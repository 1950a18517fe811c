// SPDX-License-Identifier: Apache-2.0
//
// Read positions and the numbers that follow from them. A number and the list behind it come from the same tables.
import type { Channel, Id, Message, ReadState } from "../api/types";
import type { State } from "./state";

/** Position up to which the thread counts as read. */
export function readPosition(state: ReadState): number {
  if (state.manually_unread_from === null) return state.last_read_thread_seq;
  return Math.min(state.manually_unread_from - 1, state.last_read_thread_seq);
}

/** True for messages that may count as unread for somebody else than their author. */
export function isCountable(message: Message): boolean {
  return message.kind === "message" && message.deleted === null && !message.imported;
}

function mentions(message: Message, me: Id): boolean {
  return message.mentions.some((mention) => mention.kind === "principal" && mention.id === me && !mention.silent);
}

/** A row for a thread that had no message worth counting so far. */
export function freshReadState(threadId: Id, channelId: Id, upTo: number): ReadState {
  return {
    thread_id: threadId,
    channel_id: channelId,
    last_read_thread_seq: upTo,
    manually_unread_from: null,
    first_unread_thread_seq: null,
    unread_count: 0,
    unread_capped: false,
    mention_count: 0,
    as_of_thread_seq: upTo,
    version: 0,
    updated_at: "1970-01-01T00:00:00.000Z",
  };
}

/** The state after an own message: writing reads everything before (rule R4 of chapter 04). */
function readByWriting(state: ReadState, message: Message): ReadState {
  return {
    ...freshReadState(state.thread_id, state.channel_id, message.thread_seq),
    version: state.version + 1,
    updated_at: message.created_at,
  };
}

/** Counts a message that was just created. */
export function countCreated(state: ReadState, message: Message, me: Id): ReadState {
  if (message.thread_seq <= state.as_of_thread_seq) return state;
  if (message.kind === "message" && message.author.id === me) return readByWriting(state, message);
  const counted = { ...state, as_of_thread_seq: message.thread_seq };
  if (!isCountable(message) || message.thread_seq <= readPosition(state)) return counted;
  return {
    ...counted,
    first_unread_thread_seq: state.first_unread_thread_seq ?? message.thread_seq,
    unread_count: state.unread_count + 1,
    mention_count: state.mention_count + (mentions(message, me) ? 1 : 0),
  };
}

/** Takes a deleted message out of the count. `before` is the message as it was, when it is still known. */
export function countDeleted(state: ReadState, tombstone: Message, before: Message | undefined, me: Id): ReadState {
  const unread = tombstone.thread_seq > readPosition(state) && tombstone.thread_seq <= state.as_of_thread_seq;
  const counted = before === undefined ? tombstone.kind === "message" && !tombstone.imported : isCountable(before);
  if (!unread || !counted || tombstone.author.id === me || state.unread_count === 0) return state;
  const mentioned = before !== undefined && mentions(before, me);
  return {
    ...state,
    unread_count: state.unread_count - 1,
    mention_count: Math.max(0, state.mention_count - (mentioned ? 1 : 0)),
  };
}

/** What a row of the sidebar shows. */
export interface Unread {
  /** Something countable is above the read position. */
  readonly unread: boolean;
  /** The number that is meant for this person: mentions, in direct messages every message. */
  readonly count: number;
}

const nothing: Unread = { unread: false, count: 0 };

/** Unread of one thread, by the rule of its channel. */
export function threadUnread(state: State, channel: Channel, threadId: Id): Unread {
  const read = state.tables.readStates.get(threadId)?.value;
  if (read === undefined) return nothing;
  const manual = read.manually_unread_from === null ? 0 : 1;
  const unread = Math.max(read.unread_count, manual);
  if (unread === 0) return nothing;
  return { unread: true, count: channel.kind === "dm" ? unread : read.mention_count };
}

/** Unread of every channel that has some: the union over its threads. */
export function unreadByChannel(state: State): ReadonlyMap<Id, Unread> {
  const found = new Map<Id, Unread>();
  for (const { value: thread } of state.tables.threads.values()) {
    const channel = state.tables.channels.get(thread.channel_id)?.value;
    if (channel === undefined || channel.archived !== null) continue;
    const one = threadUnread(state, channel, thread.id);
    if (!one.unread) continue;
    const sum = found.get(channel.id) ?? nothing;
    found.set(channel.id, { unread: true, count: sum.count + one.count });
  }
  return found;
}

/** What a place without unread messages shows. */
export const noUnread = nothing;

/** Sum over all places, for the title of the tab; 999 at most. */
export function totalUnread(state: State): number {
  let total = 0;
  for (const { count } of unreadByChannel(state).values()) total += count;
  return Math.min(total, 999);
}
