// SPDX-License-Identifier: Apache-2.0
import { createHash, webcrypto } from "node:crypto";

const { subtle } = webcrypto;

/** Checks a DPoP proof the way the contract asks; returns the thumbprint input of its key, or what is wrong. */
export async function checkProof(
  proof: string | undefined,
  expect: { method: string; url: string; token: string | undefined; nonce: string },
): Promise<{ key: string } | { fault: "use_dpop_nonce" | "invalid_dpop_proof" }> {
  const wrong = { fault: "invalid_dpop_proof" } as const;
  const [head, payload, signature] = (proof ?? "").split(".");
  if (head === undefined || payload === undefined || signature === undefined) return wrong;
  const header = JSON.parse(Buffer.from(head, "base64url").toString()) as { typ: string; alg: string; jwk: JsonWebKey };
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as Record<string, unknown>;
  const key = await subtle.importKey("jwk", header.jwk, { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"]);
  const valid = await subtle.verify(
    { name: "ECDSA", hash: "SHA-256" },
    key,
    Buffer.from(signature, "base64url"),
    Buffer.from(`${head}.${payload}`),
  );
  if (!valid || header.typ !== "dpop+jwt" || header.alg !== "ES256") return wrong;
  if (claims.htm !== expect.method || claims.htu !== expect.url) return wrong;
  if (expect.token !== undefined) {
    const hash = createHash("sha256").update(expect.token).digest("base64url");
    if (claims.ath !== hash) return wrong;
  }
  if (claims.nonce !== expect.nonce) return { fault: "use_dpop_nonce" };
  return { key: `${header.jwk.x}.${header.jwk.y}` };
}
