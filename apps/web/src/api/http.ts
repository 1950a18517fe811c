// SPDX-License-Identifier: Apache-2.0
//
// The one way to the server: adds the proof and the token, repeats a request that was refused for its nonce or an
// expired token, and turns everything else that is not a success into an error with a stable code.
import { createProof } from "../auth/dpop";
import type { SessionManager } from "../auth/session";
import type { Vault } from "../auth/vault";
import { ApiError, NetworkError, readProblem } from "./problem";

/** How a request proves who sends it. */
export type Credential = "none" | "key" | "session";

/** What the transport needs from outside. */
export interface HttpDeps {
  readonly vault: Pick<Vault, "deviceKey">;
  readonly sessions: () => Pick<SessionManager, "accessToken" | "refresh">;
  readonly fetch: (request: Request) => Promise<Response>;
  readonly now: () => number;
  /** Asks the person for a fresh proof; false when it was not given. */
  readonly stepUp: () => Promise<boolean>;
}

/** Sends requests with proofs. Holds the newest nonce and the difference between the two clocks. */
export class Http {
  readonly #deps: HttpDeps;
  #nonce: string | undefined;
  #skew = 0;
  #origin: string;

  /** @param origin public origin of the server, which proofs name. */
  constructor(deps: HttpDeps, origin: string) {
    this.#deps = deps;
    this.#origin = origin;
  }

  /** Sets the public origin once discovery has told it; a development proxy has another address than the server. */
  setPublicOrigin(origin: string): void {
    this.#origin = origin;
  }

  /** Origin that proofs name. */
  get publicOrigin(): string {
    return this.#origin;
  }

  /** Milliseconds to add to the local clock to get the server's. */
  get skew(): number {
    return this.#skew;
  }

  /** A proof for the gateway, whose nonce comes in frames instead of headers. */
  async gatewayProof(path: string, accessToken: string, nonce: string): Promise<string> {
    return this.#proof("GET", path, accessToken, nonce);
  }

  /** Sends the request. Throws ApiError for a final answer, NetworkError when none came. */
  async send(request: Request, credential: Credential): Promise<Response> {
    const body = request.method === "GET" || request.method === "HEAD" ? undefined : await request.arrayBuffer();
    let nonceTried = false;
    let refreshTried = false;
    let stepUpTried = false;
    for (;;) {
      const token = credential === "session" ? await this.#deps.sessions().accessToken() : undefined;
      const response = await this.#attempt(request, body, credential, token);
      if (response.ok || response.status === 304) return response;
      const problem = await readProblem(response);
      if (problem.code === "use_dpop_nonce" && !nonceTried) {
        nonceTried = true;
        continue;
      }
      if (problem.code === "step_up_required" && !stepUpTried) {
        stepUpTried = true;
        if (await this.#deps.stepUp()) continue;
      } else if (token !== undefined && problem.status === 401 && problem.reason !== "login_failed" && !refreshTried) {
        refreshTried = true;
        await this.#deps.sessions().refresh(token);
        continue;
      }
      throw new ApiError(problem);
    }
  }

  async #attempt(
    request: Request,
    body: ArrayBuffer | undefined,
    credential: Credential,
    token: string | undefined,
  ): Promise<Response> {
    const headers = new Headers(request.headers);
    if (credential !== "none") {
      headers.set("DPoP", await this.#proof(request.method, new URL(request.url).pathname, token, this.#nonce));
    }
    if (token !== undefined) headers.set("Authorization", `DPoP ${token}`);
    const init: RequestInit = { method: request.method, headers, signal: request.signal, redirect: "error" };
    if (body !== undefined && body.byteLength > 0) init.body = body;
    let response: Response;
    try {
      response = await this.#deps.fetch(new Request(request.url, init));
    } catch (cause) {
      if (request.signal.aborted) throw cause;
      throw new NetworkError("no answer", { cause });
    }
    this.#learn(response);
    return response;
  }

  #learn(response: Response): void {
    const nonce = response.headers.get("DPoP-Nonce");
    if (nonce !== null) this.#nonce = nonce;
    const date = Date.parse(response.headers.get("Date") ?? "");
    if (!Number.isFinite(date)) return;
    const difference = date - this.#deps.now();
    this.#skew = Math.abs(difference) > 2_000 ? difference : 0;
  }

  async #proof(method: string, path: string, accessToken: string | undefined, nonce: string | undefined) {
    const key = await this.#deps.vault.deviceKey();
    return createProof(key, {
      method,
      url: `${this.#origin}${path}`,
      accessToken,
      nonce,
      now: this.#deps.now() + this.#skew,
    });
  }
}
