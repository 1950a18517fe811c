// SPDX-License-Identifier: Apache-2.0
//
// Puts the client together. Everything is constructed here and handed on; nothing below looks anything up.
import { engineApi } from "../api/engineApi";
import type { Discovery } from "../api/types";
import { type Login, loginWith } from "../auth/login";
import type { SignedOutReason } from "../auth/session";
import type { StoredSession } from "../auth/vault";
import type { Client } from "../client/Client";
import { browserClock, newId, openWebSocket } from "../engine/browser";
import { Engine } from "../engine/engine";
import { deleteStorage, openStorage } from "../engine/storage";
import { browserTabs } from "../engine/tabs";
import { Store } from "../store/store";
import type { Announcer } from "../ui/announcer";
import { announcementOf } from "./announcement";
import { type Connection, createConnection } from "./connection";

const gatewayPath = "/api/v1/gateway";
const logoutPatience = 3_000;

/** What the pages before and after sign-in need. */
export interface Environment extends Pick<Connection, "sessions" | "stepUps" | "proofs" | "discover"> {
  readonly login: Login;
  readonly open: (session: StoredSession, discovery: Discovery) => Promise<OpenClient>;
}

/** A running client and the way to end it after the session ended elsewhere. */
export interface OpenClient {
  readonly client: Client;
  readonly close: (reason: SignedOutReason) => Promise<void>;
}

/** Builds the environment of this tab. */
export async function createEnvironment(announcer: Announcer): Promise<Environment> {
  const { vault, sessions, passkeys, http, keyed, api, stepUps, proofs, discover } = await createConnection();

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

  const login = loginWith(keyed, vault, passkeys, __BUILD__);
  return { sessions, login, stepUps, proofs, discover, open: openClient };
}

/** Threads on the screen of this tab, from the page itself: the shell marks its lists. */
function visibleThreads(): ReadonlySet<string> {
  if (document.visibilityState !== "visible" || !document.hasFocus()) return new Set();
  const lists = document.querySelectorAll<HTMLElement>("[data-thread]");
  return new Set([...lists].map((list) => list.dataset.thread ?? ""));
}
