// SPDX-License-Identifier: Apache-2.0
//
// The sync engine of a tab: brings the store up to date and keeps it there. The leading tab talks to the gateway and
// sends the outbox; the others follow what it hears.
import { ApiError, NetworkError } from "../api/problem";
import type { Id, Message } from "../api/types";
import { SignedOutError, type SignedOutReason } from "../auth/session";
import { Draft } from "../store/draft";
import { applyEphemeral, applyEvents, type Effect, type Envelope } from "../store/reduce";
import { applyScopedPage, applySnapshot, staleWindows } from "../store/snapshot";
import type { Connection, State } from "../store/state";
import type { Store } from "../store/store";
import { Gateway } from "./gateway";
import { MessageLoader } from "./messageLoader";
import type { OutboxWork } from "./outbox";
import { OutboxDesk } from "./outboxDesk";
import type { Clock, EngineApi, GatewayCredentials, OpenSocket, Storage } from "./ports";
import { ReadPositions } from "./readPositions";
import { snapshotPages } from "./snapshotPages";
import type { TabMessage, Tabs } from "./tabs";

export interface EngineDeps {
  readonly api: EngineApi;
  readonly store: Store;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly open: OpenSocket;
  readonly credentials: GatewayCredentials;
  readonly refresh: () => Promise<void>;
  readonly tabs: Tabs;
  readonly version: string;
  readonly sessionId: Id;
  readonly newId: () => Id;
  readonly onSignedOut: (reason: SignedOutReason) => void;
  /** A message of somebody else came in live, for the announcer. */
  readonly onMessage: (message: Message) => void;
}

const saveDelay = 1_000;
const heldEvents = 1_000;

