// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { run } from "../../test/builders";
import type { Run } from "../api/types";
import { codePoints, mergePatch, mergeRunSummary, mergeRunUpdate, type RunPatch } from "./runDocument";

function document(change: Partial<Run> = {}): Run {
  return { ...run(), steps: {}, plan: [], artifacts: {}, output: { text: "", length: 0 }, ...change };
}

function update(base: number, ...patches: RunPatch[]) {
  return {
    run_id: "run",
    thread_id: "thread",
    base_version: base,
    version: patches.at(-1)?.version ?? base,
    patches,
  };
}

describe("a run document", () => {
  it("takes patches above its version and appends text at its place", () => {
    const merged = mergeRunUpdate(
      document(),
      update(
        1,
        { version: 2, patch: { status_line: "reading" } },
        { version: 3, append: [{ target: "output", offset: 0, text: "Hi" }] },
      ),
    );
    expect(merged).toMatchObject({
      kind: "merged",
      run: { status_line: "reading", doc_version: 3, output: { text: "Hi", length: 2 } },
    });
  });

  it("skips what it has and leaves text that is there alone", () => {
    const known = document({ doc_version: 3, output: { text: "Hi", length: 2 } });
    const again = update(1, { version: 2 }, { version: 3, append: [{ target: "output", offset: 0, text: "Hi" }] });
    expect(mergeRunUpdate(known, again)).toEqual({ kind: "same" });
  });

  it("notices a missed version", () => {
    expect(mergeRunUpdate(document(), update(5, { version: 6 }))).toEqual({ kind: "missed" });
    const hole = update(1, { version: 2, append: [{ target: "output", offset: 9, text: "x" }] });
    expect(mergeRunUpdate(document(), hole)).toEqual({ kind: "missed" });
  });

  it("counts code points, so that emoji do not shift the text", () => {
    expect(codePoints("a👩‍🚒")).toBe(4);
  });

  it("is replaced by a newer snapshot only", () => {
    const snapshot = document({ doc_version: 9 });
    expect(mergeRunUpdate(document(), { run_id: "run", thread_id: "thread", version: 9, snapshot })).toMatchObject({
      kind: "merged",
    });
    expect(
      mergeRunUpdate(document({ doc_version: 10 }), { run_id: "run", thread_id: "thread", version: 9, snapshot }),
    ).toEqual({ kind: "same" });
  });

  it("keeps its text when only the summary changes", () => {
    const known = document({ output: { text: "Hi", length: 2 } });
    const merged = mergeRunSummary(known, run({ state: "failed", doc_version: 4 }));
    expect(merged.state).toBe("failed");
    expect(merged.output?.text).toBe("Hi");
  });

  it("is the same text however the stream was cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 9 }), { maxLength: 20 }),
        (pieces) => {
          let known = document();
          let offset = 0;
          for (const [at, text] of pieces.entries()) {
            const merged = mergeRunUpdate(
              known,
              update(at + 1, { version: at + 2, append: [{ target: "output", offset, text }] }),
            );
            if (merged.kind !== "merged") throw new Error(merged.kind);
            known = merged.run;
            offset += codePoints(text);
          }
          expect(known.output).toEqual({ text: pieces.join(""), length: offset });
        },
      ),
    );
  });
});

it("a merge patch goes into objects and replaces lists", () => {
  const target = { a: 1, steps: { x: { state: "running", title: "t" } }, plan: [1, 2] };
  expect(mergePatch(target, { steps: { x: { state: "completed" } }, plan: [3] })).toEqual({
    a: 1,
    steps: { x: { state: "completed", title: "t" } },
    plan: [3],
  });
});
