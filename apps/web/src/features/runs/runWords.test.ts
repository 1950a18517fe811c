// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { run } from "../../../test/builders";
import { endText, queuedText, stateWord } from "./runWords";

describe("the words of a run", () => {
  it.each([
    [run({ state: "queued" }), "Waiting"],
    [run({ state: "running" }), "Working"],
    [run({ state: "running", stall_warned_at: "2026-11-30T09:00:00.000Z" }), "No sign of life"],
    [run({ state: "running", cancel_requested_at: "2026-11-30T09:00:00.000Z" }), "Stopping"],
    [run({ state: "waiting_input" }), "Waits for an answer"],
    [run({ state: "completed", cancel_requested_at: "2026-11-30T09:00:00.000Z" }), "Done"],
    [run({ state: "failed" }), "Failed"],
    [run({ state: "cancelled" }), "Stopped"],
  ])("follow from its state alone", (value, word) => {
    expect(stateWord(value)).toBe(word);
  });

  it("say why it ended, and nothing when all went well", () => {
    expect(endText(run({ state: "completed", end_reason: "done" }))).toBeUndefined();
    expect(endText(run({ state: "cancelled", end_reason: "requested" }))).toBeUndefined();
    expect(endText(run({ state: "failed", end_reason: "interrupted" }))).toBe(
      "The agent went away in the middle of the work.",
    );
    expect(endText(run({ state: "failed", end_reason: "meteor" }))).toContain("(meteor)");
    expect(endText(run({ state: "running", end_reason: null }))).toBeUndefined();
  });

  it("say why it has not begun", () => {
    expect(queuedText("offline", 0, "scout")).toContain("offline");
    expect(queuedText("online", 2, "scout")).toBe("Behind 2 other runs");
    expect(queuedText("online", 0, "scout")).toBe("scout is about to start");
  });
});
