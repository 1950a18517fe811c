// SPDX-License-Identifier: Apache-2.0
//
// What rests in the browser for one principal of one instance. The log state is one record that holds its cursor, so
// data and position are written together or not at all; it can be dropped at any time. The outbox is the person's own
// and goes only when it was sent or given up.
import { type DBSchema, deleteDB, type IDBPDatabase, openDB } from "idb";
import type { Id } from "../api/types";
import type { LogState, MessageWindow } from "../store/state";
import type { OutboxEntry } from "./outbox";
import type { Storage } from "./ports";

/** Raise with every change of shape of the log state: the stored one is then ignored and loaded anew. */
const logVersion = 1;
/** Threads and messages kept for the next start. */
const keptThreads = 30;
const keptMessages = 60;

interface LogRecord extends LogState {
  readonly logVersion: number;
}

interface StoredSchema extends DBSchema {
  log: { key: "state"; value: LogRecord };
  outbox: { key: Id; value: OutboxEntry };
  drafts: { key: Id; value: string };
}

/** Storage with the texts that are being written, which the engine does not need. */
export interface BrowserStorage extends Storage {
  loadDraft(threadId: Id): Promise<string>;
  saveDraft(threadId: Id, text: string): Promise<void>;
  /** Forgets what came from the server and keeps what the person made. */
  dropLog(): Promise<void>;
  close(): void;
}

function databaseName(instanceId: Id, principalId: Id): string {
  return `bothy-${instanceId}-${principalId}`;
}

/** Opens the database of a principal. */
export async function openStorage(instanceId: Id, principalId: Id): Promise<BrowserStorage> {
  const db = await openDB<StoredSchema>(databaseName(instanceId, principalId), 1, {
    upgrade(database) {
      database.createObjectStore("log");
      database.createObjectStore("outbox", { keyPath: "key" });
      database.createObjectStore("drafts");
    },
    blocking(_current, _blocked, event) {
      // Another tab deletes or upgrades the database; holding on would block it.
      (event.target as IDBDatabase).close();
    },
  });
  return storageOn(db);
}

/** Deletes everything stored for a principal. */
export async function deleteStorage(instanceId: Id, principalId: Id): Promise<void> {
  await deleteDB(databaseName(instanceId, principalId));
}

function storageOn(db: IDBPDatabase<StoredSchema>): BrowserStorage {
  // A text that is still being kept when the person signs out comes too late: everything is about to be deleted.
  let closed = false;
  return {
    async loadLog() {
      const record = await db.get("log", "state");
      if (record === undefined || record.logVersion !== logVersion) return undefined;
      const { logVersion: _, ...log } = record;
      return log;
    },
    async saveLog(state) {
      if (closed) return;
      await db.put("log", { ...logPart(state), logVersion }, "state");
    },
    async loadOutbox() {
      const entries = await db.getAll("outbox");
      return entries.sort((a, b) => a.createdAt - b.createdAt || (a.key < b.key ? -1 : 1));
    },
    async putOutbox(entries) {
      if (closed) return;
      const tx = db.transaction("outbox", "readwrite", { durability: "strict" });
      await Promise.all([...entries.map((entry) => tx.store.put(entry)), tx.done]);
    },
    async deleteOutbox(keys) {
      if (closed) return;
      const tx = db.transaction("outbox", "readwrite", { durability: "strict" });
      await Promise.all([...keys.map((key) => tx.store.delete(key)), tx.done]);
    },
    async loadDraft(threadId) {
      return (await db.get("drafts", threadId)) ?? "";
    },
    async saveDraft(threadId, text) {
      if (closed) return;
      if (text === "") await db.delete("drafts", threadId);
      else await db.put("drafts", text, threadId);
    },
    dropLog: () => db.clear("log"),
    close() {
      closed = true;
      db.close();
    },
  };
}

/** The part of the state that follows the log, cut to what is worth keeping. */
export function logPart(state: LogState): LogState {
  const { tables, access, windows, tombstones, presence, instance, self, syncEpoch, cursor } = state;
  const kept = [...windows].slice(-keptThreads).map(([id, window]) => [id, newest(window)] as const);
  return { tables, access, windows: new Map(kept), tombstones, presence, instance, self, syncEpoch, cursor };
}

function newest(window: MessageWindow): MessageWindow {
  if (!window.atEnd || window.messages.length <= keptMessages) return window;
  return { ...window, messages: window.messages.slice(-keptMessages), atStart: false };
}
