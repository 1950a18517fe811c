// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { FakeClock } from "../../test/builders";
import { FakeServer, FakeTabs, memoryStorage } from "../../test/fakeServer";
import { Store } from "../store/store";
import { Engine } from "./engine";

function setup(
  options: { server?: FakeServer; clock?: FakeClock; storage?: ReturnType<typeof memoryStorage>; tabs?: FakeTabs } = {},
) {
  const server = options.server ?? new FakeServer();
  const clock = options.clock ?? new FakeClock();
  const storage = options.storage ?? memoryStorage();
  const tabs = options.tabs ?? new FakeTabs();
  const store = new Store();
  const ended: string[] = [];
  const ids = (function* () {
    for (let next = 1; ; next += 1) yield `key-${storage.outbox.size}-${next}`;
  })();
  const engine = new Engine({
    api: server.api,
    store,
    storage,
    clock,
    open: server.open,
    credentials: async () => ({ token: "t", dpop: "p" }),
    refresh: async () => {},
    tabs: tabs.tab(),
    version: "test",
    sessionId: "session",
    newId: () => ids.next().value,
    onSignedOut: (reason) => ended.push(reason),
    onMessage: () => {},
  });
  const texts = () =>
    store
      .getState()
      .windows.get("thread")
      ?.messages.map((each) => each.content) ?? [];
  return { server, clock, storage, tabs, store, engine, ended, texts };
}

async function live(options: Parameters<typeof setup>[0] = {}) {
  const bench = setup(options);
  await bench.engine.start();
  await bench.clock.advance(0);
  await bench.engine.messages.open("thread");
  return bench;
}

