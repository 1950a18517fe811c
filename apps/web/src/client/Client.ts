// SPDX-License-Identifier: Apache-2.0
import { createContext, useContext } from "react";
import type { Engine } from "../engine/engine";
import type { BrowserStorage } from "../engine/storage";
import type { Store } from "../store/store";
import type { Account } from "./Account";

/** Everything a feature may reach for while somebody is signed in. */
export interface Client extends Account {
  readonly store: Store;
  readonly engine: Engine;
  readonly storage: BrowserStorage;
  /** Ends the session here and on the server, and wipes what is stored. */
  readonly signOut: () => Promise<void>;
}

/** Provided by the shell; absent while nobody is signed in. */
export const ClientContext = createContext<Client | null>(null);

/** The client of the signed-in person. */
export function useClient(): Client {
  const client = useContext(ClientContext);
  if (client === null) throw new Error("used outside of a session");
  return client;
}
