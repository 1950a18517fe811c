// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  afterRestart,
  enqueue,
  holdAfter,
  holdOld,
  markSending,
  type OutboxEntry,
  retryNow,
  sendable,
  settle,
} from "./outbox";

const half = () => 0.5;

function create(key: string, threadId = "t", at = 0): OutboxEntry {
  return enqueue(key, { kind: "create", threadId, content: key }, at);
}

const keys = (entries: readonly OutboxEntry[]) => entries.map((entry) => entry.key);

describe("the outbox", () => {
  it("sends one entry per thread, in the order they were written", () => {
    const entries = [create("a"), create("b"), create("c", "u")];
    expect(keys(sendable(entries, 0))).toEqual(["a", "c"]);
  });

  it("uses at most four lanes", () => {
    const entries = ["1", "2", "3", "4", "5", "6"].map((thread) => create(thread, thread));
    expect(sendable(entries, 0)).toHaveLength(4);
    const some = markSending(entries, new Set(["1", "2", "3"]));
    expect(sendable(some, 0)).toHaveLength(1);
  });

  it("keeps the order of a thread while its first entry waits for another attempt", () => {
    const entries = settle([create("a"), create("b")], "a", { kind: "retry" }, 0, half);
    expect(sendable(entries, 0)).toEqual([]);
    expect(keys(sendable(entries, 600))).toEqual(["a"]);
  });

  it("goes on past a refused message", () => {
    const entries = settle([create("a"), create("b")], "a", { kind: "refused", fault: { code: "forbidden" } }, 0, half);
    expect(keys(sendable(entries, 0))).toEqual(["b"]);
  });

  it("stops later work on a message whose edit was refused", () => {
    const edit = enqueue(
      "a",
      { kind: "edit", threadId: "t", messageId: "m", content: "x", version: 1, revision: 1 },
      0,
    );
    const remove = enqueue("b", { kind: "delete", threadId: "t", messageId: "m" }, 0);
    const entries = settle(
      [edit, remove, create("c")],
      "a",
      { kind: "refused", fault: { code: "version_conflict" } },
      0,
      half,
    );
    expect(keys(sendable(entries, 0))).toEqual(["c"]);
  });

  it("waits longer with each attempt, up to a minute", () => {
    let entries: readonly OutboxEntry[] = [create("a")];
    const waits: number[] = [];
    for (let attempt = 0; attempt < 9; attempt += 1) {
      entries = settle(entries, "a", { kind: "retry" }, 0, half);
      waits.push(entries[0]?.nextAt ?? 0);
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
  });

  it("does as the server asks when it names a time", () => {
    expect(settle([create("a")], "a", { kind: "retry", after: 7000 }, 0, half)[0]?.nextAt).toBe(7000);
  });

  it("repeats an edit on the new version when only that moved", () => {
    const edit = enqueue(
      "a",
      { kind: "edit", threadId: "t", messageId: "m", content: "x", version: 1, revision: 1 },
      0,
    );
    expect(settle([edit], "a", { kind: "rebase", version: 4 }, 0, half)[0]).toMatchObject({
      state: "queued",
      work: { version: 4 },
    });
  });

  it("asks before it sends a message that waited half a day", () => {
    const held = holdOld([create("a")], holdAfter + 1);
    expect(held[0]?.state).toBe("held");
    expect(sendable(held, holdAfter + 1)).toEqual([]);
    expect(keys(sendable(retryNow(held, "a", holdAfter + 1), holdAfter + 1))).toEqual(["a"]);
  });

  it("forgets after a restart that something was under way", () => {
    expect(keys(sendable(afterRestart(markSending([create("a")], new Set(["a"])), 5), 5))).toEqual(["a"]);
  });

  it("delivers each message once and in order over any sequence of lost requests, lost answers and restarts", () => {
    const fate = fc.constantFrom("ok", "lost_request", "lost_answer", "restart");
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.array(fate, { maxLength: 40 }), (count, fates) => {
        let entries: readonly OutboxEntry[] = Array.from({ length: count }, (_, at) => create(String(at)));
        const delivered: string[] = [];
        let now = 0;
        const attempts = [...fates, ...Array.from({ length: 20 }, () => "ok")];
        for (const next of attempts) {
          now += 61_000;
          if (next === "restart") {
            entries = afterRestart(entries, now);
            continue;
          }
          const [entry] = sendable(entries, now);
          if (entry === undefined) continue;
          entries = markSending(entries, new Set([entry.key]));
          // The server knows the key: the same work twice is done once.
          if (next !== "lost_request" && !delivered.includes(entry.key)) delivered.push(entry.key);
          entries = settle(entries, entry.key, next === "ok" ? { kind: "done" } : { kind: "retry" }, now, half);
        }
        expect(delivered).toEqual(Array.from({ length: count }, (_, at) => String(at)));
        expect(entries).toEqual([]);
      }),
    );
  });
});
