// SPDX-License-Identifier: Apache-2.0

/** An element every document of the client has. */
export function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page lacks #${id}`);
  return found;
}
