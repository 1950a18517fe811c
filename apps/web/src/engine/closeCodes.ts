// SPDX-License-Identifier: Apache-2.0
//
// What the client does when the gateway closes the connection, as data.
import type { StopReason } from "../store/state";
import { backoff, type Random } from "./backoff";

/** Reaction to the end of a connection. Waits are in milliseconds. */
export type Reaction =
  | { readonly kind: "reconnect"; readonly wait: number; readonly reason: string }
  | { readonly kind: "refresh_then_reconnect"; readonly wait: number; readonly reason: string }
  | { readonly kind: "resync"; readonly wait: number; readonly reason: string }
  | { readonly kind: "stop"; readonly reason: StopReason };

/** What the reaction depends on. */
export interface CloseContext {
  /** Attempts since the connection was last live for a minute. */
  readonly attempt: number;
  /** Faults of this client in the last ten minutes, this one included. */
  readonly clientFaults: number;
  readonly random: Random;
}

type Rule = (detail: string, context: CloseContext) => Reaction;

const again =
  (reason: string, wait: (context: CloseContext, detail: string) => number): Rule =>
  (detail, context) => ({ kind: "reconnect", wait: wait(context, detail), reason });

const refresh =
  (reason: string): Rule =>
  (_detail, { attempt, random }) => ({
    kind: "refresh_then_reconnect",
    wait: attempt === 0 ? 0 : backoff(attempt, random),
    reason,
  });

const standard = ({ attempt, random }: CloseContext) => backoff(attempt, random);

/** A fault of this client: slower each time, and the third within ten minutes ends the attempts. */
const clientFault: Rule = (_detail, { attempt, clientFaults, random }) =>
  clientFaults >= 3
    ? { kind: "stop", reason: "client_fault" }
    : { kind: "reconnect", wait: backoff(attempt + 3, random), reason: "client_fault" };

const milliseconds = (detail: string, fallback: number) => {
  const value = Number(detail);
  return detail !== "" && Number.isFinite(value) ? value : fallback;
};

/** Rules by close code; codes without an entry are faults of the network. */
export const closeRules: Readonly<Record<number, Rule>> = {
  4000: again("server_error", standard),
  4001: clientFault,
  4002: clientFault,
  4003: again("identify_timeout", standard),
  4004: refresh("authentication"),
  4005: clientFault,
  4006: again("session_unknown", ({ random }) => random() * 1_000),
  4007: (_detail, { random }) => ({ kind: "resync", wait: random() * 5_000, reason: "cursor" }),
  4008: again("rate_limited", (context, detail) => Math.max(10_000, milliseconds(detail, 0)) + standard(context)),
  4009: again("heartbeat", ({ random }) => random() * 1_000),
  4010: refresh("credentials"),
  4011: () => ({ kind: "stop", reason: "update_required" }),
  4012: again("not_available", ({ random }) => 15_000 + random() * 45_000),
  4013: again("restart", ({ random }, detail) => random() * milliseconds(detail, 5_000)),
  4014: again("too_slow", standard),
  4015: () => ({ kind: "stop", reason: "elsewhere" }),
  4016: again("frame_too_large", standard),
  4017: () => ({ kind: "stop", reason: "elsewhere" }),
  4018: () => ({ kind: "stop", reason: "forbidden" }),
};

/** Reaction to a close code and its reason text, which has the form `<name>[:<detail>]`. */
export function reactionTo(code: number, text: string, context: CloseContext): Reaction {
  const detail = text.includes(":") ? text.slice(text.indexOf(":") + 1) : "";
  const rule = closeRules[code] ?? again("network", standard);
  return rule(detail, context);
}

/** Codes that mean this client sent something wrong. */
export function isClientFault(code: number): boolean {
  return code === 4001 || code === 4002 || code === 4005;
}
