// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  channel,
  created,
  event,
  me,
  message,
  other,
  page,
  person,
  readState,
  run,
  snapshot,
  thread,
  tombstone,
} from "../../test/builders";
import { applyEphemeral, applyEvents, type Envelope, handlers } from "./reduce";
import { applySnapshot } from "./snapshot";
import { emptyState, type State } from "./state";
import { unreadByChannel } from "./unread";
import { windowOf } from "./windows";

const now = Date.parse("2026-11-30T09:10:00.000Z");

function inside(change: Parameters<typeof snapshot>[0] = {}): State {
  return applySnapshot(emptyState, [snapshot(change)]);
}

function apply(state: State, ...events: Envelope[]): State {
  return applyEvents(state, events, null, now).state;
}

describe("applying the log", () => {
  it("drops what is at or below the cursor and moves the cursor with the rest", () => {
    const state = apply(inside(), created(10, message(1)), created(11, message(1)));
    expect(state.cursor).toBe(11);
    expect(state.tables.threads.get("thread")?.value.counters.last_thread_seq).toBe(1);
  });

  it("moves on over types it does not know", () => {
    expect(apply(inside(), event(11, "moon.rose", {})).cursor).toBe(11);
  });

  it("moves to the end of a page that held nothing for this person", () => {
    expect(applyEvents(inside(), [], 99, now).state.cursor).toBe(99);
  });

  it("ignores redacted payloads", () => {
    const open = { ...inside(), windows: new Map([["thread", windowOf(page(1, 1, 1), 0)]]) };
    const skeleton = {
      ...event(11, "message.updated", { message: message(1, { content: "", version: 5 }) }),
      redacted: true,
    };
    expect(apply(open, skeleton).windows.get("thread")?.messages[0]?.content).toBe("text 1");
  });

  it("ignores channels of spaces it does not know", () => {
    const foreign = channel({ id: "foreign", space_id: "elsewhere" });
    expect(apply(inside(), event(11, "channel.created", foreign)).tables.channels.has("foreign")).toBe(false);
  });

  it("does not let an old event undo a newer answer", () => {
    const state = inside({ pageSeq: 20, headSeq: 10, channels: [channel({ name: "new", version: 3 })] });
    const late = event(11, "channel.updated", channel({ name: "old", version: 2 }));
    expect(apply(state, late).tables.channels.get("channel")?.value.name).toBe("new");
  });

  it("asks for the end of a thread when a message does not follow", () => {
    const open = { ...inside(), windows: new Map([["thread", windowOf(page(1, 3, 3), 0)]]) };
    const { effects } = applyEvents(open, [created(11, message(9))], null, now);
    expect(effects).toContainEqual({ kind: "load_end", threadId: "thread" });
  });

  it("removes a lost channel with everything that hangs on it", () => {
    const open = { ...inside(), windows: new Map([["thread", windowOf(page(1, 1, 1), 0)]]) };
    const lost = event(11, "access.changed", { lost: [{ kind: "channel", id: "channel" }] });
    const state = apply(apply(open, created(11, message(2))), { ...lost, seq: 12 });
    expect(state.tables.channels.size).toBe(0);
    expect(state.tables.threads.size).toBe(0);
    expect(state.windows.size).toBe(0);
    expect(state.tables.readStates.size).toBe(0);
  });

  it("loads targets that were gained", () => {
    const gained = event(11, "access.changed", {
      gained: [{ target: { kind: "space", id: "s2" }, level: "read", capabilities: [] }],
    });
    const { effects } = applyEvents(inside(), [gained], null, now);
    expect(effects).toEqual([{ kind: "load_targets", targets: ["space:s2"] }]);
  });

  it("keeps what the runtime of an agent reported when its settings change", () => {
    const agent = { principal_id: "agent", version: 1, runtime: { presence_state: "online" } };
    const state = inside({ agents: [agent as never] });
    const next = apply(state, event(11, "agent.updated", { principal_id: "agent", version: 2 }));
    expect(next.tables.agents.get("agent")?.value.runtime?.presence_state).toBe("online");
  });

  it("follows renames of people", () => {
    const renamed = event(11, "user.updated", {
      change: ["profile"],
      user: person(other, "o", { display_name: "Ono", version: 2 }),
    });
    expect(apply(inside(), renamed).tables.principals.get(other)?.value.display_name).toBe("Ono");
  });
});

