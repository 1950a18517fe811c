// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { message, page, tombstone } from "../../test/builders";
import type { MessageWindow } from "./state";
import { appendMessage, appendPage, mergeMessages, prependPage, refreshWith, windowLimit, windowOf } from "./windows";

function holeIn(window: MessageWindow): boolean {
  return window.messages.some(
    (each, at) => at > 0 && each.thread_seq !== (window.messages[at - 1]?.thread_seq ?? 0) + 1,
  );
}

describe("a window of messages", () => {
  it("takes the message that follows", () => {
    const window = appendMessage(windowOf(page(1, 3, 3), 0), message(4));
    expect(window.messages.map((each) => each.thread_seq)).toEqual([1, 2, 3, 4]);
    expect(window.atEnd).toBe(true);
  });

  it("says that it does not reach the end instead of opening a hole", () => {
    const window = appendMessage(windowOf(page(1, 3, 3), 0), message(6));
    expect(window.messages).toHaveLength(3);
    expect(window.atEnd).toBe(false);
  });

  it("takes the first message of an empty thread", () => {
    expect(appendMessage(windowOf(page(1, 0, 0), 0), message(1)).messages).toHaveLength(1);
  });

  it("never lets content come back over a tombstone", () => {
    const first = message(1);
    const gone = mergeMessages(windowOf(page(1, 1, 1), 0), [tombstone(first)]);
    const late = mergeMessages(gone, [{ ...first, version: 9 }]);
    expect(late.messages[0]?.deleted).not.toBeNull();
  });

  it("keeps older rows when a fresh page overlaps, and drops them when it does not", () => {
    const window = windowOf(page(1, 50, 50), 0);
    expect(refreshWith(window, page(41, 100, 100), 1).messages[0]?.thread_seq).toBe(1);
    expect(refreshWith(window, page(60, 100, 100), 1).messages[0]?.thread_seq).toBe(60);
  });

  it("holds a bounded number of rows and says which side was dropped", () => {
    let window = windowOf(page(901, 1000, 1000), 0);
    for (let from = 851; from > 0; from -= 50) window = prependPage(window, page(from, from + 49, 1000));
    expect(window.messages).toHaveLength(windowLimit);
    expect(window.atEnd).toBe(false);
  });

  it("has no hole, whatever pages and events arrive in whatever order", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("before" as const) }),
      fc.record({ kind: fc.constant("after" as const) }),
      fc.record({ kind: fc.constant("newest" as const) }),
      fc.record({ kind: fc.constant("event" as const), skip: fc.integer({ min: 0, max: 3 }) }),
      fc.record({ kind: fc.constant("twice" as const) }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 120 }), fc.array(step, { maxLength: 30 }), (start, steps) => {
        let last = start;
        let window = windowOf(page(Math.max(1, last - 9), last, last), 0);
        for (const each of steps) {
          const first = window.messages[0]?.thread_seq ?? 1;
          const end = window.messages.at(-1)?.thread_seq ?? 0;
          if (each.kind === "before") window = prependPage(window, page(Math.max(1, first - 10), first - 1, last));
          if (each.kind === "after") window = appendPage(window, page(end + 1, Math.min(last, end + 10), last), 0);
          if (each.kind === "newest") window = refreshWith(window, page(Math.max(1, last - 9), last, last), 0);
          if (each.kind === "event") {
            // Skipped events are those this client did not hear.
            last += 1 + each.skip;
            window = appendMessage(window, message(last));
          }
          if (each.kind === "twice") window = appendMessage(window, message(last));
          expect(holeIn(window)).toBe(false);
          if (window.atEnd) expect(window.messages.at(-1)?.thread_seq).toBe(last);
        }
      }),
    );
  });
});
