// SPDX-License-Identifier: Apache-2.0
import { type KeyboardEvent, type ReactNode, useRef } from "react";
import { Link } from "wouter";
import type { Id, Space } from "../../api/types";
import { type PlaceRow, type Places, placesOf, samePlaces } from "../../client/places";
import { useStore } from "../../client/useStore";
import { IconButton } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import styles from "./Sidebar.module.css";

interface Props {
  readonly current: Id | undefined;
  /** Row above the list: name of the instance and the person. */
  readonly head: ReactNode;
  /** Rows between the head and the spaces. */
  readonly tools: ReactNode;
  readonly foot: ReactNode;
  readonly onNewChannel: ((space: Space) => void) | undefined;
}

/** All places in one list. */
export function Sidebar({ current, head, tools, foot, onNewChannel }: Props) {
  const places = useStore<Places>(placesOf, samePlaces);
  const list = useRef<HTMLDivElement>(null);
  return (
    <nav className={styles.sidebar} aria-label="Places">
      <div className={styles.head}>{head}</div>
      <div className={styles.tools}>{tools}</div>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: arrows move between the links inside */}
      <div ref={list} className={styles.scroll} onKeyDown={(event) => moveByArrow(event, list.current)}>
        {places.spaces.map(({ space, rows }) => (
          <section key={space.id} aria-label={space.name}>
            <header className={styles.section}>
              <h2 dir="auto">{space.name}</h2>
              {onNewChannel === undefined ? null : (
                <IconButton
                  icon="plus"
                  size={16}
                  label={`New channel in ${space.name}`}
                  tip="none"
                  onClick={() => onNewChannel(space)}
                />
              )}
            </header>
            <ul>
              {rows.map((row) => (
                <PlaceLink key={row.channel.id} row={row} current={row.channel.id === current} />
              ))}
            </ul>
            {rows.length === 0 ? <p className={styles.none}>No channels yet</p> : null}
          </section>
        ))}
        {places.direct.length === 0 ? null : (
          <section aria-label="Direct messages">
            <header className={styles.section}>
              <h2>Direct messages</h2>
            </header>
            <ul>
              {places.direct.map((row) => (
                <PlaceLink key={row.channel.id} row={row} current={row.channel.id === current} />
              ))}
            </ul>
          </section>
        )}
      </div>
      <div className={styles.foot}>{foot}</div>
    </nav>
  );
}

function PlaceLink({ row, current }: { readonly row: PlaceRow; readonly current: boolean }) {
  const { channel, name, unread, liveRuns } = row;
  return (
    <li>
      <Link
        href={`/c/${channel.id}`}
        className={styles.place}
        data-unread={unread.unread}
        aria-current={current ? "page" : undefined}
      >
        <Icon name={channel.kind === "dm" ? "chat-circle" : "hash"} size={16} />
        <span className={styles.name} dir="auto">
          {name}
        </span>
        {liveRuns > 0 ? (
          <span className={styles.live}>
            <span className="visually-hidden">
              {liveRuns === 1 ? "an agent works here" : `${liveRuns} agents work here`}
            </span>
          </span>
        ) : null}
        {unread.count > 0 ? <span className={styles.count}>{unread.count}</span> : null}
        {unread.unread ? <span className="visually-hidden">unread</span> : null}
      </Link>
    </li>
  );
}

function moveByArrow(event: KeyboardEvent, list: HTMLElement | null): void {
  if (list === null || (event.key !== "ArrowDown" && event.key !== "ArrowUp") || event.altKey) return;
  const links = [...list.querySelectorAll<HTMLElement>("a")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  event.preventDefault();
  links[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
}