describe("unread", () => {
  it("has read everything up to an own message", () => {
    const own = message(2, { author: { kind: "person", id: me, label: null } });
    const before = apply(inside(), created(11, message(1)));
    const known = before.tables.readStates.get("thread")?.value;
    expect(known?.unread_count).toBe(1);
    const state = apply(before, created(12, own), created(13, message(3)));
    expect(state.tables.readStates.get("thread")?.value).toMatchObject({
      last_read_thread_seq: 2,
      manually_unread_from: null,
      first_unread_thread_seq: 3,
      unread_count: 1,
      as_of_thread_seq: 3,
      version: (known?.version ?? 0) + 1,
      updated_at: own.created_at,
    });
  });

  it("takes a manual mark away with an own message, and no older event puts it back", () => {
    const own = message(2, { author: { kind: "person", id: me, label: null } });
    const marked = readState({ manually_unread_from: 1, unread_count: 1, as_of_thread_seq: 1, version: 2 });
    const mark = event(12, "read_state.updated", { read_states: [marked] });
    const state = apply(inside(), created(11, message(1)), mark, created(13, own), mark);
    expect(state.tables.readStates.get("thread")?.value.manually_unread_from).toBeNull();
  });

  it("does not count what came before the position was read", () => {
    const read = event(12, "read_state.updated", {
      read_states: [readState({ last_read_thread_seq: 1, as_of_thread_seq: 1, version: 2 })],
    });
    const state = apply(inside(), created(11, message(1)), read);
    expect(state.tables.readStates.get("thread")?.value.unread_count).toBe(0);
  });

  it("falls when an unread message is deleted", () => {
    const gone = event(12, "message.deleted", { message: tombstone(message(1)), counters: thread().counters });
    expect(unreadByChannel(apply(inside(), created(11, message(1)), gone)).size).toBe(0);
  });

  it("never counts system lines and anchors", () => {
    const state = apply(
      inside(),
      created(11, message(1, { kind: "run" })),
      created(12, message(2, { kind: "system" })),
    );
    expect(state.tables.readStates.get("thread")?.value.unread_count).toBe(0);
  });

  it("equals the number of unread messages in the list after any reads, deletes and arrivals", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("message" as const), mine: fc.boolean(), anchor: fc.boolean() }),
      fc.record({ kind: fc.constant("delete" as const), at: fc.nat({ max: 20 }) }),
      fc.record({ kind: fc.constant("read" as const), at: fc.nat({ max: 20 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let state: State = { ...inside(), windows: new Map([["thread", windowOf(page(1, 0, 0), 0)]]) };
        let seq = 10;
        for (const each of steps) {
          seq += 1;
          const list = state.windows.get("thread")?.messages ?? [];
          if (each.kind === "message") {
            const author = { kind: "person" as const, id: each.mine ? me : other, label: null };
            state = apply(
              state,
              created(seq, message(list.length + 1, { author, kind: each.anchor ? "run" : "message" })),
            );
          }
          const target = list[each.kind === "message" ? 0 : each.at % Math.max(1, list.length)];
          if (each.kind === "delete" && target !== undefined && target.deleted === null) {
            state = apply(
              state,
              event(seq, "message.deleted", { message: tombstone(target), counters: thread().counters }),
            );
          }
          if (each.kind === "read") {
            const last = Math.max(
              each.at % (list.length + 1),
              state.tables.readStates.get("thread")?.value.last_read_thread_seq ?? 0,
            );
            const unread = unreadAbove(state, last);
            const read = readState({
              last_read_thread_seq: last,
              unread_count: unread,
              as_of_thread_seq: list.length,
              version: (state.tables.readStates.get("thread")?.value.version ?? 0) + 1,
            });
            state = apply(state, event(seq, "read_state.updated", { read_states: [read] }));
          }
          const read = state.tables.readStates.get("thread")?.value;
          expect(read?.unread_count).toBe(unreadAbove(state, read?.last_read_thread_seq ?? 0));
        }
      }),
    );
  });
});

