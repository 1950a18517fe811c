// SPDX-License-Identifier: Apache-2.0
//
// Puts the client together. Everything is constructed here and handed on; nothing below looks anything up.
import { apiClient, body } from "../api/client";
import { engineApi } from "../api/engineApi";
import { Http } from "../api/http";
import { ApiError } from "../api/problem";
import type { Discovery } from "../api/types";
import { type Login, loginWith } from "../auth/login";
import { browserPasskeys } from "../auth/passkeys";
import { type RefreshOutcome, SessionManager, type SignedOutReason } from "../auth/session";
import { openVault, type StoredSession } from "../auth/vault";
import type { Client } from "../client/Client";
import { browserClock, newId, openWebSocket } from "../engine/browser";
import { Engine } from "../engine/engine";
import { deleteStorage, openStorage } from "../engine/storage";
import { browserTabs } from "../engine/tabs";
import { Store } from "../store/store";
import type { Announcer } from "../ui/announcer";
import { announcementOf } from "./announcement";
import { StepUpQueue } from "./stepUpQueue";

const gatewayPath = "/api/v1/gateway";
const discoveryKey = "discovery";
const logoutPatience = 3_000;

/** What the pages before and after sign-in need. */
export interface Environment {
  readonly sessions: SessionManager;
  readonly login: Login;
  readonly stepUps: StepUpQueue;
  /** The ways in which the person can confirm that it is her. */
  readonly stepUp: StepUpProofs;
  /** What the instance says about itself; the last known answer when it cannot be reached. */
  readonly discover: () => Promise<Discovery>;
  readonly open: (session: StoredSession, discovery: Discovery) => Promise<OpenClient>;
}

/** Fresh proofs of the person for actions that ask for one. */
export interface StepUpProofs {
  /** Which of them she can give here and now. */
  readonly methods: () => Promise<StepUpMethods>;
  readonly password: (password: string) => Promise<void>;
  readonly passkey: () => Promise<void>;
}

export interface StepUpMethods {
  readonly password: boolean;
  readonly passkey: boolean;
}

/** A running client and the way to end it after the session ended elsewhere. */
export interface OpenClient {
  readonly client: Client;
  readonly close: (reason: SignedOutReason) => Promise<void>;
}

/** Builds the environment of this tab. */
export async function createEnvironment(announcer: Announcer): Promise<Environment> {
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

  async function completeStepUp(flowId: string, proof: object): Promise<void> {
    const proved = body(
      await api.POST("/auth/step-up/{flow_id}/complete", { params: { path: { flow_id: flowId } }, body: proof }),
    );
    await sessions.adoptStepUp(proved.access_token, proved.expires_in_ms);
  }

  async function openClient(session: StoredSession, discovery: Discovery): Promise<OpenClient> {
    const { principalId, sessionId } = session;
    const { instance_id: instanceId } = discovery;
    const storage = await openStorage(instanceId, principalId);
    const store = new Store();
    const tabs = browserTabs(`bothy-engine-${instanceId}-${principalId}`, __BUILD__);
    const engine = new Engine({
      api: engineApi(api),
      store,
      storage,
      clock: browserClock,
      open: openWebSocket(`${location.origin.replace(/^http/, "ws")}${gatewayPath}`),
      credentials: async (nonce) => {
        const token = await sessions.accessToken();
        return { token, dpop: await http.gatewayProof(gatewayPath, token, nonce) };
      },
      refresh: async () => {
        const { current } = sessions;
        if (current !== undefined) await sessions.refresh(current.accessToken);
      },
      tabs,
      version: __BUILD__,
      sessionId,
      newId,
      onSignedOut: (reason) => void sessions.end(reason),
      onMessage: (message) => {
        const text = announcementOf(store.getState(), message, visibleThreads());
        if (text !== undefined) announcer.say(text);
      },
    });

    async function signOut(): Promise<void> {
      tabs.post({ kind: "signed_out" });
      engine.stop();
      const patience = AbortSignal.timeout(logoutPatience);
      // The server may be out of reach; the session then ends by itself, and nothing of it stays here.
      await api.POST("/auth/logout", { signal: patience }).catch(() => undefined);
      await sessions.end("signed_out");
    }

    async function close(reason: SignedOutReason): Promise<void> {
      engine.stop();
      // What is not sent belongs to the person and waits for the next sign-in, unless the device was thrown out.
      if (reason === "session_ended") await storage.dropLog();
      storage.close();
      if (reason !== "session_ended") await deleteStorage(instanceId, principalId);
    }

    await engine.start();
    return {
      client: { principalId, sessionId, discovery, store, engine, api, storage, announcer, signOut },
      close,
    };
  }

  return {
    sessions,
    login: loginWith(keyed, vault, passkeys, __BUILD__),
    stepUps,
    stepUp: {
      methods: async () => {
        const { login } = body(await api.GET("/me"));
        return { password: login?.password === true, passkey: passkeys.available && (login?.passkeys ?? 0) > 0 };
      },
      password: async (password) => {
        const flow = body(await api.POST("/auth/step-up", { body: { method: "password" } }));
        await completeStepUp(flow.flow_id, { password });
      },
      passkey: async () => {
        const flow = body(await api.POST("/auth/step-up", { body: { method: "passkey" } }));
        await completeStepUp(flow.flow_id, { passkey: await passkeys.use(flow.passkey_options ?? {}) });
      },
    },
    discover,
    open: openClient,
  };
}

/** Threads on the screen of this tab, from the page itself: the shell marks its lists. */
function visibleThreads(): ReadonlySet<string> {
  if (document.visibilityState !== "visible" || !document.hasFocus()) return new Set();
  const lists = document.querySelectorAll<HTMLElement>("[data-thread]");
  return new Set([...lists].map((list) => list.dataset.thread ?? ""));
}
