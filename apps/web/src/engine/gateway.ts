// SPDX-License-Identifier: Apache-2.0
//
// One connection after the other: opens, identifies, beats, and reacts to every way a connection can end. What the
// frames mean is the engine's business.

import { ApiError, NetworkError } from "../api/problem";
import type { Id } from "../api/types";
import { SignedOutError } from "../auth/session";
import type { Envelope } from "../store/reduce";
import type { Connection } from "../store/state";
import { isClientFault, type Reaction, reactionTo } from "./closeCodes";
import type { Clock, Frame, GatewayCredentials, OpenSocket, Socket } from "./ports";

/** Where the client stands in the log when it connects. */
export interface Position {
  readonly cursor: number;
  readonly syncEpoch: string;
}

/** What the person looks at; it selects typing and live text. */
export interface Focus {
  readonly threadIds: readonly Id[];
  readonly idle: boolean;
}

export interface GatewayDeps {
  readonly open: OpenSocket;
  readonly credentials: GatewayCredentials;
  /** Replaces a refused token; throws SignedOutError when the session is over. */
  readonly refresh: () => Promise<void>;
  readonly position: () => Position | undefined;
  readonly focus: () => Focus;
  readonly clock: Clock;
  readonly version: string;
  readonly onEvents: (events: readonly Envelope[], through: number | null) => void;
  readonly onEphemeral: (event: Envelope) => void;
  readonly onState: (connection: Connection) => void;
  /** The log cannot bring this client up to date. The gateway stays closed until `connect` is called again. */
  readonly onResync: (reason: string) => void;
  readonly onSignedOut: () => void;
}

interface Hello {
  readonly heartbeat_interval_ms: number;
  readonly dpop_nonce: string;
  readonly sync_epoch: string;
}

interface Ready {
  readonly catchup: { readonly from_seq: number; readonly to_seq: number } | null;
}

interface Fault {
  readonly op?: string;
  readonly code: string;
  readonly reason?: string;
  readonly dpop_nonce?: string;
}

const ackTimeout = 10_000;
const readyTimeout = 15_000;
const stableAfter = 60_000;
const faultWindow = 10 * 60_000;

