// SPDX-License-Identifier: Apache-2.0
//
// Several tabs, one connection: an exclusive Web Lock names the leader, a BroadcastChannel carries what it hears.
import type { Id } from "../api/types";
import type { Envelope } from "../store/reduce";
import type { Connection } from "../store/state";

/** What tabs tell each other. */
export type TabMessage =
  | { readonly kind: "events"; readonly events: readonly Envelope[]; readonly through: number | null }
  | { readonly kind: "ephemeral"; readonly event: Envelope }
  | { readonly kind: "state"; readonly connection: Connection }
  /** A new tab asks for the state of the connection. */
  | { readonly kind: "hello" }
  | { readonly kind: "outbox" }
  | { readonly kind: "focus"; readonly threadIds: readonly Id[]; readonly idle: boolean }
  | { readonly kind: "op"; readonly op: string; readonly d: unknown }
  | { readonly kind: "signed_out" };

export interface TabHandlers {
  /** This tab leads from now on; called at most once. */
  readonly onLead: () => void;
  readonly onMessage: (message: TabMessage) => void;
}

/** The other tabs of this profile. */
export interface Tabs {
  /** Asks for leadership and listens. Returns the way to leave. */
  join(handlers: TabHandlers): () => void;
  post(message: TabMessage): void;
}

/** Tabs that share the name, which holds instance and principal. Messages of another build are ignored. */
export function browserTabs(name: string, build: string): Tabs {
  const channel = new BroadcastChannel(name);
  let closed = false;
  return {
    join({ onLead, onMessage }) {
      const left = new AbortController();
      channel.onmessage = (event: MessageEvent<{ build: string; message: TabMessage }>) => {
        if (event.data.build === build) onMessage(event.data.message);
      };
      const hold = () =>
        new Promise<void>((release) => {
          if (left.signal.aborted) {
            release();
            return;
          }
          left.signal.addEventListener("abort", () => release());
          onLead();
        });
      navigator.locks.request(name, { signal: left.signal }, hold).catch((cause: unknown) => {
        // Leaving before the lock was granted is the one expected end.
        if (!left.signal.aborted) throw cause;
      });
      return () => {
        left.abort();
        closed = true;
        channel.close();
      };
    },
    post(message) {
      // Work that was under way when the tab left may still want to tell something; nobody listens to it any more.
      if (!closed) channel.postMessage({ build, message });
    },
  };
}