describe("the engine", () => {
  it("takes a snapshot first and is live from its position on", async () => {
    const { store, server } = await live();
    expect(store.getState().connection.state).toBe("live");
    expect(server.sent[0]).toMatchObject({ op: "identify", d: { cursor: 10, sync_epoch: "epoch" } });
  });

  it("shows what arrives", async () => {
    const { server, texts } = await live();
    server.post({ content: "hello" });
    expect(texts()).toEqual(["hello"]);
  });

  it("loses nothing that was said while it was cut off", async () => {
    const { server, clock, store, texts } = await live();
    server.close(1006);
    server.post({ content: "while away" });
    await clock.advance(1_000);
    server.post({ content: "after" });
    expect(store.getState().connection.state).toBe("live");
    expect(texts()).toEqual(["while away", "after"]);
  });

  it("says that it is not live, and since when it was", async () => {
    const { server, clock, store } = await live();
    server.down = true;
    server.close(1006);
    await clock.advance(5_000);
    expect(store.getState().connection.state).not.toBe("live");
    expect(store.getState().lastLiveAt).not.toBeNull();
  });

  it("shows a message before it is sent and once after", async () => {
    const { engine, clock, store, texts, storage } = await live();
    await engine.submit({ kind: "create", threadId: "thread", content: "mine" });
    expect(storage.outbox.size).toBe(1);
    await clock.advance(0);
    expect(texts()).toEqual(["mine"]);
    expect(store.getState().outbox).toEqual([]);
    expect(storage.outbox.size).toBe(0);
  });

  it("writes one message when the answer is lost", async () => {
    const { engine, server, clock, texts } = await live();
    server.loseAnswer = true;
    await engine.submit({ kind: "create", threadId: "thread", content: "mine" });
    await clock.advance(60_000);
    expect(server.messages).toHaveLength(1);
    expect(texts()).toEqual(["mine"]);
  });

  it("keeps what is written offline over a restart, and sends it once in order", async () => {
    const first = await live();
    first.server.down = true;
    first.server.close(1006);
    await first.engine.submit({ kind: "create", threadId: "thread", content: "one" });
    await first.engine.submit({ kind: "create", threadId: "thread", content: "two" });
    await first.clock.advance(3_000);
    first.engine.stop();

    first.server.down = false;
    const { clock, server, store } = await live({ server: first.server, storage: first.storage, clock: first.clock });
    await clock.advance(60_000);
    expect(server.messages.map((each) => each.content)).toEqual(["one", "two"]);
    expect(store.getState().outbox).toEqual([]);
  });

  it("paints the stored state after a restart and catches up from its cursor", async () => {
    const first = await live();
    first.server.post({ content: "before" });
    await first.clock.advance(2_000);
    first.engine.stop();
    first.server.post({ content: "meanwhile" });

    const second = setup({ server: first.server, storage: first.storage, clock: first.clock });
    await second.engine.start();
    expect(second.texts()).toEqual(["before"]);
    await second.clock.advance(0);
    expect(second.server.sent.at(-1)).toMatchObject({ op: "identify", d: { cursor: 11 } });
    expect(second.texts()).toEqual(["before", "meanwhile"]);
  });

  it("starts over with another epoch and keeps the outbox", async () => {
    const { server, clock, store, engine } = await live();
    server.post({ content: "old history" });
    server.down = true;
    server.close(1006);
    await engine.submit({ kind: "create", threadId: "thread", content: "unsent" });
    server.messages.length = 0;
    server.log.length = 0;
    server.epoch = "restored";
    server.head = 3;
    server.down = false;
    await clock.advance(61_000);
    expect(store.getState().syncEpoch).toBe("restored");
    expect(server.messages.map((each) => each.content)).toEqual(["unsent"]);
  });

  it("asks for nothing but the snapshot when the log is too old", async () => {
    const { server, clock, store } = await live();
    server.close(4007, "cursor_out_of_range:retention");
    await clock.advance(5_000);
    expect(store.getState().connection.state).toBe("live");
  });

  it("stops when another window of the device took the connection", async () => {
    const { server, clock, store } = await live();
    server.close(4017);
    await clock.advance(600_000);
    expect(store.getState().connection).toEqual({ state: "stopped", reason: "elsewhere" });
    expect(server.connections).toBe(1);
  });

  it("drops a connection that does not answer its heartbeat", async () => {
    const { server, clock, store } = await live();
    server.silent = true;
    await clock.advance(21_000);
    expect(server.connections).toBeGreaterThan(1);
    server.silent = false;
    await clock.advance(60_000);
    expect(store.getState().connection.state).toBe("live");
  });

  it("ends when this session was ended elsewhere, and only then", async () => {
    const { server, ended } = await live();
    const revoke = (seq: number, session: string) =>
      server.push("dispatch", {
        seq,
        type: "session.revoked",
        data: { session_id: session, reason: "device_revoked" },
      });
    revoke(50, "another");
    expect(ended).toEqual([]);
    revoke(51, "session");
    expect(ended).toEqual(["device_revoked"]);
  });
});

describe("several tabs", () => {
  it("share one connection, and the next one takes over", async () => {
    const tabs = new FakeTabs();
    const first = await live({ tabs });
    const second = await live({ tabs, server: first.server, storage: first.storage, clock: first.clock });
    expect(first.server.connections).toBe(1);
    first.server.post({ content: "to both" });
    expect(second.texts()).toEqual(["to both"]);

    first.engine.stop();
    await second.clock.advance(1_000);
    expect(second.store.getState().connection.state).toBe("live");
    expect(first.server.connections).toBe(2);
    first.server.post({ content: "to the heir" });
    expect(second.texts()).toEqual(["to both", "to the heir"]);
  });

  it("send what a following tab writes", async () => {
    const tabs = new FakeTabs();
    const first = await live({ tabs });
    const second = await live({ tabs, server: first.server, storage: first.storage, clock: first.clock });
    await second.engine.submit({ kind: "create", threadId: "thread", content: "from the second" });
    await first.clock.advance(1_000);
    expect(first.server.messages.map((each) => each.content)).toEqual(["from the second"]);
    expect(second.store.getState().outbox).toEqual([]);
  });
});
