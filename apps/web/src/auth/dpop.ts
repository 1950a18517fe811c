// SPDX-License-Identifier: Apache-2.0
//
// Proofs of possession (RFC 9449). Every request carries one, so a stolen token is worth nothing without the device
// key, which the browser never hands out.
import { base64url, utf8 } from "./encoding";

const algorithm = { name: "ECDSA", namedCurve: "P-256" } as const;

/** Makes the key pair of this browser. The private half cannot be exported, not even by this program. */
export async function generateDeviceKey(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(algorithm, false, ["sign", "verify"]);
}

/** What a proof is bound to. */
export interface ProofClaims {
  /** HTTP method; `GET` for the gateway. */
  readonly method: string;
  /** Absolute address; query and fragment are cut off as the RFC demands. */
  readonly url: string;
  /** Access token the proof accompanies, if any. */
  readonly accessToken?: string | undefined;
  /** Newest nonce the server handed out, if any. */
  readonly nonce?: string | undefined;
  /** Milliseconds since the epoch, corrected by the known difference to the server. */
  readonly now: number;
}

/** Signs one proof. A proof is used once: each carries a fresh `jti`. */
export async function createProof(key: CryptoKeyPair, claims: ProofClaims): Promise<string> {
  const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", key.publicKey);
  const header = { typ: "dpop+jwt", alg: "ES256", jwk: { kty, crv, x, y } };
  const target = new URL(claims.url);
  const payload: Record<string, string | number> = {
    jti: base64url(crypto.getRandomValues(new Uint8Array(16))),
    htm: claims.method,
    htu: `${target.origin}${target.pathname}`,
    iat: Math.floor(claims.now / 1000),
  };
  if (claims.nonce !== undefined) payload.nonce = claims.nonce;
  if (claims.accessToken !== undefined) {
    payload.ath = base64url(await crypto.subtle.digest("SHA-256", utf8(claims.accessToken)));
  }
  const signingInput = `${base64url(utf8(JSON.stringify(header)))}.${base64url(utf8(JSON.stringify(payload)))}`;
  const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key.privateKey, utf8(signingInput));
  return `${signingInput}.${base64url(signature)}`;
}
