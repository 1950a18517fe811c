// SPDX-License-Identifier: Apache-2.0

/** The members of a key event that tell whether an input method is at work. */
export interface ComposingKey {
  readonly key: string;
  readonly keyCode: number;
  readonly nativeEvent: { readonly isComposing: boolean };
}

/**
 * True while an input method composes, and for the key that ends the composition: WebKit reports that one with key code
 * 229 after `isComposing` is already false. Nothing may be sent on such a key.
 */
export function isComposing(event: ComposingKey): boolean {
  return event.nativeEvent.isComposing || event.key === "Process" || event.keyCode === 229;
}