function unreadAbove(state: State, position: number): number {
  const list = state.windows.get("thread")?.messages ?? [];
  return list.filter(
    (each) => each.thread_seq > position && each.kind === "message" && each.deleted === null && each.author.id !== me,
  ).length;
}

describe("repeating", () => {
  it("gives the same state however the log is cut and repeated", () => {
    const log: Envelope[] = [
      event(11, "channel.updated", channel({ topic: "a", version: 2 })),
      created(12, message(1)),
      created(13, message(2)),
      event(14, "message.updated", {
        message: message(1, { content: "edited", version: 2, revision: 2 }),
        cause: "edit",
      }),
      event(15, "run.state_changed", { run: run(), previous_state: null }),
      event(16, "message.deleted", { message: tombstone(message(2)), counters: thread().counters }),
      event(17, "channel.updated", channel({ topic: "b", version: 3 })),
    ];
    const open: State = { ...inside(), windows: new Map([["thread", windowOf(page(1, 0, 0), 0)]]) };
    const whole = apply(open, ...log);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat({ max: 6 }), fc.nat({ max: 6 })), { maxLength: 8 }), (cuts) => {
        let state = open;
        let from = 0;
        for (const [back, count] of cuts) {
          const start = Math.max(0, from - back);
          state = apply(state, ...log.slice(start, start + count));
          from = Math.max(from, Math.min(log.length, start + count));
          if (start + count < from) continue;
        }
        state = apply(state, ...log);
        expect(state).toEqual(whole);
      }),
    );
  });
});

describe("ephemeral events", () => {
  it("show a typist until the time is over", () => {
    const typing = {
      type: "typing.started",
      data: { thread_id: "thread", principal_id: other, expires_at: new Date(now + 5000).toISOString() },
    };
    const shown = applyEphemeral(inside(), typing, now).state;
    expect(shown.typing.get("thread")?.has(other)).toBe(true);
    const stop = { ...typing, data: { ...typing.data, expires_at: new Date(now).toISOString() } };
    expect(applyEphemeral(shown, stop, now).state.typing.get("thread")?.size).toBe(0);
  });

  it("end the typing of whoever sent the message", () => {
    const typing = {
      type: "typing.started",
      data: { thread_id: "thread", principal_id: other, expires_at: new Date(now + 5000).toISOString() },
    };
    const state = apply(applyEphemeral(inside(), typing, now).state, created(11, message(1)));
    expect(state.typing.get("thread")?.has(other)).toBe(false);
  });

  it("ask for a run of which a version was missed", () => {
    const state = apply(inside(), event(11, "run.state_changed", { run: run(), previous_state: null }));
    const update = {
      type: "run.updated",
      data: { run_id: "run", thread_id: "thread", base_version: 7, version: 8, patches: [] },
    };
    expect(applyEphemeral(state, update, now).effects).toEqual([{ kind: "load_run", runId: "run" }]);
  });
});

it("every handler is for a type with a name of two parts", () => {
  for (const type of Object.keys(handlers)) expect(type).toMatch(/^[a-z_]+\.[a-z_]+$/);
});

describe("a device that waits", () => {
  const data = {
    device: { id: "d1", name: "Firefox on Linux" },
    principal: { id: "p1", display_name: "Ana" },
    expires_at: "2026-05-02T10:00:00Z",
  };
  const event = (seq: number, more: object = {}) => ({ seq, type: "device.pending", data: { ...data, ...more } });

  it("is told of until somebody decided", () => {
    const waiting = applyEvents(emptyState, [event(1)], null, 0).state;
    expect(waiting.waitingDevices.get("d1")?.principalName).toBe("Ana");
    const decided = applyEvents(waiting, [event(2, { resolved: "approved" })], null, 0).state;
    expect(decided.waitingDevices.size).toBe(0);
    expect(decided.decidedDevices.has("d1")).toBe(true);
  });
});
