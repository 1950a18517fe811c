// SPDX-License-Identifier: Apache-2.0
//
// What the client knows, normalised and immutable. Everything on the screen is derived from this value.
import type {
  Access,
  Agent,
  Channel,
  Id,
  Message,
  Presence,
  Principal,
  ReadState,
  Run,
  Space,
  Thread,
} from "../api/types";
import type { OutboxEntry } from "../engine/outbox";

/** A resource with the log position up to which it is known to be true. */
export interface Stamped<T> {
  readonly value: T;
  readonly stamp: number;
}

export type Table<T> = ReadonlyMap<Id, Stamped<T>>;

/**
 * A stretch of a thread without holes: `messages` ascend by `thread_seq` and no number between the first and the last
 * is missing. There is one stretch per thread; a message that does not follow it sets `atEnd` to false instead of
 * opening a hole.
 */
export interface MessageWindow {
  readonly messages: readonly Message[];
  /** Nothing exists before the first message. */
  readonly atStart: boolean;
  /** The last message is the newest of the thread. */
  readonly atEnd: boolean;
  /** Loaded before a resync or a restart: shown, and loaded anew before it counts as true. */
  readonly stale: boolean;
  readonly stamp: number;
}

/** The resource tables by name. */
export interface Tables {
  readonly spaces: Table<Space>;
  readonly channels: Table<Channel>;
  readonly threads: Table<Thread>;
  readonly readStates: Table<ReadState>;
  readonly principals: Table<Principal>;
  readonly agents: Table<Agent>;
  readonly runs: Table<Run>;
}

/** What is known of the instance. */
export interface InstanceInfo {
  readonly name: string;
  readonly maxMessageBytes: number;
}

/** The signed-in person. */
export interface Self {
  readonly id: Id;
  readonly handle: string;
  readonly displayName: string;
  readonly owner: boolean;
}

/** Part of the state that follows the log and is written together with the cursor. */
export interface LogState {
  readonly tables: Tables;
  readonly access: ReadonlyMap<Id, Access>;
  readonly windows: ReadonlyMap<Id, MessageWindow>;
  /** Removed resources since the last resync, so that a late answer cannot bring one back. */
  readonly tombstones: ReadonlyMap<Id, number>;
  readonly presence: ReadonlyMap<Id, Presence>;
  readonly instance: InstanceInfo | null;
  readonly self: Self | null;
  readonly syncEpoch: string | null;
  /** Highest position that has been applied; null before the first snapshot. */
  readonly cursor: number | null;
}

/** Why the connection stands still for good. */
export type StopReason = "elsewhere" | "update_required" | "forbidden" | "setup" | "client_fault";

/** State of the connection; the interface derives from it alone. */
export type Connection =
  | { readonly state: "booting" }
  | { readonly state: "connecting"; readonly attempt: number; readonly since: number }
  | { readonly state: "catching_up"; readonly from: number; readonly through: number; readonly to: number }
  | { readonly state: "live"; readonly since: number }
  | { readonly state: "waiting"; readonly nextAt: number; readonly reason: string; readonly attempt: number }
  | { readonly state: "resyncing"; readonly reason: string; readonly page: number }
  | { readonly state: "stopped"; readonly reason: StopReason };

/** A new device that asks to be let in: an own one, or for owners that of somebody else. */
export interface WaitingDevice {
  readonly id: Id;
  readonly name: string;
  readonly principalId: Id;
  readonly principalName: string;
  /** When waiting ends by itself, in milliseconds since the epoch. */
  readonly until: number;
}

/** The whole state of a tab. */
export interface State extends LogState {
  readonly connection: Connection;
  /** When the tab last was live, in milliseconds since the epoch. */
  readonly lastLiveAt: number | null;
  readonly outbox: readonly OutboxEntry[];
  /** Per thread who types, until when in milliseconds since the epoch. */
  readonly typing: ReadonlyMap<Id, ReadonlyMap<Id, number>>;
  /** Threads whose messages are being fetched, or could not be. */
  readonly loads: ReadonlyMap<Id, "loading" | "failed" | "gone">;
  readonly waitingDevices: ReadonlyMap<Id, WaitingDevice>;
  /** Devices of which the log told that they wait no longer. */
  readonly decidedDevices: ReadonlySet<Id>;
}

const emptyTables: Tables = {
  spaces: new Map(),
  channels: new Map(),
  threads: new Map(),
  readStates: new Map(),
  principals: new Map(),
  agents: new Map(),
  runs: new Map(),
};

/** A client that knows nothing. */
export const emptyState: State = {
  tables: emptyTables,
  access: new Map(),
  windows: new Map(),
  tombstones: new Map(),
  presence: new Map(),
  instance: null,
  self: null,
  syncEpoch: null,
  cursor: null,
  connection: { state: "booting" },
  lastLiveAt: null,
  outbox: [],
  typing: new Map(),
  loads: new Map(),
  waitingDevices: new Map(),
  decidedDevices: new Set(),
};
