// SPDX-License-Identifier: Apache-2.0
import { Fragment, type MouseEvent, type ReactNode, useEffect, useRef } from "react";
import styles from "./Frame.module.css";
import { Icon } from "./Icon";
import type { IconName } from "./icons.gen";

/** A page of the frame as its list names it. */
export interface FrameLink {
  readonly href: string;
  readonly label: string;
  readonly icon: IconName;
  /** A number that means "for you"; nothing is shown for zero. */
  readonly count?: number;
}

/** Pages that belong together. */
export interface FrameGroup {
  readonly title: string;
  readonly links: readonly FrameLink[];
}

interface Props {
  /** Name of the list of pages, for readers. */
  readonly label: string;
  readonly title: string;
  /** Way out of the frame. */
  readonly back: { readonly href: string; readonly label: string };
  readonly groups: readonly FrameGroup[];
  /** Address of the page on the screen; undefined shows the list alone on a narrow screen. */
  readonly current: string | undefined;
  /** Address of the list itself, for the way back on a narrow screen. */
  readonly home: string;
  /** Goes to an address of the frame without loading the document. */
  readonly onGo: (href: string) => void;
  /** A bar over everything, such as whose view this is. */
  readonly banner?: ReactNode;
  readonly children: ReactNode;
}

/** Pages with their list at the left; one column on a narrow screen. */
export function Frame({ label, title, back, groups, current, home, onGo, banner, children }: Props) {
  const main = useRef<HTMLElement>(null);
  const shown = useRef(current);
  useEffect(() => {
    if (shown.current === current) return;
    shown.current = current;
    // A reader hears where it is; the keyboard goes on from the top of the page.
    main.current?.focus();
    main.current?.scrollTo(0, 0);
  }, [current]);

  const go = (event: MouseEvent<HTMLAnchorElement>) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onGo(event.currentTarget.getAttribute("href") ?? home);
  };

  return (
    <div className={styles.frame} data-page={current !== undefined}>
      <a className="skip-link" href="#page">
        Skip to the page
      </a>
      {banner === undefined ? null : <div className={styles.banner}>{banner}</div>}
      <nav className={styles.side} aria-label={label}>
        <a className={styles.back} href={back.href}>
          <Icon name="arrow-left" size={16} />
          {back.label}
        </a>
        <p className={styles.title}>{title}</p>
        {groups.map((group) => (
          <Fragment key={group.title}>
            <h2>{group.title}</h2>
            <ul>
              {group.links.map((link) => (
                <li key={link.href}>
                  <a href={link.href} onClick={go} aria-current={link.href === current ? "page" : undefined}>
                    <Icon name={link.icon} />
                    <span>{link.label}</span>
                    {link.count === undefined || link.count === 0 ? null : (
                      <span className={styles.count}>{link.count}</span>
                    )}
                  </a>
                </li>
              ))}
            </ul>
          </Fragment>
        ))}
      </nav>
      <main id="page" ref={main} className={styles.main} tabIndex={-1}>
        <a className={styles.up} href={home} onClick={go}>
          <Icon name="arrow-left" size={16} />
          {title}
        </a>
        {children}
      </main>
    </div>
  );
}
