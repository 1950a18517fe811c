// SPDX-License-Identifier: Apache-2.0
import { createContext, useContext } from "react";
import type { ApiClient } from "../api/client";
import type { Discovery, Id } from "../api/types";
import type { Announcer } from "../ui/announcer";

/** What a page may reach for that talks with the server but follows no log: the settings and the console. */
export interface Account {
  readonly principalId: Id;
  readonly sessionId: Id;
  readonly discovery: Discovery;
  readonly api: ApiClient;
  readonly announcer: Announcer;
}

/** Provided by both roots while somebody is signed in. */
export const AccountContext = createContext<Account | null>(null);

/** The account of the signed-in person. */
export function useAccount(): Account {
  const account = useContext(AccountContext);
  if (account === null) throw new Error("used outside of a session");
  return account;
}
