// SPDX-License-Identifier: Apache-2.0
//
// The ways in: password, and a one-time code that sets the first password.
import { type ApiClient, body } from "../api/client";
import { ApiError } from "../api/problem";
import type { DevicePending, LoginFlow, LoginResult } from "../api/types";
import type { Vault } from "./vault";

/** A login ends with a session or with a device that waits for approval. */
export type LoginOutcome = LoginResult | DevicePending;

/** Drives logins with the device key. */
export interface Login {
  password(login: string, password: string): Promise<LoginOutcome>;
  /** Opens a code and tells for whom it is. */
  beginCode(code: string): Promise<LoginFlow>;
  /** Sets the password of the person of an opened code. */
  completeCode(flowId: string, password: string): Promise<LoginOutcome>;
  /** Asks whether a waiting device was approved. */
  poll(flowId: string): Promise<LoginOutcome>;
}

/** Login over the client that proves the device key alone. */
export function loginWith(client: ApiClient, vault: Pick<Vault, "replaceDeviceKey">, version: string): Login {
  const device = {
    name: deviceName(navigator.userAgent),
    platform: "web",
    client: "app",
    client_version: version,
  } as const;

  /** A key that belongs to somebody else's device is replaced once: each account has its own. */
  async function withOwnKey<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (!(cause instanceof ApiError) || cause.problem.reason !== "device_key_in_use") throw cause;
      await vault.replaceDeviceKey();
      return work();
    }
  }

  async function complete(flowId: string, proof: object): Promise<LoginOutcome> {
    const result = await client.POST("/auth/login/{flow_id}/complete", {
      params: { path: { flow_id: flowId } },
      body: proof,
    });
    return body(result);
  }

  return {
    password: (login, password) =>
      withOwnKey(async () => {
        const flow = body(await client.POST("/auth/login", { body: { driver: "local", device } }));
        return complete(flow.flow_id, { login, password });
      }),
    beginCode: (code) =>
      withOwnKey(async () => body(await client.POST("/auth/login", { body: { driver: "enrollment", code, device } }))),
    completeCode: (flowId, password) => complete(flowId, { credential: { kind: "password", password } }),
    poll: (flowId) => complete(flowId, {}),
  };
}

/** A name the person recognises in the list of sessions, such as "Firefox on Linux". */
export function deviceName(userAgent: string): string {
  const browser = /Firefox/.test(userAgent)
    ? "Firefox"
    : /Edg\//.test(userAgent)
      ? "Edge"
      : /Chrome|Chromium/.test(userAgent)
        ? "Chrome"
        : /Safari/.test(userAgent)
          ? "Safari"
          : "Browser";
  const systems: [RegExp, string][] = [
    [/iPhone|iPad/, "iOS"],
    [/Android/, "Android"],
    [/Mac OS X/, "macOS"],
    [/Windows/, "Windows"],
    [/Linux/, "Linux"],
  ];
  const system = systems.find(([pattern]) => pattern.test(userAgent))?.[1];
  return system === undefined ? browser : `${browser} on ${system}`;
}
