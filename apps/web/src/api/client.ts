// SPDX-License-Identifier: Apache-2.0
import createClient, { type Client } from "openapi-fetch";
import type { Answer } from "../engine/ports";
import type { paths } from "./gen/schema";
import type { Credential, Http } from "./http";

/** The typed client of the contract; one per way to prove who asks. */
export type ApiClient = Client<paths>;

/** Makes the client for one kind of credential. Failures arrive as exceptions, never as an `error` member. */
export function apiClient(http: Http, base: string, credential: Credential): ApiClient {
  return createClient<paths>({
    baseUrl: `${base}/api/v1`,
    fetch: (request) => http.send(request, credential),
    // The contract writes lists in one parameter, separated by commas.
    querySerializer: { array: { style: "form", explode: false } },
  });
}

/** The body of a success. Every failure was thrown before. */
export function body<T>(result: { data?: T }): T {
  if (result.data === undefined) throw new TypeError("answer without a body");
  return result.data;
}

/** The body together with the log position it reflects. */
export function stamped<T>(result: { data?: T; response: Response }): Answer<T> {
  const seq = Number(result.response.headers.get("Sync-Seq") ?? "");
  return { value: body(result), stamp: Number.isFinite(seq) ? seq : 0 };
}
