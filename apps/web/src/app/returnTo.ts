// SPDX-License-Identifier: Apache-2.0
//
// Where somebody wanted to go before the door. Kept for this tab alone, so that it outlives a journey to a sign-in
// provider, and only as an address of this instance.

const key = "return_to";

/** Only addresses of our own pages are kept: a scheme, a host or a double slash would lead elsewhere. */
export function isOwnAddress(address: string): boolean {
  return /^\/(?!\/)[\w\-./?=&:%#]*$/.test(address);
}

/** Remembers an address until somebody is inside. */
export function rememberReturn(address: string): void {
  if (isOwnAddress(address)) sessionStorage.setItem(key, address);
}

/** The remembered address, once. */
export function takeReturn(): string | undefined {
  const address = sessionStorage.getItem(key);
  sessionStorage.removeItem(key);
  return address !== null && isOwnAddress(address) ? address : undefined;
}
