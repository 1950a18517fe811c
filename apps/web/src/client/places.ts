// SPDX-License-Identifier: Apache-2.0
//
// Which places there are and what may be done in them.
import type { Access, Channel, Id, Level, Space } from "../api/types";
import { isFinal } from "../store/runDocument";
import type { State } from "../store/state";
import { noUnread, type Unread, unreadByChannel } from "../store/unread";
import { channelName } from "./names";

const order: readonly Level[] = ["read", "write", "trigger", "manage"];

/** True when the level is at least the asked one. */
export function atLeast(access: Pick<Access, "level"> | undefined, level: Level): boolean {
  return access?.level != null && order.indexOf(access.level) >= order.indexOf(level);
}

/** What the person may do in a channel. Owners may do everything. */
export function mayInChannel(state: State, channelId: Id, level: Level): boolean {
  return state.self?.owner === true || atLeast(state.access.get(channelId), level);
}

/** A row of the sidebar. */
export interface PlaceRow {
  readonly channel: Channel;
  readonly name: string;
  readonly unread: Unread;
  /** Runs that are under way in this place. */
  readonly liveRuns: number;
}

/** A space with the channels that can be opened. */
export interface SpaceGroup {
  readonly space: Space;
  readonly rows: readonly PlaceRow[];
}

/** What the sidebar lists. */
export interface Places {
  readonly spaces: readonly SpaceGroup[];
  readonly direct: readonly PlaceRow[];
}

/** Spaces with their channels in the order the team gave them, then direct messages, newest first. */
export function placesOf(state: State): Places {
  const live = liveRunsByChannel(state);
  const unread = unreadByChannel(state);
  const rows = [...state.tables.channels.values()]
    .map(({ value }) => value)
    .filter((channel) => channel.archived === null && channel.kind !== "forum")
    .map((channel) => ({
      channel,
      name: channelName(state, channel),
      unread: unread.get(channel.id) ?? noUnread,
      liveRuns: live.get(channel.id) ?? 0,
    }));
  const spaces = [...state.tables.spaces.values()]
    .map(({ value }) => value)
    .filter((space) => space.archived === null)
    .sort((a, b) => compare(a.position_key, b.position_key))
    .map((space) => ({
      space,
      rows: rows
        .filter((row) => row.channel.space_id === space.id)
        .sort((a, b) => compare(a.channel.position_key, b.channel.position_key) || compare(a.channel.id, b.channel.id)),
    }));
  const direct = rows
    .filter((row) => row.channel.kind === "dm")
    .sort((a, b) => compare(lastAt(state, b.channel), lastAt(state, a.channel)));
  return { spaces, direct };
}

function liveRunsByChannel(state: State): ReadonlyMap<Id, number> {
  const counts = new Map<Id, number>();
  for (const { value: run } of state.tables.runs.values()) {
    if (isFinal(run.state) || run.state === "queued") continue;
    counts.set(run.channel_id, (counts.get(run.channel_id) ?? 0) + 1);
  }
  return counts;
}

/** Runs that are under way in all places. */
export function liveRunCount(state: State): number {
  let count = 0;
  for (const { value: run } of state.tables.runs.values())
    if (!isFinal(run.state) && run.state !== "queued") count += 1;
  return count;
}

function lastAt(state: State, channel: Channel): string {
  const thread = channel.main_thread_id === null ? undefined : state.tables.threads.get(channel.main_thread_id)?.value;
  return thread?.counters.last_message_at ?? channel.created_at;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** All rows in the order they are shown. */
export function flatRows(places: Places): readonly PlaceRow[] {
  return [...places.spaces.flatMap((group) => group.rows), ...places.direct];
}

/** Equality that lets the sidebar rest when nothing it shows changed. */
export function samePlaces(a: Places, b: Places): boolean {
  return (
    a.spaces.length === b.spaces.length &&
    a.spaces.every((group, at) => group.space === b.spaces[at]?.space && sameRows(group.rows, b.spaces[at].rows)) &&
    sameRows(a.direct, b.direct)
  );
}

function sameRows(a: readonly PlaceRow[], b: readonly PlaceRow[]): boolean {
  return a.length === b.length && a.every((row, at) => sameRow(row, b[at]));
}

function sameRow(a: PlaceRow, b: PlaceRow | undefined): boolean {
  return (
    b !== undefined &&
    a.channel === b.channel &&
    a.name === b.name &&
    a.liveRuns === b.liveRuns &&
    a.unread.unread === b.unread.unread &&
    a.unread.count === b.unread.count
  );
}
