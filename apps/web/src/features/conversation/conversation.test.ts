// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { channel, me, message, other, page, person, run, snapshot, tombstone } from "../../../test/builders";
import { enqueue, type OutboxEntry } from "../../engine/outbox";
import { applySnapshot } from "../../store/snapshot";
import { emptyState, type MessageWindow, type State } from "../../store/state";
import { windowOf } from "../../store/windows";
import { type Candidate, nameQuery, rank, take } from "./completion";
import { isComposing } from "./ime";
import { byDay, rowsOf } from "./rows";
import { outlookOf } from "./whoActs";
import { outboxText, systemText, triggerText } from "./words";

function rows(window: MessageWindow, outbox: readonly OutboxEntry[] = [], newFrom?: number) {
  return rowsOf({ window, outbox, me, newFrom });
}

const window = (messages: ReturnType<typeof message>[]): MessageWindow => ({
  messages,
  atStart: true,
  atEnd: true,
  stale: false,
  stamp: 0,
});

describe("rows", () => {
  it("begin with the beginning, or with a row that loads what came before", () => {
    expect(rows(windowOf(page(1, 1, 1), 0))[0]?.kind).toBe("beginning");
    expect(rows(windowOf(page(5, 9, 9), 0))[0]?.kind).toBe("older");
    expect(rows(window([]))[0]).toMatchObject({ kind: "beginning", empty: true });
    expect(rows(window([message(1)]))[0]).toMatchObject({ kind: "beginning", empty: false });
  });

  it("name the author once for what is said within five minutes", () => {
    const later = message(3, { created_at: "2026-11-30T09:07:00.000Z" });
    const heads = rows(window([message(1), message(2), later])).flatMap((row) =>
      row.kind === "message" ? [row.head] : [],
    );
    expect(heads).toEqual([true, false, true]);
  });

  it("have a line per day and group rows by it", () => {
    const list = rows(window([message(1), message(2, { created_at: "2026-12-02T09:00:00.000Z" })]));
    expect(list.filter((row) => row.kind === "day")).toHaveLength(2);
    expect(byDay(list).map((group) => group.rows[0]?.kind)).toEqual(["beginning", "day", "day"]);
  });

  it("put the line of the new before the first unread message, whose author is named again", () => {
    const list = rows(window([message(1), message(2)]), [], 2);
    const at = list.findIndex((row) => row.kind === "new");
    expect(list[at + 1]).toMatchObject({ kind: "message", head: true, message: { thread_seq: 2 } });
  });

  it("fold more than three tombstones", () => {
    const gone = [1, 2, 3, 4].map((seq) => tombstone(message(seq)));
    expect(rows(window(gone)).filter((row) => row.kind === "gone")).toMatchObject([{ count: 4 }]);
    expect(rows(window(gone.slice(1))).filter((row) => row.kind === "gone")).toHaveLength(3);
  });

  it("show an own message once, before and after the answer", () => {
    const entry = enqueue("key", { kind: "create", threadId: "thread", content: "x" }, 0);
    expect(rows(window([]), [entry]).at(-1)).toMatchObject({ kind: "echo", key: "key" });
    const answered = message(1, { client_msg_id: "key" });
    const both = rows(window([answered]), [entry]).filter((row) => row.key === "key");
    expect(both).toMatchObject([{ kind: "message" }]);
  });

  it("show an edit that is on its way at its message", () => {
    const entry = enqueue(
      "e",
      { kind: "edit", threadId: "thread", messageId: "message-1", content: "new", version: 1, revision: 1 },
      0,
    );
    expect(rows(window([message(1)]), [entry]).at(-1)).toMatchObject({ kind: "message", pending: { key: "e" } });
  });

  it("give a run its own row", () => {
    const anchor = message(1, { kind: "run", run_id: "r" });
    expect(rows(window([anchor])).at(-1)).toMatchObject({ kind: "run", runId: "r" });
  });
});

describe("completion", () => {
  it.each([
    ["@an", "@", "an"],
    ["hi @an", "@", "an"],
    ["(@an", "@", "an"],
    ["**@an", "@", "an"],
    ["go to #gen", "#", "gen"],
    ["@", "@", ""],
  ])("begins in %j", (text, sign, query) => {
    expect(nameQuery(text, text.length)).toMatchObject({ sign, query });
  });

  it.each(["mail a@b", "a/@b", "`@an", "```\n@an", "@an "])("does not begin in %j", (text) => {
    expect(nameQuery(text, text.length)).toBeUndefined();
  });

  const candidate = (label: string, insert = label.toLowerCase()): Candidate => ({ id: insert, label, insert });

  it("puts those who speak here first, then beginnings, then words", () => {
    const all = [candidate("Joana", "joana"), candidate("Ana Lima", "ana"), candidate("Kim Anand", "kim")];
    expect(rank(all, "ana", new Set()).map((each) => each.id)).toEqual(["ana", "kim", "joana"]);
    expect(rank(all, "", new Set(["kim"])).map((each) => each.id)[0]).toBe("kim");
    expect(rank(all, "zzz", new Set())).toEqual([]);
  });

  it("puts the name in and the caret behind it", () => {
    const query = nameQuery("hi @an there", 6);
    if (query === undefined) throw new Error("no query");
    expect(take("hi @an there", query, candidate("Ana", "ana"))).toEqual({ text: "hi @ana there", caret: 8 });
  });
});

