// SPDX-License-Identifier: Apache-2.0
//
// The way back from a sign-in provider, `/auth/callback?flow=…&result=…`.
import type { Login, LoginOutcome } from "../auth/login";
import { wordsFor } from "../client/useSubmit";

/** What the address of the way back holds. */
export interface WayBack {
  readonly flow: string | null;
  readonly result: string | null;
  readonly error: string | null;
}

const troubles: Readonly<Record<string, string>> = {
  provider_denied: "The provider did not let you in. Try again, or choose another way.",
  provider_unavailable: "The provider cannot be reached. Try again in a moment.",
};

/** Reads the way back and takes it out of the address at once; undefined on every other page. */
export function wayBack(): WayBack | undefined {
  if (location.pathname !== "/auth/callback") return undefined;
  const search = new URLSearchParams(location.search);
  history.replaceState(null, "", "/");
  return { flow: search.get("flow"), result: search.get("result"), error: search.get("error") };
}

/** Ends a sign-in with what the provider gave. Gives what went wrong, in words. */
export async function comeBack(
  login: Pick<Login, "completeExternal">,
  { flow, result, error }: WayBack,
  onOutcome: (outcome: LoginOutcome) => Promise<void>,
): Promise<string | undefined> {
  if (flow === null || result === null) return troubles[error ?? ""] ?? "The sign-in did not work. Try again.";
  try {
    await onOutcome(await login.completeExternal(flow, result));
    return undefined;
  } catch (cause) {
    return wordsFor(cause);
  }
}
