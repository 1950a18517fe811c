// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { expiryOf, localValue } from "./expiry";
import { problemText } from "./problemText";
import { scopeLabel, scopesForReach, scopesOf } from "./scopes";

describe("an end", () => {
  const now = Date.parse("2026-05-01T10:00:00Z");

  it("lies a span ahead, at a moment, or nowhere", () => {
    expect(expiryOf("7d", "", now)).toBe("2026-05-08T10:00:00.000Z");
    expect(expiryOf("never", "", now)).toBeUndefined();
    expect(expiryOf("at", "2026-06-01T08:30", now)).toBe(new Date("2026-06-01T08:30").toISOString());
  });

  it("is none while the moment is not written yet", () => {
    expect(expiryOf("at", "", now)).toBeUndefined();
  });

  it("comes back from a date field as it went in", () => {
    const time = "2026-06-01T08:30:00.000Z";
    expect(expiryOf("at", localValue(time), now)).toBe(time);
  });
});

describe("scopes", () => {
  const catalogue = [
    { id: "channel.read", summary: "Read channels", scope: "chat.read", person: true },
    { id: "space.read", summary: "Read spaces", scope: "chat.read", person: true },
    { id: "channel.create", summary: "Make channels", scope: "chat.admin", person: true },
    { id: "token.create", summary: "Make tokens", scope: "session", person: true },
    { id: "run.start", summary: "Start a run", scope: "runs.write", person: false },
    { id: "command.register", summary: "Register commands", scope: "commands", person: true },
  ];

  it("are those a person's token can carry, each with what it opens", () => {
    const scopes = scopesOf(catalogue);
    expect(scopes.map((each) => each.scope)).toEqual(["chat.read", "chat.admin", "commands"]);
    expect(scopes[0]?.summaries).toEqual(["Read channels", "Read spaces"]);
    expect(scopes.map(scopeLabel)).toEqual([
      "Spaces, channels, threads: read",
      "Spaces, channels, threads: administer",
      "Commands (commands)",
    ]);
  });

  it("of a reader hold no write, and no administration comes without being chosen", () => {
    const all = scopesOf();
    expect(scopesForReach("read", all).every((scope) => scope.endsWith(".read"))).toBe(true);
    expect(scopesForReach("write", all).some((scope) => scope.endsWith(".admin"))).toBe(false);
    expect(scopesForReach("write", all)).toContain("messaging.write");
  });

  it("all have a name", () => {
    expect(scopesOf().filter((each) => each.area === each.scope.split(".")[0])).toEqual([]);
  });
});

describe("a problem", () => {
  it("is told by its reason before its code, and by the code of a field", () => {
    expect(problemText("conflict", "handle_taken")).toBe("This handle is already taken.");
    expect(problemText("conflict", "something_new")).toBe("This does not fit what is there now. Reload and try again.");
    expect(problemText("handle_taken")).toBe("This handle is already taken.");
    expect(problemText("never_heard")).toContain("never_heard");
  });
});