/** Keeps the client connected. */
export class Gateway {
  readonly #deps: GatewayDeps;
  #socket: Socket | undefined;
  #cancelTimers: (() => void)[] = [];
  #cancelWait: (() => void) | undefined;
  #cancelAck: (() => void) | undefined;
  #cancelReady: (() => void) | undefined;
  #attempt = 0;
  #liveSince: number | undefined;
  #faults: number[] = [];
  #heartbeat = 30_000;
  #nonce = "";
  #ready = false;
  #stopped = true;

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
  }

  /** Starts, or continues after a resync. */
  connect(): void {
    this.#stopped = false;
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    if (this.#socket !== undefined) return;
    const { clock, onState } = this.#deps;
    onState({ state: "connecting", attempt: this.#attempt, since: clock.now() });
    const socket = this.#deps.open({
      onFrame: (frame) => {
        if (this.#socket === socket) this.#onFrame(frame);
      },
      onClose: (code, reason) => {
        if (this.#socket === socket) this.#onClose(code, reason);
      },
    });
    this.#socket = socket;
    // A proxy may take the connection and never pass anything on.
    this.#cancelReady = clock.after(readyTimeout, () => this.#drop("no_answer"));
  }

  /** Ends the connection and every timer. */
  stop(): void {
    this.#stopped = true;
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    const socket = this.#socket;
    this.#release();
    socket?.close();
  }

  /** The network may be back, or the person asks: cuts a wait short. */
  hurry(): void {
    if (this.#cancelWait === undefined || this.#stopped) return;
    this.#cancelWait();
    this.#cancelWait = this.#deps.clock.after(this.#deps.clock.random() * 500, () => this.connect());
  }

  /** Sends an op when the connection is ready; ops of this kind are worth nothing later. */
  send(op: string, d: unknown): void {
    if (this.#ready) this.#socket?.send({ op, d });
  }

  /** Tells the server what is on the screen. */
  sendFocus(): void {
    const { threadIds, idle } = this.#deps.focus();
    this.send("focus", { thread_ids: threadIds.slice(0, 4), idle });
  }

  /** Asks for a sign of life at once, for example after the machine slept. */
  probe(): void {
    if (this.#ready) this.#beat();
  }

  #onFrame(frame: Frame): void {
    switch (frame.op) {
      case "hello":
        this.#onHello(frame.d as Hello);
        break;
      case "ready":
        this.#onReady(frame.d as Ready);
        break;
      case "dispatch":
        this.#deps.onEvents([frame.d as Envelope], null);
        break;
      case "ephemeral":
        this.#deps.onEphemeral(frame.d as Envelope);
        break;
      case "catchup.page":
        this.#onCatchupPage(frame.d as { events: Envelope[]; through_seq: number; to_seq: number });
        break;
      case "catchup.complete":
        this.#deps.onEvents([], (frame.d as { cursor: number }).cursor);
        this.#live();
        break;
      case "heartbeat_ack":
        this.#onAck(frame.d as { cursor?: number | null; interval_ms?: number });
        break;
      case "reauth_required":
        this.#nonce = (frame.d as { dpop_nonce: string }).dpop_nonce;
        void this.#authenticate("reauth", {});
        break;
      case "error":
        this.#onError(frame.d as Fault);
        break;
    }
  }

  #onHello(hello: Hello): void {
    this.#heartbeat = hello.heartbeat_interval_ms;
    this.#nonce = hello.dpop_nonce;
    const position = this.#deps.position();
    if (position !== undefined && position.syncEpoch !== hello.sync_epoch) {
      this.#resync("epoch", 0);
      return;
    }
    void this.#identify();
  }

  async #identify(): Promise<void> {
    const position = this.#deps.position();
    const { threadIds, idle } = this.#deps.focus();
    await this.#authenticate("identify", {
      protocol_version: 1,
      client: { name: "bothy-web", version: this.#deps.version, platform: "web" },
      ...(position === undefined ? {} : { cursor: position.cursor, sync_epoch: position.syncEpoch }),
      focus: { thread_ids: threadIds.slice(0, 4), idle },
    });
  }

  async #authenticate(op: "identify" | "reauth", members: object): Promise<void> {
    const socket = this.#socket;
    try {
      const credentials = await this.#deps.credentials(this.#nonce);
      if (this.#socket === socket) socket?.send({ op, d: { ...credentials, ...members } });
    } catch (cause) {
      if (this.#socket !== socket) return;
      if (cause instanceof SignedOutError) this.#signedOut();
      else if (cause instanceof ApiError || cause instanceof NetworkError) this.#drop("credentials");
      else throw cause;
    }
  }

  #onReady(ready: Ready): void {
    this.#ready = true;
    this.#cancelReady?.();
    const { clock, onState } = this.#deps;
    // The first beat falls somewhere in the first interval, so that many clients do not beat in step.
    this.#every(clock.random() * this.#heartbeat);
    if (ready.catchup === null) {
      this.#live();
      return;
    }
    const { from_seq, to_seq } = ready.catchup;
    onState({ state: "catching_up", from: from_seq, through: from_seq, to: to_seq });
  }

  #onCatchupPage(page: { events: Envelope[]; through_seq: number; to_seq: number }): void {
    const from = this.#deps.position()?.cursor ?? 0;
    this.#deps.onEvents(page.events, page.through_seq);
    this.#deps.onState({ state: "catching_up", from, through: page.through_seq, to: page.to_seq });
  }

  #live(): void {
    this.#liveSince ??= this.#deps.clock.now();
    this.#deps.onState({ state: "live", since: this.#liveSince });
  }

  #every(wait: number): void {
    this.#cancelTimers.push(
      this.#deps.clock.after(wait, () => {
        this.#beat();
        this.#every(this.#heartbeat);
      }),
    );
  }

  #beat(): void {
    const cursor = this.#deps.position()?.cursor;
    this.#socket?.send({ op: "heartbeat", d: cursor === undefined ? {} : { cursor } });
    this.#cancelAck ??= this.#deps.clock.after(ackTimeout, () => this.#drop("heartbeat"));
  }

  #onAck(ack: { cursor?: number | null; interval_ms?: number }): void {
    this.#cancelAck?.();
    this.#cancelAck = undefined;
    if (ack.interval_ms !== undefined && ack.interval_ms > 0) this.#heartbeat = ack.interval_ms;
    if (ack.cursor !== undefined && ack.cursor !== null) this.#deps.onEvents([], ack.cursor);
    const { clock } = this.#deps;
    if (this.#liveSince !== undefined && clock.now() - this.#liveSince > stableAfter) this.#attempt = 0;
  }

  #onError(fault: Fault): void {
    if (fault.code === "use_dpop_nonce" && fault.dpop_nonce !== undefined) {
      this.#nonce = fault.dpop_nonce;
      if (fault.op === "reauth") void this.#authenticate("reauth", {});
      else void this.#identify();
    }
    if (fault.code === "resync_required") this.#resync(fault.reason ?? "required", 0);
  }

  #resync(reason: string, wait: number): void {
    this.#cut();
    if (wait === 0) this.#deps.onResync(reason);
    else this.#wait({ kind: "resync", wait, reason });
  }

  /** Ends a connection that gives no sign of life, without waiting for its close. */
  #drop(reason: string): void {
    this.#cut();
    this.#attempt += 1;
    this.#wait({ kind: "reconnect", wait: this.#deps.clock.random() * 1_000, reason });
  }

  #cut(): void {
    const socket = this.#socket;
    this.#release();
    socket?.close();
  }

  #onClose(code: number, text: string): void {
    const now = this.#deps.clock.now();
    if (this.#liveSince !== undefined && now - this.#liveSince > stableAfter) this.#attempt = 0;
    this.#release();
    if (isClientFault(code)) this.#faults = [...this.#faults.filter((at) => now - at < faultWindow), now];
    const reaction = reactionTo(code, text, {
      attempt: this.#attempt,
      clientFaults: this.#faults.length,
      random: this.#deps.clock.random,
    });
    this.#attempt += 1;
    if (reaction.kind === "stop") {
      this.#stopped = true;
      this.#deps.onState({ state: "stopped", reason: reaction.reason });
      return;
    }
    this.#wait(reaction);
  }

  #wait(reaction: Exclude<Reaction, { kind: "stop" }>): void {
    if (this.#stopped) return;
    const { clock, onState } = this.#deps;
    onState({
      state: "waiting",
      nextAt: clock.now() + reaction.wait,
      reason: reaction.reason,
      attempt: this.#attempt,
    });
    this.#cancelWait = clock.after(reaction.wait, () => {
      this.#cancelWait = undefined;
      if (reaction.kind === "resync") this.#deps.onResync(reaction.reason);
      else if (reaction.kind === "refresh_then_reconnect") void this.#refreshThenConnect();
      else this.connect();
    });
  }

  async #refreshThenConnect(): Promise<void> {
    try {
      await this.#deps.refresh();
      if (!this.#stopped) this.connect();
    } catch (cause) {
      if (cause instanceof SignedOutError) this.#signedOut();
      else if (!this.#stopped) this.#drop("credentials");
    }
  }

  #signedOut(): void {
    this.stop();
    this.#deps.onSignedOut();
  }

  #release(): void {
    this.#socket = undefined;
    this.#ready = false;
    this.#liveSince = undefined;
    this.#cancelAck?.();
    this.#cancelAck = undefined;
    this.#cancelReady?.();
    this.#cancelReady = undefined;
    for (const cancel of this.#cancelTimers) cancel();
    this.#cancelTimers = [];
  }
}
