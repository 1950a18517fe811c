// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, useEffect, useId, useRef } from "react";
import { IconButton } from "./Button";
import styles from "./Dialog.module.css";

interface Props {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  /** Buttons at the end; the form of the content may be elsewhere. */
  readonly size?: "narrow" | "wide";
}

/**
 * A modal dialog. The platform traps the focus, hides the page from readers, closes on Escape and gives the focus back
 * to where it was.
 */
export function Dialog({ title, onClose, children, size = "narrow" }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = ref.current;
    if (dialog === null) return;
    const before = document.activeElement;
    dialog.showModal();
    // The platform would choose the close button; whoever opens a form wants its first field.
    dialog.querySelector<HTMLElement>("[data-dialog-body] :is(input:not([hidden]), select, textarea)")?.focus();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={styles.dialog}
      data-size={size}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header className={styles.header}>
        <h2 id={titleId}>{title}</h2>
        <IconButton icon="x" label="Close" tip="none" onClick={onClose} />
      </header>
      <div className={styles.body} data-dialog-body="">
        {children}
      </div>
    </dialog>
  );
}

/** Row of buttons at the end of a dialog. */
export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
