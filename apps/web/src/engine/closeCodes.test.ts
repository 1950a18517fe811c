// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { reactionTo } from "./closeCodes";

const context = { attempt: 0, clientFaults: 0, random: () => 0.5 };

describe("the end of a connection", () => {
  it.each([
    [4000, "internal_error", { kind: "reconnect", wait: 500, reason: "server_error" }],
    [4001, "malformed", { kind: "reconnect", wait: 4000, reason: "client_fault" }],
    [4002, "unknown_op", { kind: "reconnect", wait: 4000, reason: "client_fault" }],
    [4003, "identify_timeout", { kind: "reconnect", wait: 500, reason: "identify_timeout" }],
    [4004, "authentication_failed", { kind: "refresh_then_reconnect", wait: 0, reason: "authentication" }],
    [4005, "already_identified", { kind: "reconnect", wait: 4000, reason: "client_fault" }],
    [4006, "session_unknown", { kind: "reconnect", wait: 500, reason: "session_unknown" }],
    [4007, "cursor_out_of_range", { kind: "resync", wait: 2500, reason: "cursor" }],
    [4008, "rate_limited:20000", { kind: "reconnect", wait: 20500, reason: "rate_limited" }],
    [4008, "rate_limited", { kind: "reconnect", wait: 10500, reason: "rate_limited" }],
    [4009, "heartbeat_missed", { kind: "reconnect", wait: 500, reason: "heartbeat" }],
    [4010, "credentials_ended", { kind: "refresh_then_reconnect", wait: 0, reason: "credentials" }],
    [4011, "protocol_version", { kind: "stop", reason: "update_required" }],
    [4012, "not_available:maintenance", { kind: "reconnect", wait: 37500, reason: "not_available" }],
    [4013, "server_restart:8000", { kind: "reconnect", wait: 4000, reason: "restart" }],
    [4014, "too_slow", { kind: "reconnect", wait: 500, reason: "too_slow" }],
    [4015, "consumer_taken", { kind: "stop", reason: "elsewhere" }],
    [4016, "frame_too_large", { kind: "reconnect", wait: 500, reason: "frame_too_large" }],
    [4017, "device_elsewhere", { kind: "stop", reason: "elsewhere" }],
    [4018, "forbidden", { kind: "stop", reason: "forbidden" }],
    [1006, "", { kind: "reconnect", wait: 500, reason: "network" }],
  ])("%i %s", (code, text, reaction) => {
    expect(reactionTo(code, text, context)).toEqual(reaction);
  });

  it("stops after three faults of its own", () => {
    expect(reactionTo(4001, "", { ...context, clientFaults: 3 })).toEqual({ kind: "stop", reason: "client_fault" });
  });

  it("never waits longer than a minute for a network that is gone", () => {
    expect(reactionTo(1006, "", { attempt: 40, clientFaults: 0, random: () => 1 })).toMatchObject({ wait: 60_000 });
  });
});
