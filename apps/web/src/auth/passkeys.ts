// SPDX-License-Identifier: Apache-2.0
//
// The authenticator of this browser. Options and answers are the JSON of WebAuthn and pass through as they are.

/** Options as the server gives them, answers as it takes them. */
export type PasskeyJson = Record<string, unknown>;

/** Why no passkey was used or made. */
export type PasskeyTrouble =
  /** The person closed the dialog of the browser, took too long, or has no passkey here. */
  | "dismissed"
  /** The authenticator has a passkey of this account already. */
  | "known"
  /** The browser does not allow passkeys on this page. */
  | "unusable";

/** A ceremony that ended without a passkey. */
export class PasskeyError extends Error {
  override readonly name = "PasskeyError";
  constructor(
    readonly trouble: PasskeyTrouble,
    cause: unknown,
  ) {
    super(trouble, { cause });
  }
}

/** Makes and uses passkeys. */
export interface Passkeys {
  /** Whether this browser can do either. */
  readonly available: boolean;
  /** Makes a passkey for the options of a server that asked for a new one. */
  create(options: PasskeyJson): Promise<PasskeyJson>;
  /** Lets the person choose a passkey and signs the challenge with it. */
  use(options: PasskeyJson): Promise<PasskeyJson>;
}

/** Passkeys of this browser. */
export function browserPasskeys(): Passkeys {
  const available =
    typeof PublicKeyCredential === "function" && typeof PublicKeyCredential.parseRequestOptionsFromJSON === "function";
  return {
    available,
    create: (options) =>
      ceremony(() =>
        navigator.credentials.create({
          publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(
            options as unknown as PublicKeyCredentialCreationOptionsJSON,
          ),
        }),
      ),
    use: (options) =>
      ceremony(() =>
        navigator.credentials.get({
          publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(
            options as unknown as PublicKeyCredentialRequestOptionsJSON,
          ),
        }),
      ),
  };
}

async function ceremony(work: () => Promise<Credential | null>): Promise<PasskeyJson> {
  let credential: Credential | null;
  try {
    credential = await work();
  } catch (cause) {
    throw new PasskeyError(troubleOf(cause), cause);
  }
  if (!(credential instanceof PublicKeyCredential)) throw new PasskeyError("dismissed", credential);
  return credential.toJSON() as PasskeyJson;
}

function troubleOf(cause: unknown): PasskeyTrouble {
  if (!(cause instanceof DOMException)) return "unusable";
  if (cause.name === "InvalidStateError") return "known";
  return cause.name === "NotAllowedError" || cause.name === "AbortError" ? "dismissed" : "unusable";
}
