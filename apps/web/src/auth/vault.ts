// SPDX-License-Identifier: Apache-2.0
//
// The database `bothy-keys`: device key and session of this browser profile. It is the only place where tokens rest.
import { type DBSchema, type IDBPDatabase, openDB } from "idb";
import { generateDeviceKey } from "./dpop";

/** The signed-in session as it is stored and shared by the tabs of this profile. */
export interface StoredSession {
  readonly principalId: string;
  readonly sessionId: string;
  readonly deviceId: string;
  readonly accessToken: string;
  /** Milliseconds since the epoch at which the access token ends. */
  readonly expiresAt: number;
  /** Full lifetime in milliseconds; refresh happens at four fifths of it. */
  readonly lifetime: number;
  readonly refreshToken: string;
}

interface KeysSchema extends DBSchema {
  device: { key: "current"; value: CryptoKeyPair };
  session: { key: "current"; value: StoredSession };
}

/** Access to the stored key and session. */
export interface Vault {
  /** The device key; made on first use. */
  deviceKey(): Promise<CryptoKeyPair>;
  /** Replaces the device key, for a server that knows the old one as somebody else's. */
  replaceDeviceKey(): Promise<CryptoKeyPair>;
  session(): Promise<StoredSession | undefined>;
  saveSession(session: StoredSession): Promise<void>;
  clearSession(): Promise<void>;
}

/** Opens the vault of this origin. */
export async function openVault(): Promise<Vault> {
  const db: IDBPDatabase<KeysSchema> = await openDB<KeysSchema>("bothy-keys", 1, {
    upgrade(database) {
      database.createObjectStore("device");
      database.createObjectStore("session");
    },
  });
  const replaceDeviceKey = async (): Promise<CryptoKeyPair> => {
    const made = await generateDeviceKey();
    await db.put("device", made, "current");
    return made;
  };
  return {
    async deviceKey() {
      return (await db.get("device", "current")) ?? (await replaceDeviceKey());
    },
    replaceDeviceKey,
    session: () => db.get("session", "current"),
    async saveSession(session) {
      // Strict durability: a rotated refresh token that is lost would sign the person out.
      const tx = db.transaction("session", "readwrite", { durability: "strict" });
      await Promise.all([tx.store.put(session, "current"), tx.done]);
    },
    clearSession: () => db.delete("session", "current"),
  };
}
