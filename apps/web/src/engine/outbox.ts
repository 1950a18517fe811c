// SPDX-License-Identifier: Apache-2.0
//
// The outbox as pure functions. An entry is stored before it is shown and leaves only when the server answered: with a
// success, or with a refusal that stays visible until the person decides.
import type { Id } from "../api/types";
import { backoff, type Random } from "./backoff";

/** What an entry asks of the server. */
export type OutboxWork =
  | { readonly kind: "create"; readonly threadId: Id; readonly content: string }
  | {
      readonly kind: "edit";
      readonly threadId: Id;
      readonly messageId: Id;
      readonly content: string;
      /** State of the message the edit was made from. */
      readonly version: number;
      readonly revision: number;
    }
  | { readonly kind: "delete"; readonly threadId: Id; readonly messageId: Id };

/** Why an entry was refused for good. */
export interface OutboxFault {
  readonly code: string;
  readonly reason?: string | undefined;
  /** Text of the message as it is now, when an edit met a newer one. */
  readonly current?: string | undefined;
}

export interface OutboxEntry {
  /** Also `client_msg_id` and `Idempotency-Key`: the same work is never done twice. */
  readonly key: Id;
  readonly work: OutboxWork;
  readonly createdAt: number;
  readonly state: "queued" | "sending" | "retry" | "held" | "failed";
  readonly attempts: number;
  /** Not to be sent before this moment, in milliseconds since the epoch. */
  readonly nextAt: number;
  readonly fault?: OutboxFault | undefined;
}

/** Lanes that are sent at the same time. */
export const maxLanes = 4;
/** A message that waited longer than this asks before it is sent: it may start an agent at a moment nobody expects. */
export const holdAfter = 12 * 60 * 60 * 1000;

/** Makes an entry for new work. */
export function enqueue(key: Id, work: OutboxWork, now: number): OutboxEntry {
  return { key, work, createdAt: now, state: "queued", attempts: 0, nextAt: now };
}

/** After a restart nothing is under way any more. */
export function afterRestart(entries: readonly OutboxEntry[], now: number): OutboxEntry[] {
  return entries.map((entry) => {
    if (entry.state === "sending" || entry.state === "retry") return { ...entry, state: "queued", nextAt: now };
    return entry;
  });
}

/** A message too old to be sent without asking. */
function mustAsk(entry: OutboxEntry, now: number): boolean {
  return entry.state !== "failed" && entry.work.kind === "create" && now - entry.createdAt > holdAfter;
}

/** Marks old messages as held. Returns the same list when nothing changed. */
export function holdOld(entries: readonly OutboxEntry[], now: number): readonly OutboxEntry[] {
  if (!entries.some((entry) => mustAsk(entry, now) && entry.state !== "held" && entry.state !== "sending"))
    return entries;
  return entries.map((entry) =>
    mustAsk(entry, now) && entry.state !== "sending" ? { ...entry, state: "held" as const } : entry,
  );
}

/**
 * Entries to send now: per thread the first that waits, in the order they were made, one in flight per thread. An entry
 * that failed or is held stops later work on the same message only.
 */
export function sendable(entries: readonly OutboxEntry[], now: number): readonly OutboxEntry[] {
  const busy = new Set<Id>();
  let running = 0;
  for (const entry of entries) {
    if (entry.state !== "sending") continue;
    busy.add(entry.work.threadId);
    running += 1;
  }
  const blocked = new Set<Id>();
  const ready: OutboxEntry[] = [];
  for (const entry of entries) {
    const { threadId } = entry.work;
    const target = entry.work.kind === "create" ? entry.key : entry.work.messageId;
    if (entry.state === "failed" || entry.state === "held") {
      blocked.add(target);
      continue;
    }
    if (entry.state === "sending" || busy.has(threadId) || blocked.has(target)) continue;
    // The first waiting entry owns its lane even while it must not be sent yet: order within a thread is kept.
    busy.add(threadId);
    if (entry.nextAt > now || running >= maxLanes) continue;
    ready.push(entry);
    running += 1;
  }
  return ready;
}

/** Moment at which the next entry becomes sendable, or undefined when nothing waits for time. */
export function nextWake(entries: readonly OutboxEntry[]): number | undefined {
  const waits = entries.filter((entry) => entry.state === "queued" || entry.state === "retry");
  return waits.length === 0 ? undefined : Math.min(...waits.map((entry) => entry.nextAt));
}

/** How one attempt ended. */
export type Outcome =
  | { readonly kind: "done" }
  /** No usable answer: the same bytes go out again. */
  | { readonly kind: "retry"; readonly after?: number | undefined }
  | { readonly kind: "refused"; readonly fault: OutboxFault }
  /** An edit whose base only changed in its trigger state: repeat it on the new version. */
  | { readonly kind: "rebase"; readonly version: number };

/** Entries after an attempt. */
export function settle(
  entries: readonly OutboxEntry[],
  key: Id,
  outcome: Outcome,
  now: number,
  random: Random,
): readonly OutboxEntry[] {
  if (outcome.kind === "done") return entries.filter((entry) => entry.key !== key);
  return entries.map((entry) => (entry.key === key ? settleOne(entry, outcome, now, random) : entry));
}

function settleOne(entry: OutboxEntry, outcome: Exclude<Outcome, { kind: "done" }>, now: number, random: Random) {
  switch (outcome.kind) {
    case "retry":
      return {
        ...entry,
        state: "retry" as const,
        attempts: entry.attempts + 1,
        nextAt: now + (outcome.after ?? backoff(entry.attempts, random)),
      };
    case "refused":
      return { ...entry, state: "failed" as const, fault: outcome.fault };
    case "rebase":
      if (entry.work.kind !== "edit") return entry;
      return { ...entry, state: "queued" as const, nextAt: now, work: { ...entry.work, version: outcome.version } };
  }
}

/** Marks entries as under way. */
export function markSending(entries: readonly OutboxEntry[], keys: ReadonlySet<Id>): readonly OutboxEntry[] {
  return entries.map((entry) => (keys.has(entry.key) ? { ...entry, state: "sending" as const } : entry));
}

/** The person asks for another attempt; it also answers the question of a held message. */
export function retryNow(entries: readonly OutboxEntry[], key: Id, now: number): readonly OutboxEntry[] {
  return entries.map((entry) => {
    if (entry.key !== key || entry.state === "sending") return entry;
    const { fault: _, ...rest } = entry;
    return {
      ...rest,
      state: "queued" as const,
      createdAt: entry.state === "held" ? now : entry.createdAt,
      nextAt: now,
    };
  });
}

/** The network is back: nobody waits for a timer that was set while it was gone. */
export function wakeAll(entries: readonly OutboxEntry[], now: number): readonly OutboxEntry[] {
  return entries.map((entry) =>
    entry.state === "retry" ? { ...entry, state: "queued" as const, nextAt: now } : entry,
  );
}
