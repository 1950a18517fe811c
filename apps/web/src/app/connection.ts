// SPDX-License-Identifier: Apache-2.0
//
// The way to the server that both roots share: who is signed in, the proofs, the typed clients. It knows no engine, so
// the console does not load one.
import { type ApiClient, apiClient, body } from "../api/client";
import { Http } from "../api/http";
import { ApiError } from "../api/problem";
import type { Discovery } from "../api/types";
import { browserPasskeys, type Passkeys } from "../auth/passkeys";
import { type RefreshOutcome, SessionManager, SignedOutError } from "../auth/session";
import { type StepUpProofs, stepUpProofs } from "../auth/stepUp";
import { openVault, type Vault } from "../auth/vault";
import { StepUpQueue } from "./stepUpQueue";

const discoveryKey = "discovery";

/** What a tab talks with. */
export interface Connection {
  readonly vault: Vault;
  readonly sessions: SessionManager;
  readonly passkeys: Passkeys;
  readonly http: Http;
  /** Client that proves the device key alone. */
  readonly keyed: ApiClient;
  /** Client with the session of the person. */
  readonly api: ApiClient;
  /** Client with a token of its own, kept nowhere but in it. A refusal ends it: nothing renews such a token. */
  readonly withToken: (token: string) => ApiClient;
  readonly stepUps: StepUpQueue;
  /** The ways in which the person can confirm that it is them. */
  readonly proofs: StepUpProofs;
  /** What the instance says about itself; the last known answer when it cannot be reached. */
  readonly discover: () => Promise<Discovery>;
}

/** Opens what this tab talks with. Nothing is sent yet. */
export async function createConnection(): Promise<Connection> {
  const vault = await openVault();
  const stepUps = new StepUpQueue();
  const passkeys = browserPasskeys();
  const sessions: SessionManager = new SessionManager({
    vault,
    now: () => Date.now(),
    refresh,
    exclusively: async (work) => navigator.locks.request("bothy-refresh", () => work()),
  });
  const http = new Http(
    {
      vault,
      sessions: () => sessions,
      fetch: (request) => fetch(request),
      now: () => Date.now(),
      stepUp: () => stepUps.ask(),
    },
    location.origin,
  );
  const open = apiClient(http, location.origin, "none");
  const keyed = apiClient(http, location.origin, "key");
  const api = apiClient(http, location.origin, "session");

  async function refresh(refreshToken: string): Promise<RefreshOutcome> {
    try {
      return {
        kind: "granted",
        grant: body(await keyed.POST("/auth/token", { body: { refresh_token: refreshToken } })),
      };
    } catch (cause) {
      if (cause instanceof ApiError && cause.problem.status === 401) return { kind: "ended" };
      throw cause;
    }
  }

  async function discover(): Promise<Discovery> {
    try {
      const discovery = body(await open.GET("/discovery"));
      localStorage.setItem(discoveryKey, JSON.stringify(discovery));
      http.setPublicOrigin(new URL(discovery.api_base).origin);
      return discovery;
    } catch (cause) {
      const known = localStorage.getItem(discoveryKey);
      if (known === null) throw cause;
      const discovery = JSON.parse(known) as Discovery;
      http.setPublicOrigin(new URL(discovery.api_base).origin);
      return discovery;
    }
  }

  function withToken(token: string): ApiClient {
    const refuse = async (): Promise<never> => {
      throw new SignedOutError("a token without renewal ended");
    };
    const alone = new Http(
      {
        vault,
        sessions: () => ({ accessToken: async () => token, refresh: refuse }),
        fetch: (request) => fetch(request),
        now: () => Date.now(),
        stepUp: async () => false,
      },
      http.publicOrigin,
    );
    return apiClient(alone, location.origin, "session");
  }

  return {
    withToken,
    vault,
    sessions,
    passkeys,
    http,
    keyed,
    api,
    stepUps,
    proofs: stepUpProofs(api, sessions, passkeys),
    discover,
  };
}