describe("input methods", () => {
  const key = (change: object) => ({ key: "Enter", keyCode: 13, nativeEvent: { isComposing: false }, ...change });
  it.each([
    ["Chromium while composing", key({ nativeEvent: { isComposing: true } }), true],
    ["Gecko while composing", key({ key: "Process", keyCode: 229 }), true],
    ["WebKit on the Enter that ends it", key({ keyCode: 229 }), true],
    ["a plain Enter", key({}), false],
  ])("%s", (_name, event, composing) => {
    expect(isComposing(event)).toBe(composing);
  });
});

describe("who will act", () => {
  const agentId = "agent";
  function state(change: Partial<State> = {}, level: "write" | "trigger" = "trigger"): State {
    const agent = { principal_id: agentId, handle: "echo", display_name: "Echo", status: "active", version: 1 };
    const base = applySnapshot(emptyState, [
      snapshot({
        principals: [
          person(me, "me"),
          person(other, "other"),
          person(agentId, "echo", { kind: "agent", display_name: "Echo" }),
        ],
        agents: [agent as never],
        access: [["channel", { level, capabilities: [] }]],
      }),
    ]);
    return { ...base, ...change };
  }

  it("is nobody when people talk", () => {
    expect(outlookOf(state(), channel(), "thread", "hello @other")).toBeUndefined();
  });

  it("is the agent that is named, also before punctuation", () => {
    expect(outlookOf(state(), channel(), "thread", "ask @echo.")).toEqual({
      text: "Sends and starts Echo",
      starts: true,
    });
  });

  it("is the operator of a channel where every message counts", () => {
    const place = channel({ trigger_rule: "all", operator: { mode: "own", agent_id: agentId } });
    expect(outlookOf(state(), place, "thread", "hello")?.starts).toBe(true);
  });

  it("is nobody without the right, and the line says so", () => {
    expect(outlookOf(state({}, "write"), channel(), "thread", "@echo")).toMatchObject({ starts: false });
    expect(outlookOf(state(), channel({ trigger_rule: "off" }), "thread", "@echo")).toMatchObject({ starts: false });
  });

  it("joins work that is under way", () => {
    const running = applySnapshot(state(), [
      snapshot({
        runs: [run()],
        agents: [...state().tables.agents.values()].map((a) => a.value),
        principals: [...state().tables.principals.values()].map((p) => p.value),
      }),
    ]);
    expect(outlookOf(running, channel(), "thread", "@echo and")?.text).toBe("Joins the work of Echo");
  });
});

describe("words", () => {
  it("say why an agent is silent, also for a reason of a newer server", () => {
    const trigger = (outcome: "denied" | "triggered", reason: string | null) => ({
      agent_id: "a",
      outcome,
      reason,
      run_id: null,
    });
    expect(triggerText(trigger("denied", "i1_personal"), "scout")).toContain("works only for the person");
    expect(triggerText(trigger("denied", "agent_cannot_read"), "scout")).toContain("channel settings");
    expect(triggerText(trigger("denied", "moon_phase"), "scout")).toBe("scout was not started");
    expect(triggerText(trigger("triggered", null), "scout")).toBeUndefined();
  });

  it("say nothing of a normal send, and the truth of a slow one", () => {
    const entry = enqueue("k", { kind: "create", threadId: "t", content: "x" }, 0);
    expect(outboxText(entry, 2_000, true)).toBeUndefined();
    expect(outboxText(entry, 4_000, true)).toBe("Sending");
    expect(outboxText(entry, 60_000, true)).toContain("Not sent yet");
  });

  it("say at once that a message waits when there is no connection, or an attempt did not get through", () => {
    const entry = enqueue("k", { kind: "create", threadId: "t", content: "x" }, 0);
    expect(outboxText(entry, 100, false)).toBe("Waiting to send");
    expect(outboxText({ ...entry, state: "retry", attempts: 1 }, 100, true)).toBe("Waiting to send");
  });

  it("have a sentence for system lines they do not know", () => {
    expect(systemText("something.new")).toBe("Something changed here.");
  });
});
