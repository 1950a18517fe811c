// SPDX-License-Identifier: Apache-2.0
import "fake-indexeddb/auto";
import { openDB } from "idb";
import { describe, expect, it } from "vitest";
import { message, page, snapshot } from "../../test/builders";
import { applySnapshot } from "../store/snapshot";
import { emptyState } from "../store/state";
import { windowOf } from "../store/windows";
import { enqueue } from "./outbox";
import { deleteStorage, openStorage } from "./storage";

describe("what rests in the browser", () => {
  it("comes back with its cursor", async () => {
    const storage = await openStorage("i", "p1");
    const state = {
      ...applySnapshot(emptyState, [snapshot()]),
      windows: new Map([["thread", windowOf(page(1, 3, 3), 5)]]),
    };
    await storage.saveLog(state);
    storage.close();
    const loaded = await (await openStorage("i", "p1")).loadLog();
    expect(loaded?.cursor).toBe(10);
    expect(loaded?.tables.channels.get("channel")?.value.name).toBe("general");
    expect(loaded?.windows.get("thread")?.messages).toHaveLength(3);
  });

  it("keeps the newest messages of a long thread and says that there are more", async () => {
    const storage = await openStorage("i", "p2");
    const messages = Array.from({ length: 300 }, (_, at) => message(at + 1));
    const window = { messages, atStart: true, atEnd: true, stale: false, stamp: 1 };
    await storage.saveLog({ ...emptyState, windows: new Map([["thread", window]]) });
    const loaded = (await storage.loadLog())?.windows.get("thread");
    expect(loaded?.messages).toHaveLength(60);
    expect(loaded).toMatchObject({ atStart: false, atEnd: true });
  });

  it("ignores a log state of another shape", async () => {
    const storage = await openStorage("i", "p3");
    storage.close();
    const raw = await openDB("bothy-i-p3", 1);
    await raw.put("log", { logVersion: 0 }, "state");
    raw.close();
    expect(await (await openStorage("i", "p3")).loadLog()).toBeUndefined();
  });

  it("keeps the outbox in the order of writing, and texts that are not sent", async () => {
    const storage = await openStorage("i", "p4");
    const work = { kind: "create", threadId: "t", content: "x" } as const;
    await storage.putOutbox([enqueue("b", work, 2), enqueue("a", work, 1)]);
    await storage.saveDraft("t", "half a sentence");
    await storage.dropLog();
    expect((await storage.loadOutbox()).map((entry) => entry.key)).toEqual(["a", "b"]);
    expect(await storage.loadDraft("t")).toBe("half a sentence");
    await storage.saveDraft("t", "");
    expect(await storage.loadDraft("t")).toBe("");
  });

  it("is gone for one person without touching another", async () => {
    const mine = await openStorage("i", "p5");
    const theirs = await openStorage("i", "p6");
    await mine.saveDraft("t", "mine");
    await theirs.saveDraft("t", "theirs");
    mine.close();
    await deleteStorage("i", "p5");
    expect(await (await openStorage("i", "p5")).loadDraft("t")).toBe("");
    expect(await theirs.loadDraft("t")).toBe("theirs");
  });
});