/** Runs from sign-in to sign-out. */
export class Engine {
  readonly #deps: EngineDeps;
  readonly #gateway: Gateway;
  readonly #outbox: OutboxDesk;
  readonly messages: MessageLoader;
  readonly reads: ReadPositions;
  #leading = false;
  #stopped = false;
  #cancelSave: (() => void) | undefined;
  #visible: readonly Id[] = [];
  #idle = false;
  /** Events that arrive while a snapshot loads; undefined when events are applied at once. */
  #held: Envelope[] | undefined;
  #stopTabs: () => void = () => {};

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    const { api, store, storage, clock } = deps;
    this.#gateway = new Gateway({
      open: deps.open,
      credentials: deps.credentials,
      refresh: deps.refresh,
      position: () => this.#position(),
      focus: () => ({ threadIds: this.#visible, idle: this.#idle }),
      clock,
      version: deps.version,
      onEvents: (events, through) => this.#onEvents(events, through),
      onEphemeral: (event) => this.#onEphemeral(event),
      onState: (connection) => this.#onConnection(connection),
      onResync: (reason) => void this.#resync(reason),
      onSignedOut: () => deps.onSignedOut("session_ended"),
    });
    this.#outbox = new OutboxDesk({
      api,
      store,
      storage,
      clock,
      newId: deps.newId,
      onChange: () => this.#post({ kind: "outbox" }),
    });
    this.messages = new MessageLoader({ api, store });
    this.reads = new ReadPositions({ api, store, clock });
  }

  /** Shows what is stored, then joins the other tabs. */
  async start(): Promise<void> {
    const { storage, store, tabs } = this.#deps;
    const [log, outbox] = await Promise.all([storage.loadLog(), this.#outbox.restore()]);
    if (this.#stopped) return;
    store.update((state) => ({
      ...state,
      ...(log === undefined ? {} : { ...log, windows: staleWindows(log.windows) }),
      outbox,
    }));
    this.#stopTabs = tabs.join({
      onLead: () => this.#lead(),
      onMessage: (message) => this.#onTabMessage(message),
    });
    if (!this.#leading) await this.#follow();
  }

  /** Ends every timer and connection; what is stored stays. */
  stop(): void {
    this.#stopped = true;
    this.#gateway.stop();
    this.#outbox.stop();
    this.#cancelSave?.();
    this.#stopTabs();
  }

  /** Writes the log state now, for a tab that is about to be hidden. */
  flush(): void {
    if (!this.#leading || this.#cancelSave === undefined) return;
    this.#cancelSave();
    this.#cancelSave = undefined;
    void this.#save();
  }

  /** Puts work into the outbox: stored first, then shown, then sent. */
  submit(work: OutboxWork): Promise<void> {
    return this.#outbox.submit(work);
  }

  /** Sends a failed or held entry again. */
  retry(key: Id): Promise<void> {
    return this.#outbox.retry(key);
  }

  /** Gives an entry up. */
  discard(key: Id): Promise<void> {
    return this.#outbox.discard(key);
  }

  /** What is on the screen of this tab. */
  setFocus(threadIds: readonly Id[], idle: boolean): void {
    if (idle === this.#idle && sameIds(threadIds, this.#visible)) return;
    this.#visible = threadIds;
    this.#idle = idle;
    if (this.#leading) this.#gateway.sendFocus();
    else this.#post({ kind: "focus", threadIds, idle });
  }

  typing(threadId: Id, active: boolean): void {
    const op = active ? "typing.start" : "typing.stop";
    if (this.#leading) this.#gateway.send(op, { thread_id: threadId });
    else this.#post({ kind: "op", op, d: { thread_id: threadId } });
  }

  /** The network may be back, the tab became visible, or the person pressed "Try now". */
  hurry(): void {
    this.#gateway.hurry();
    this.#gateway.probe();
    this.#outbox.wake();
  }

  /** Takes the connection over from another browser tab or window of the same device. */
  useHere(): void {
    this.#gateway.connect();
  }

  #lead(): void {
    if (this.#stopped) return;
    this.#leading = true;
    this.#outbox.start();
    if (this.#deps.store.getState().cursor === null) void this.#resync("first");
    else this.#gateway.connect();
  }

  /** A following tab needs a state of its own to lay the leader's events over. */
  async #follow(): Promise<void> {
    const { clock, store } = this.#deps;
    store.update((state) => ({ ...state, connection: { state: "connecting", attempt: 0, since: clock.now() } }));
    this.#post({ kind: "hello" });
    if (store.getState().cursor === null || !this.#leading) await this.#resync("follow");
  }

  #onTabMessage(message: TabMessage): void {
    switch (message.kind) {
      case "events":
        if (!this.#leading) this.#onEvents(message.events, message.through);
        break;
      case "ephemeral":
        if (!this.#leading) this.#apply((state) => applyEphemeral(state, message.event, this.#deps.clock.now()));
        break;
      case "state":
        if (!this.#leading && this.#held === undefined) this.#setConnection(message.connection);
        break;
      case "hello":
        if (this.#leading) this.#post({ kind: "state", connection: this.#deps.store.getState().connection });
        break;
      case "outbox":
        void this.#outbox.reload();
        break;
      case "focus":
        // The leader speaks for all tabs: what any of them shows counts as looked at.
        if (this.#leading)
          this.#gateway.send("focus", {
            thread_ids: union(this.#visible, message.threadIds),
            idle: message.idle && this.#idle,
          });
        break;
      case "op":
        if (this.#leading) this.#gateway.send(message.op, message.d);
        break;
      case "signed_out":
        this.#deps.onSignedOut("signed_out");
        break;
    }
  }

  #onConnection(connection: Connection): void {
    if (this.#held !== undefined && connection.state !== "stopped") return;
    this.#setConnection(connection);
    this.#post({ kind: "state", connection });
    if (connection.state === "live") this.hurryOutbox();
  }

  /** The outbox alone, when the connection is known to be well. */
  hurryOutbox(): void {
    this.#outbox.wake();
  }

  #setConnection(connection: Connection): void {
    this.#deps.store.update((state) => ({
      ...state,
      connection,
      lastLiveAt: leavesLive(state.connection, connection) ? this.#deps.clock.now() : state.lastLiveAt,
    }));
  }

  #onEvents(events: readonly Envelope[], through: number | null): void {
    if (this.#leading && (events.length > 0 || through !== null)) this.#post({ kind: "events", events, through });
    if (this.#held !== undefined) {
      this.#held.push(...events);
      if (this.#held.length > heldEvents) this.#held.splice(0, this.#held.length);
      return;
    }
    this.#apply((state) => applyEvents(state, events, through, this.#deps.clock.now()));
  }

  #onEphemeral(event: Envelope): void {
    this.#post({ kind: "ephemeral", event });
    this.#apply((state) => applyEphemeral(state, event, this.#deps.clock.now()));
  }

  #apply(change: (state: State) => { state: State; effects: readonly Effect[] }): void {
    let effects: readonly Effect[] = [];
    const before = this.#deps.store.getState().cursor;
    this.#deps.store.update((state) => {
      const applied = change(state);
      effects = applied.effects;
      return applied.state;
    });
    if (this.#deps.store.getState().cursor !== before) this.#scheduleSave();
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case "load_end":
        void this.messages.loadNewer(effect.threadId);
        break;
      case "load_run":
        void this.messages.loadRun(effect.runId);
        break;
      case "load_targets":
        void this.#loadTargets(effect.targets);
        break;
      case "resync":
        void this.#resync(effect.reason);
        break;
      case "session_revoked":
        if (effect.sessionId === this.#deps.sessionId) this.#deps.onSignedOut(signedOutReason(effect.reason));
        break;
      case "message_arrived":
        if (this.#deps.store.getState().connection.state === "live") this.#deps.onMessage(effect.message);
        break;
    }
  }

  async #loadTargets(targets: readonly string[]): Promise<void> {
    try {
      const pages = await snapshotPages(this.#deps.api, targets, () => {});
      this.#deps.store.update((state) => pages.reduce(applyScopedPage, state));
      this.#scheduleSave();
    } catch (cause) {
      if (cause instanceof SignedOutError) return;
      // Nothing is lost by waiting: the next resync or restart brings the targets.
      if (!this.#stopped) this.#deps.clock.after(5_000, () => void this.#loadTargets(targets));
    }
  }

  /** Loads the structure anew. What is on the screen stays readable meanwhile. */
  async #resync(reason: string): Promise<void> {
    if (this.#stopped || this.#held !== undefined) return;
    this.#held = [];
    if (this.#leading) this.#setConnection({ state: "resyncing", reason, page: 0 });
    try {
      const pages = await snapshotPages(this.#deps.api, undefined, (page) => {
        if (this.#leading) this.#setConnection({ state: "resyncing", reason: "snapshot", page });
      });
      if (this.#stopped) return;
      const held = this.#held;
      this.#held = undefined;
      this.#deps.store.update((state) => applySnapshot(state, pages));
      this.#apply((state) => applyEvents(state, held, null, this.#deps.clock.now()));
      this.#scheduleSave();
      if (this.#leading) this.#gateway.connect();
      else this.#post({ kind: "hello" });
    } catch (cause) {
      this.#held = undefined;
      if (this.#stopped || cause instanceof SignedOutError) return;
      this.#waitForResync(reason, cause);
    }
  }

  #waitForResync(reason: string, cause: unknown): void {
    const { clock } = this.#deps;
    const fatal = cause instanceof ApiError && cause.problem.status === 403;
    if (fatal || !(cause instanceof ApiError || cause instanceof NetworkError)) {
      this.#setConnection({ state: "stopped", reason: fatal ? "forbidden" : "client_fault" });
      if (!fatal) throw cause;
      return;
    }
    const asked = cause instanceof ApiError ? cause.problem.retryAfter : undefined;
    const wait = asked ?? 2_000 + clock.random() * 6_000;
    this.#setConnection({ state: "waiting", nextAt: clock.now() + wait, reason: "snapshot", attempt: 1 });
    clock.after(wait, () => void this.#resync(reason));
  }

  #position() {
    const { cursor, syncEpoch } = this.#deps.store.getState();
    return cursor === null || syncEpoch === null ? undefined : { cursor, syncEpoch };
  }

  #scheduleSave(): void {
    if (!this.#leading || this.#stopped) return;
    this.#cancelSave ??= this.#deps.clock.after(saveDelay, () => {
      this.#cancelSave = undefined;
      void this.#save();
    });
  }

  async #save(): Promise<void> {
    await this.#deps.storage.saveLog(this.#deps.store.getState());
  }

  #post(message: TabMessage): void {
    this.#deps.tabs.post(message);
  }

  /** Resources that came by REST outside of the loaders. */
  absorb(change: (draft: Draft) => void): void {
    this.#deps.store.update((state) => {
      const draft = new Draft(state);
      change(draft);
      return draft.state;
    });
  }
}

function leavesLive(before: Connection, after: Connection): boolean {
  return before.state === "live" && after.state !== "live";
}

function signedOutReason(reason: string): SignedOutReason {
  if (reason === "device_revoked" || reason === "user_disabled") return reason;
  return reason === "logout" ? "signed_out" : "session_ended";
}

function sameIds(a: readonly Id[], b: readonly Id[]): boolean {
  return a.length === b.length && a.every((id, at) => id === b[at]);
}

function union(a: readonly Id[], b: readonly Id[]): readonly Id[] {
  return [...new Set([...a, ...b])].slice(0, 4);
}
