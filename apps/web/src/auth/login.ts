// SPDX-License-Identifier: Apache-2.0
//
// The ways in: passkey, password, and a one-time code that sets the first of either.
import { type ApiClient, body } from "../api/client";
import { ApiError } from "../api/problem";
import type { DevicePending, LoginFlow, LoginResult } from "../api/types";
import type { Passkeys } from "./passkeys";
import type { Vault } from "./vault";

/** A login ends with a session or with a device that waits for approval. */
export type LoginOutcome = LoginResult | DevicePending;

/** Drives logins with the device key. */
export interface Login {
  password(login: string, password: string): Promise<LoginOutcome>;
  /** Lets the person choose a passkey; absent where the browser has none. */
  readonly passkey?: (() => Promise<LoginOutcome>) | undefined;
  /** Opens a code and tells for whom it is. */
  beginCode(code: string): Promise<LoginFlow>;
  /** Sets the password of the person of an opened code. */
  completeCode(flowId: string, password: string): Promise<LoginOutcome>;
  /** Makes the first passkey of the person of an opened code; absent where the browser cannot. */
  readonly completeCodeByPasskey?: ((flow: LoginFlow) => Promise<LoginOutcome>) | undefined;
  /** Begins a sign-in at a provider; gives the address to send the browser to. */
  beginExternal(providerId: string): Promise<string>;
  /** Goes on with what the provider sent the browser back with. */
  completeExternal(flowId: string, result: string): Promise<LoginOutcome>;
  /** Asks whether a waiting device was approved. */
  poll(flowId: string): Promise<LoginOutcome>;
}

/** Login over the client that proves the device key alone. */
export function loginWith(
  client: ApiClient,
  vault: Pick<Vault, "replaceDeviceKey">,
  passkeys: Passkeys,
  version: string,
): Login {
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

  /** Whose key the passkey belongs to is known only afterwards: a foreign device key costs a second choice. */
  async function byPasskey(): Promise<LoginOutcome> {
    const flow = body(await client.POST("/auth/login", { body: { driver: "passkey", device } }));
    return complete(flow.flow_id, { passkey: await passkeys.use(flow.passkey_options ?? {}) });
  }

  async function codeByPasskey(flow: LoginFlow): Promise<LoginOutcome> {
    const passkey = await passkeys.create(flow.passkey_options ?? {});
    return complete(flow.flow_id, { credential: { kind: "passkey", passkey } });
  }

  return {
    passkey: passkeys.available ? () => withOwnKey(byPasskey) : undefined,
    completeCodeByPasskey: passkeys.available ? codeByPasskey : undefined,
    password: (login, password) =>
      withOwnKey(async () => {
        const flow = body(await client.POST("/auth/login", { body: { driver: "local", device } }));
        return complete(flow.flow_id, { login, password });
      }),
    beginCode: (code) =>
      withOwnKey(async () => body(await client.POST("/auth/login", { body: { driver: "enrollment", code, device } }))),
    completeCode: (flowId, password) => complete(flowId, { credential: { kind: "password", password } }),
    beginExternal: (providerId) =>
      withOwnKey(async () => {
        const request = { driver: "oidc", provider_id: providerId, return_to: "/auth/callback", device } as const;
        const { authorization_url: address } = body(await client.POST("/auth/login", { body: request }));
        if (address === undefined) throw new TypeError("a provider without an address");
        return address;
      }),
    completeExternal: (flowId, result) => complete(flowId, { result_code: result }),
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
