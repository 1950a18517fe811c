// SPDX-License-Identifier: Apache-2.0
import { type KeyboardEvent, type ReactNode, useId, useRef } from "react";
import { Icon } from "./Icon";
import type { IconName } from "./icons.gen";
import styles from "./Menu.module.css";

/** One entry of a menu. */
export interface MenuItem {
  readonly label: string;
  readonly icon?: IconName;
  readonly tone?: "danger";
  readonly onSelect: () => void;
}

interface Props {
  /** Content of the button that opens the menu. */
  readonly trigger: ReactNode;
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly triggerClass?: string | undefined;
  readonly align?: "start" | "end";
  readonly side?: "below" | "above";
}

/**
 * A button with a menu. The popover of the platform floats it, closes it on Escape and outside presses; arrows, Home,
 * End and first letters move inside.
 */
export function Menu({ trigger, label, items, triggerClass, align = "start", side = "below" }: Props) {
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);

  const entries = () => [...(menu.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  const close = () => menu.current?.hidePopover();

  const place = () => {
    const anchor = button.current?.getBoundingClientRect();
    const box = menu.current;
    if (anchor === undefined || box === null) return;
    const { offsetWidth: width, offsetHeight: height } = box;
    const left = align === "start" ? anchor.left : anchor.right - width;
    const wantedTop = side === "below" ? anchor.bottom + 4 : anchor.top - height - 4;
    const top = wantedTop + height > innerHeight - 8 ? anchor.top - height - 4 : wantedTop;
    box.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
    box.style.top = `${Math.max(8, top)}px`;
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const all = entries();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const go = (index: number) => {
      event.preventDefault();
      all[(index + all.length) % all.length]?.focus();
    };
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(all.length - 1);
    else if (event.key === "Tab") close();
    else if (event.key.length === 1 && /\S/.test(event.key)) {
      const letter = event.key.toLocaleLowerCase();
      const next = [...all.slice(at + 1), ...all.slice(0, at + 1)].find((entry) =>
        (entry.textContent ?? "").trim().toLocaleLowerCase().startsWith(letter),
      );
      next?.focus();
    }
  };

  return (
    <>
      <button
        ref={button}
        type="button"
        className={triggerClass}
        popoverTarget={id}
        aria-haspopup="menu"
        aria-label={label}
      >
        {trigger}
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        role="menu"
        tabIndex={-1}
        aria-label={label}
        className={styles.menu}
        onKeyDown={onKeyDown}
        onToggle={(event) => {
          if (event.newState !== "open") return;
          place();
          entries()[0]?.focus();
        }}
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            tabIndex={-1}
            className={styles.item}
            data-tone={item.tone}
            onClick={() => {
              close();
              button.current?.focus();
              item.onSelect();
            }}
          >
            {item.icon === undefined ? null : <Icon name={item.icon} size={16} />}
            <span>{item.label}</span>
          </button>
        ))}
      </div>
    </>
  );
}
