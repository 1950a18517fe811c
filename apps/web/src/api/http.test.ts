// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { generateDeviceKey } from "../auth/dpop";
import type { SessionManager } from "../auth/session";
import { Http } from "./http";
import { ApiError, isTransient, NetworkError, readProblem } from "./problem";

interface Seen {
  readonly authorization: string | null;
  readonly nonce: unknown;
  readonly body: string;
}

function setup(answers: (() => Response | Error)[], stepUp: () => Promise<boolean> = async () => false) {
  const seen: Seen[] = [];
  let token = "old";
  const key = generateDeviceKey();
  const http = new Http(
    {
      vault: { deviceKey: () => key },
      sessions: () =>
        ({
          accessToken: async () => token,
          refresh: async () => {
            token = "new";
            return token;
          },
        }) as unknown as SessionManager,
      fetch: async (request) => {
        const claims = Buffer.from(request.headers.get("DPoP")?.split(".")[1] ?? "", "base64url").toString() || "{}";
        seen.push({
          authorization: request.headers.get("Authorization"),
          nonce: (JSON.parse(claims) as Record<string, unknown>).nonce,
          body: await request.text(),
        });
        const answer = answers.shift()?.() ?? new Response("{}");
        if (answer instanceof Error) throw answer;
        return answer;
      },
      now: () => Date.now(),
      stepUp,
    },
    "https://chat.example.org",
  );
  return { http, seen };
}

const problem =
  (status: number, code: string, headers: Record<string, string> = {}) =>
  () =>
    new Response(JSON.stringify({ code, status }), { status, headers });

const post = () => new Request("https://chat.example.org/api/v1/x", { method: "POST", body: '{"a":1}' });

describe("a request", () => {
  it("is repeated once with the nonce the server asks for", async () => {
    const { http, seen } = setup([problem(401, "use_dpop_nonce", { "DPoP-Nonce": "n1" })]);
    await http.send(post(), "session");
    expect(seen.map((each) => each.nonce)).toEqual([undefined, "n1"]);
    expect(seen[1]?.body).toBe('{"a":1}');
  });

  it("is repeated once with a fresh token", async () => {
    const { http, seen } = setup([problem(401, "token_expired")]);
    await http.send(post(), "session");
    expect(seen.map((each) => each.authorization)).toEqual(["DPoP old", "DPoP new"]);
  });

  it("is not repeated when the proof of a person was wrong: that would count as a second attempt", async () => {
    const refused = () =>
      new Response(JSON.stringify({ code: "unauthenticated", reason: "login_failed", status: 401 }), { status: 401 });
    const { http, seen } = setup([refused]);
    await expect(http.send(post(), "session")).rejects.toMatchObject({ problem: { reason: "login_failed" } });
    expect(seen).toHaveLength(1);
  });

  it("is not repeated for ever", async () => {
    const { http, seen } = setup([problem(401, "token_expired"), problem(401, "token_expired")]);
    await expect(http.send(post(), "session")).rejects.toThrow(ApiError);
    expect(seen).toHaveLength(2);
  });

  it("goes on after the person gave a fresh proof", async () => {
    const { http, seen } = setup([problem(401, "step_up_required")], async () => true);
    await http.send(post(), "session");
    expect(seen).toHaveLength(2);
  });

  it("ends with the refusal when the proof was not given", async () => {
    const { http } = setup([problem(401, "step_up_required")]);
    await expect(http.send(post(), "session")).rejects.toMatchObject({ problem: { code: "step_up_required" } });
  });

  it("carries no token when it only proves the key", async () => {
    const { http, seen } = setup([]);
    await http.send(post(), "key");
    expect(seen[0]?.authorization).toBeNull();
  });

  it("tells a missing answer from a refusal", async () => {
    const { http } = setup([() => new TypeError("failed to fetch")]);
    await expect(http.send(post(), "session")).rejects.toThrow(NetworkError);
  });
});

describe("a problem", () => {
  it("of a proxy in another form is an internal error worth repeating", async () => {
    const read = await readProblem(new Response("<html>Bad gateway</html>", { status: 502 }));
    expect(read.code).toBe("internal_error");
    expect(isTransient(read)).toBe(true);
  });

  it("keeps reason, faults and the asked wait", async () => {
    const body = {
      code: "rate_limited",
      reason: "slow_mode",
      errors: [{ pointer: "/a", code: "too_long", message: "m" }],
    };
    const read = await readProblem(
      new Response(JSON.stringify(body), { status: 429, headers: { "Retry-After": "7" } }),
    );
    expect(read).toMatchObject({
      code: "rate_limited",
      reason: "slow_mode",
      retryAfter: 7000,
      errors: [{ pointer: "/a" }],
    });
  });

  it("that is final is not repeated", () => {
    expect(isTransient({ status: 403, code: "forbidden", errors: [] })).toBe(false);
    expect(isTransient({ status: 409, code: "request_in_progress", errors: [] })).toBe(true);
  });
});
