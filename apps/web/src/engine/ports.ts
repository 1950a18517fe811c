// SPDX-License-Identifier: Apache-2.0
//
// What the engine needs from outside. Real ones are made in src/app; tests give small fakes.
import type { Id, Message, MessagePage, Run } from "../api/types";
import type { SnapshotPage } from "../store/snapshot";
import type { LogState } from "../store/state";
import type { OutboxEntry } from "./outbox";

/** A resource and the log position its answer reflects. */
export interface Answer<T> {
  readonly value: T;
  readonly stamp: number;
}

/** Where a page of messages is asked for; none means the newest. */
export interface PagePosition {
  readonly before?: number;
  readonly after?: number;
  readonly around?: number | Id;
}

/** Requests of the engine. Each throws ApiError, NetworkError or SignedOutError. */
export interface EngineApi {
  snapshot(options: { cursor?: string; targets?: readonly string[] }): Promise<SnapshotPage>;
  messages(threadId: Id, position: PagePosition, limit: number): Promise<Answer<MessagePage>>;
  message(messageId: Id): Promise<Answer<Message>>;
  run(runId: Id): Promise<Answer<Run>>;
  createMessage(threadId: Id, key: Id, content: string): Promise<Answer<Message>>;
  updateMessage(messageId: Id, key: Id, version: number, content: string): Promise<Answer<Message>>;
  deleteMessage(messageId: Id, key: Id): Promise<void>;
  updateReadState(threadId: Id, lastRead: number, clearManual: boolean): Promise<void>;
}

/** A frame of the gateway. */
export interface Frame {
  readonly op: string;
  readonly id?: string;
  readonly d?: unknown;
}

/** One connection. Frames arrive in order; `onClose` comes once and is the last call. */
export interface Socket {
  send(frame: Frame): void;
  close(): void;
}

export interface SocketHandlers {
  readonly onFrame: (frame: Frame) => void;
  readonly onClose: (code: number, reason: string) => void;
}

export type OpenSocket = (handlers: SocketHandlers) => Socket;

/** Credentials for identify and reauth. */
export type GatewayCredentials = (nonce: string) => Promise<{ readonly token: string; readonly dpop: string }>;

/** What rests in the browser for one principal. */
export interface Storage {
  loadLog(): Promise<LogState | undefined>;
  /** Writes the log state and its cursor in one transaction. */
  saveLog(state: LogState): Promise<void>;
  loadOutbox(): Promise<OutboxEntry[]>;
  putOutbox(entries: readonly OutboxEntry[]): Promise<void>;
  deleteOutbox(keys: readonly Id[]): Promise<void>;
}

/** Time and chance. */
export interface Clock {
  now(): number;
  /** Calls back after a wait; returns the way to cancel. */
  after(milliseconds: number, call: () => void): () => void;
  random(): number;
}
