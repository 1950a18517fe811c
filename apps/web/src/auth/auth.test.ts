// SPDX-License-Identifier: Apache-2.0
import "fake-indexeddb/auto";
import { describe, expect, it } from "vitest";
import { createProof, generateDeviceKey } from "./dpop";
import { base64url, utf8 } from "./encoding";
import { deviceName } from "./login";
import { type SessionDeps, SessionManager, SignedOutError, type TokenGrant } from "./session";
import { openVault, type StoredSession } from "./vault";

function decode(part: string | undefined): Record<string, unknown> {
  return JSON.parse(Buffer.from(part ?? "", "base64url").toString()) as Record<string, unknown>;
}

describe("a proof", () => {
  it("binds method, address without query, token and nonce, and is signed by the device key", async () => {
    const key = await generateDeviceKey();
    const proof = await createProof(key, {
      method: "POST",
      url: "https://chat.example.org/api/v1/messages?x=1#y",
      accessToken: "token",
      nonce: "n1",
      now: 1_700_000_000_999,
    });
    const [head, payload, signature] = proof.split(".");
    expect(decode(head)).toMatchObject({ typ: "dpop+jwt", alg: "ES256", jwk: { kty: "EC", crv: "P-256" } });
    expect(decode(head).jwk).not.toHaveProperty("d");
    expect(decode(payload)).toMatchObject({
      htm: "POST",
      htu: "https://chat.example.org/api/v1/messages",
      iat: 1_700_000_000,
      nonce: "n1",
      ath: base64url(await crypto.subtle.digest("SHA-256", utf8("token"))),
    });
    const valid = await crypto.subtle.verify(
      { name: "ECDSA", hash: "SHA-256" },
      key.publicKey,
      Buffer.from(signature ?? "", "base64url"),
      utf8(`${head}.${payload}`),
    );
    expect(valid).toBe(true);
  });

  it("is different each time", async () => {
    const key = await generateDeviceKey();
    const claims = { method: "GET", url: "https://a.example/x", now: 0 };
    const ids = await Promise.all([1, 2].map(async () => decode((await createProof(key, claims)).split(".")[1]).jti));
    expect(new Set(ids).size).toBe(2);
  });

  it("comes from a key that cannot be taken out", async () => {
    const { privateKey } = await generateDeviceKey();
    expect(privateKey.extractable).toBe(false);
    await expect(crypto.subtle.exportKey("pkcs8", privateKey)).rejects.toThrow();
  });
});

const grant = (token: string): TokenGrant => ({
  access_token: token,
  expires_in_ms: 600_000,
  refresh_token: `refresh-${token}`,
  session: { id: "s" },
  device: { id: "d" },
});

async function manager(change: Partial<SessionDeps> = {}) {
  let stored: StoredSession | undefined;
  const clock = { now: 0 };
  const vault = {
    deviceKey: generateDeviceKey,
    replaceDeviceKey: generateDeviceKey,
    session: async () => stored,
    saveSession: async (session: StoredSession) => {
      stored = session;
    },
    clearSession: async () => {
      stored = undefined;
    },
  };
  const used: string[] = [];
  const sessions = new SessionManager({
    vault,
    now: () => clock.now,
    exclusively: (work) => work(),
    refresh: async (token) => {
      used.push(token);
      return { kind: "granted", grant: grant(`new-${used.length}`) };
    },
    ...change,
  });
  await sessions.adopt(grant("first"), "me");
  return { sessions, clock, used, vault, ended: [] as string[] };
}

describe("a session", () => {
  it("keeps its token for four fifths of its life and replaces it then", async () => {
    const { sessions, clock, used } = await manager();
    clock.now = 479_000;
    expect(await sessions.accessToken()).toBe("first");
    clock.now = 481_000;
    expect(await sessions.accessToken()).toBe("new-1");
    expect(used).toEqual(["refresh-first"]);
  });

  it("takes over the token another tab got instead of asking again", async () => {
    const { sessions, used, vault } = await manager();
    const stored = await vault.session();
    if (stored !== undefined) await vault.saveSession({ ...stored, accessToken: "by the other tab" });
    expect(await sessions.refresh("first")).toBe("by the other tab");
    expect(used).toEqual([]);
  });

  it("survives a server that cannot be reached", async () => {
    const { sessions, clock } = await manager({ refresh: () => Promise.reject(new TypeError("offline")) });
    clock.now = 500_000;
    expect(await sessions.accessToken()).toBe("first");
    expect(sessions.current).toBeDefined();
  });

  it("ends when the server says so, and tells it", async () => {
    const { sessions, clock, vault } = await manager({ refresh: async () => ({ kind: "ended" }) });
    const ends: string[] = [];
    sessions.onEnd((reason) => ends.push(reason));
    clock.now = 700_000;
    await expect(sessions.accessToken()).rejects.toThrow(SignedOutError);
    expect(ends).toEqual(["session_ended"]);
    expect(await vault.session()).toBeUndefined();
  });
});

it("the vault keeps key and session over a reload", async () => {
  const vault = await openVault();
  const key = await vault.deviceKey();
  const again = await (await openVault()).deviceKey();
  expect(await crypto.subtle.exportKey("jwk", again.publicKey)).toEqual(
    await crypto.subtle.exportKey("jwk", key.publicKey),
  );
  const replaced = await vault.replaceDeviceKey();
  expect(await crypto.subtle.exportKey("jwk", replaced.publicKey)).not.toEqual(
    await crypto.subtle.exportKey("jwk", key.publicKey),
  );
});

it.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605 Version/19.0 Safari/605", "Safari on macOS"],
  ["Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605 Safari/604", "Safari on iOS"],
  ["curl", "Browser"],
])("names a device", (agent, name) => {
  expect(deviceName(agent)).toBe(name);
});
