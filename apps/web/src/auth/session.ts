// SPDX-License-Identifier: Apache-2.0
//
// Who is signed in here, and with which token. One refresh at a time over all tabs of the profile, by a Web Lock.
import type { StoredSession, Vault } from "./vault";

/** Members of a login or refresh answer that make a session. */
export interface TokenGrant {
  readonly access_token: string;
  readonly expires_in_ms: number;
  readonly refresh_token: string;
  readonly session: { readonly id: string };
  readonly device: { readonly id: string };
}

/** Why there is no session any more. */
export type SignedOutReason = "none" | "signed_out" | "session_ended" | "device_revoked" | "user_disabled";

/** Outcome of one refresh request. */
export type RefreshOutcome =
  | { readonly kind: "granted"; readonly grant: TokenGrant }
  /** The server says that the session is over. */
  | { readonly kind: "ended" };

/** What the session manager needs from outside. */
export interface SessionDeps {
  readonly vault: Vault;
  /** Sends a refresh; throws when no usable answer came, in which case the person stays signed in. */
  readonly refresh: (refreshToken: string) => Promise<RefreshOutcome>;
  readonly now: () => number;
  /** Runs the work while no other tab refreshes. */
  readonly exclusively: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Thrown when a token is asked for and the session is over. */
export class SignedOutError extends Error {
  override readonly name = "SignedOutError";
}

/** Holds the session and keeps its access token fresh. */
export class SessionManager {
  #session: StoredSession | undefined;
  readonly #deps: SessionDeps;
  readonly #listeners = new Set<(reason: SignedOutReason) => void>();

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** Reads the stored session; call once at start. */
  async load(): Promise<StoredSession | undefined> {
    this.#session = await this.#deps.vault.session();
    return this.#session;
  }

  get current(): StoredSession | undefined {
    return this.#session;
  }

  /** Tells when the session ends, whoever ended it. Returns the way to stop listening. */
  onEnd(listener: (reason: SignedOutReason) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Stores the session of a completed login. */
  async adopt(grant: TokenGrant, principalId: string): Promise<void> {
    this.#session = await this.#store(grant, principalId);
  }

  /** A token that is still good for a while; refreshes first when it is not. */
  async accessToken(): Promise<string> {
    const session = this.#session;
    if (session === undefined) throw new SignedOutError("no session");
    const left = session.expiresAt - this.#deps.now();
    if (left > session.lifetime / 5) return session.accessToken;
    try {
      return await this.refresh(session.accessToken);
    } catch (cause) {
      // A server that cannot be reached must not end anything while the old token still works.
      if (!(cause instanceof SignedOutError) && left > 5_000) return session.accessToken;
      throw cause;
    }
  }

  /**
   * Replaces a token that is old or was refused. When another tab replaced it in the meantime, its token is taken over
   * and nothing is sent. A lost answer is repeated later with the same refresh token, which the server allows.
   */
  async refresh(refused: string): Promise<string> {
    return this.#deps.exclusively(async () => {
      const stored = await this.#deps.vault.session();
      if (stored === undefined) {
        await this.end("session_ended");
        throw new SignedOutError("session ended in another tab");
      }
      if (stored.accessToken !== refused) {
        this.#session = stored;
        return stored.accessToken;
      }
      const outcome = await this.#deps.refresh(stored.refreshToken);
      if (outcome.kind === "ended") {
        await this.end("session_ended");
        throw new SignedOutError("session ended");
      }
      this.#session = await this.#store(outcome.grant, stored.principalId);
      return this.#session.accessToken;
    });
  }

  /** Takes over the token of a step-up; those from before have just ended. */
  async adoptStepUp(accessToken: string, lifetime: number): Promise<void> {
    if (this.#session === undefined) return;
    this.#session = { ...this.#session, accessToken, lifetime, expiresAt: this.#deps.now() + lifetime };
    await this.#deps.vault.saveSession(this.#session);
  }

  /** Forgets the session here. */
  async end(reason: SignedOutReason): Promise<void> {
    if (this.#session === undefined) return;
    this.#session = undefined;
    await this.#deps.vault.clearSession();
    for (const listener of this.#listeners) listener(reason);
  }

  async #store(grant: TokenGrant, principalId: string): Promise<StoredSession> {
    const session: StoredSession = {
      principalId,
      sessionId: grant.session.id,
      deviceId: grant.device.id,
      accessToken: grant.access_token,
      expiresAt: this.#deps.now() + grant.expires_in_ms,
      lifetime: grant.expires_in_ms,
      refreshToken: grant.refresh_token,
    };
    await this.#deps.vault.saveSession(session);
    return session;
  }
}
