// SPDX-License-Identifier: Apache-2.0
import { type KeyboardEvent, useId, useState } from "react";
import type { Id } from "../../api/types";
import { flatRows, type Places, placesOf, samePlaces } from "../../client/places";
import { useStore } from "../../client/useStore";
import { Dialog } from "../../ui/Dialog";
import { Icon } from "../../ui/Icon";
import { isFit, sortByFit } from "./fit";
import styles from "./Switcher.module.css";

interface Props {
  readonly onClose: () => void;
  readonly onGo: (channelId: Id) => void;
}

/** Goes to a place by a few letters of its name. */
export function Switcher({ onClose, onGo }: Props) {
  const places = useStore<Places>(placesOf, samePlaces);
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const rows = sortByFit(
    flatRows(places).filter((row) => isFit(row.name, query)),
    (row) => row.name,
    query,
  ).slice(0, 12);
  const active = Math.min(chosen, rows.length - 1);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setChosen((active + 1) % Math.max(1, rows.length));
    else if (event.key === "ArrowUp") setChosen((active + rows.length - 1) % Math.max(1, rows.length));
    else if (event.key === "Enter" && rows[active] !== undefined) onGo(rows[active].channel.id);
    else return;
    event.preventDefault();
  };

  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        className={styles.field}
        role="combobox"
        aria-label="Name of a place"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={rows.length > 0 ? `${id}-${active}` : undefined}
        placeholder="Name of a place"
        autoFocus
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id={id} role="listbox" aria-label="Places" className={styles.list}>
        {rows.map((row, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field takes the keys
          <div
            key={row.channel.id}
            id={`${id}-${at}`}
            role="option"
            tabIndex={-1}
            aria-selected={at === active}
            onClick={() => onGo(row.channel.id)}
          >
            <Icon name={row.channel.kind === "dm" ? "chat-circle" : "hash"} size={16} />
            <span dir="auto">{row.name}</span>
            {row.unread.unread ? <small>unread</small> : null}
          </div>
        ))}
      </div>
      {rows.length === 0 ? <p role="status">No place is called “{query}”.</p> : null}
    </Dialog>
  );
}
