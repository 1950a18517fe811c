// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
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
  // Asked while drawing: by the time of the effect a field with `autoFocus` already has the focus.
  const [before] = useState(focusTrail);
  useEffect(() => {
    const dialog = ref.current;
    if (dialog === null) return;
    trails.set(dialog, before);
    dialog.showModal();
    // The platform would choose the close button; whoever opens a form wants its first field.
    dialog.querySelector<HTMLElement>("[data-dialog-body] :is(input:not([hidden]), select, textarea)")?.focus();
    return () => {
      dialog.close();
      before.find((element) => element.isConnected)?.focus();
    };
  }, [before]);
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

/** Where the focus of each open dialog goes back to, first choice first. */
const trails = new WeakMap<Element, readonly HTMLElement[]>();

/** The element with the focus; in a dialog, which may be gone by then, followed by what that dialog would go back to. */
function focusTrail(): readonly HTMLElement[] {
  const active = document.activeElement;
  if (!(active instanceof HTMLElement) || active === document.body) return [];
  const around = active.closest("dialog");
  return around === null ? [active] : [active, ...(trails.get(around) ?? [])];
}

/** Row of buttons at the end of a dialog. */
export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
