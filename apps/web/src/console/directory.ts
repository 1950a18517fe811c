// SPDX-License-Identifier: Apache-2.0
//
// Names for identifiers. The pages of the console speak of members and places by identifiers; this asks for their names
// once, and for those it has not met one by one, so that a list of four thousand people is never loaded for a few rows.
import { createContext, useContext, useSyncExternalStore } from "react";
import { type ApiClient, body } from "../api/client";
import type { Channel, Group, Id, Space, Target } from "../api/types";
import type { AvatarShape } from "../ui/Avatar";

/** Who somebody is, as far as a row shows it. */
export interface Member {
  readonly id: Id;
  readonly name: string;
  readonly handle: string;
  readonly shape: AvatarShape;
  /** A group of members instead of a single one. */
  readonly group: boolean;
  readonly disabled: boolean;
}

/** What the directory knows; a new value after every change. */
export interface Known {
  readonly members: ReadonlyMap<Id, Member>;
  readonly spaces: readonly Space[];
  readonly channels: readonly Channel[];
  /** False until the places have been asked for. */
  readonly places: "loading" | "failed" | "ready";
}

interface Principal {
  readonly id: Id;
  readonly kind: string;
  readonly handle: string;
  readonly display_name: string;
  readonly status: string;
}

const empty: Known = { members: new Map(), spaces: [], channels: [], places: "loading" };

/** Most pages of places that are loaded; beyond, a place is reached from the chat. */
const mostPages = 25;

/** Names by identifier, for one visit of the console. */
export class Directory {
  readonly #api: ApiClient;
  readonly #listeners = new Set<() => void>();
  readonly #asked = new Set<Id>();
  #known: Known = empty;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly known = (): Known => this.#known;

  /** Asks for the places and for the groups. */
  load(): void {
    void this.#loadPlaces();
    void this.#loadGroups();
  }

  /** Takes over members another answer has named. */
  learn(principals: readonly Principal[]): void {
    this.#addMembers(principals.map(memberOf));
  }

  /** Takes over groups another answer has named. */
  learnGroups(groups: readonly Group[]): void {
    this.#addMembers(groups.map(memberOfGroup));
  }

  /** Takes over a channel that was changed here. */
  learnChannel(channel: Channel): void {
    const channels = this.#known.channels.map((each) => (each.id === channel.id ? channel : each));
    this.#set({ ...this.#known, channels });
  }

  /** Asks for a member nobody has named yet. One question for each, whatever asks. */
  want(id: Id): void {
    if (this.#known.members.has(id) || this.#asked.has(id)) return;
    this.#asked.add(id);
    this.#api.GET("/principals/{principal_id}", { params: { path: { principal_id: id } } }).then(
      (result) => this.learn([body(result)]),
      // Erased or not visible: the row says so by itself.
      () => undefined,
    );
  }

  async #loadPlaces(): Promise<void> {
    try {
      const [spaces, channels] = await Promise.all([
        everyPage(async (cursor) =>
          body(await this.#api.GET("/spaces", { params: { query: { limit: 200, ...cursor } } })),
        ),
        everyPage(async (cursor) =>
          body(await this.#api.GET("/channels", { params: { query: { limit: 200, ...cursor } } })),
        ),
      ]);
      const ordered = [...spaces].sort(byPosition);
      const inSpaces = channels.filter((channel) => channel.space_id !== null).sort(byPosition);
      this.#set({ ...this.#known, spaces: ordered, channels: inSpaces, places: "ready" });
    } catch {
      this.#set({ ...this.#known, places: "failed" });
    }
  }

  async #loadGroups(): Promise<void> {
    try {
      const page = body(await this.#api.GET("/groups", { params: { query: { limit: 200 } } }));
      this.learnGroups(page.items);
    } catch {
      // A group that is met without a name is shown as one.
    }
  }

  #addMembers(members: readonly Member[]): void {
    if (members.length === 0) return;
    const all = new Map(this.#known.members);
    for (const member of members) all.set(member.id, member);
    this.#set({ ...this.#known, members: all });
  }

  #set(known: Known): void {
    this.#known = known;
    for (const listener of this.#listeners) listener();
  }
}

function memberOf({ id, kind, handle, display_name: name, status }: Principal): Member {
  const shape = kind === "person" ? "person" : kind === "agent" ? "agent" : "machine";
  return { id, name, handle, shape, group: false, disabled: status !== "active" };
}

function memberOfGroup({ id, handle, name }: Group): Member {
  return { id, name, handle, shape: "machine", group: true, disabled: false };
}

function byPosition(a: { position_key: string; id: Id }, b: { position_key: string; id: Id }): number {
  const [left, right] = [`${a.position_key} ${a.id}`, `${b.position_key} ${b.id}`];
  return left < right ? -1 : left > right ? 1 : 0;
}

async function everyPage<T>(
  load: (cursor: { cursor?: string }) => Promise<{ items: readonly T[]; next_cursor: string | null }>,
): Promise<readonly T[]> {
  const found: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < mostPages; page += 1) {
    const answer = await load(cursor === null ? {} : { cursor });
    found.push(...answer.items);
    cursor = answer.next_cursor;
    if (cursor === null) break;
  }
  return found;
}

/** Provided by the console. */
export const DirectoryContext = createContext<Directory | null>(null);

/** The directory of this visit. */
export function useDirectory(): Directory {
  const directory = useContext(DirectoryContext);
  if (directory === null) throw new Error("used outside of the console");
  return directory;
}

/** What the directory knows by now. */
export function useKnown(): Known {
  const directory = useDirectory();
  return useSyncExternalStore(directory.subscribe, directory.known);
}

/** A member by identifier; asked for when unknown. */
export function useMember(id: Id): Member {
  const directory = useDirectory();
  const { members } = useKnown();
  directory.want(id);
  return (
    members.get(id) ?? { id, name: "Somebody", handle: "", shape: "person" as const, group: false, disabled: false }
  );
}

/** A target as addresses and queries write it. */
export function targetText(target: Target): string {
  return target.id === undefined ? target.kind : `${target.kind}:${target.id}`;
}

/** A target from an address; undefined when it is none. */
export function parseTarget(text: string): Target | undefined {
  if (text === "instance") return { kind: "instance" };
  const match = /^(space|channel|host):([0-9a-f-]{36})$/.exec(text);
  return match === null ? undefined : { kind: match[1] as Target["kind"], id: match[2] ?? "" };
}

/** Name of a place for a sentence. */
export function placeName(known: Known, target: Target): string {
  switch (target.kind) {
    case "instance":
      return "the whole instance";
    case "space":
      return known.spaces.find((space) => space.id === target.id)?.name ?? "a space";
    case "channel": {
      const channel = known.channels.find((each) => each.id === target.id);
      return channel === undefined ? "a channel" : `#${channel.name ?? ""}`;
    }
    default:
      return "a host";
  }
}
