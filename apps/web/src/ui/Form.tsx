// SPDX-License-Identifier: Apache-2.0
import { type FormEvent, type ReactNode, useRef } from "react";
import { Notice } from "./Notice";

interface Props {
  /** Sends the form; false when something in it has to be mended first. */
  readonly onSubmit: () => Promise<boolean>;
  /** What went wrong as a whole, in words. */
  readonly error?: string | undefined;
  readonly label?: string;
  readonly children: ReactNode;
  /** Buttons under the form, below what went wrong. */
  readonly actions: ReactNode;
}

/**
 * A form that says what is wrong at its fields, in the words of the product: the bubbles of the browser are off. After
 * a refusal the keyboard stands in the first field to mend.
 */
export function Form({ onSubmit, error, label, children, actions }: Props) {
  const form = useRef<HTMLFormElement>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation();
    if (await onSubmit()) return;
    // The faults are on the page after the next frame.
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
  };
  return (
    <form ref={form} noValidate aria-label={label} onSubmit={submit}>
      {children}
      {error === undefined ? null : <Notice tone="danger">{error}</Notice>}
      {actions}
    </form>
  );
}
