// SPDX-License-Identifier: Apache-2.0
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import field from "./Field.module.css";
import { Icon } from "./Icon";
import styles from "./Picker.module.css";

interface Props<T> {
  readonly label: string;
  readonly hint?: string;
  readonly placeholder?: string;
  readonly error?: string | undefined;
  /** What fits a text. An older answer that comes late is dropped. */
  readonly find: (text: string) => Promise<readonly T[]>;
  readonly keyOf: (item: T) => string;
  readonly render: (item: T) => ReactNode;
  readonly onPick: (item: T) => void;
}

/** A field that offers what fits while one writes. Arrows choose, Enter takes, Escape closes the list alone. */
export function Picker<T>({ label, hint, placeholder, error, find, keyOf, render, onPick }: Props<T>) {
  const id = useId();
  const [text, setText] = useState("");
  const [items, setItems] = useState<readonly T[]>([]);
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(0);
  const [state, setState] = useState<"idle" | "asking" | "failed">("idle");
  const finder = useRef(find);
  finder.current = find;

  useEffect(() => {
    if (!open) return;
    let late = false;
    setState("asking");
    const timer = setTimeout(() => {
      finder.current(text.trim()).then(
        (found) => {
          if (late) return;
          setItems(found);
          setChosen(0);
          setState("idle");
        },
        () => {
          if (!late) setState("failed");
        },
      );
    }, 120);
    return () => {
      late = true;
      clearTimeout(timer);
    };
  }, [text, open]);

  const pick = (item: T) => {
    setText("");
    setOpen(false);
    onPick(item);
  };
  const active = Math.min(chosen, items.length - 1);
  const onKeyDown = (event: KeyboardEvent) => {
    const count = Math.max(1, items.length);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (open) setChosen((active + (event.key === "ArrowDown" ? 1 : count - 1)) % count);
      else setOpen(true);
    } else if (event.key === "Enter" && !event.nativeEvent.isComposing) {
      // Enter belongs to the list; sending the form around it by accident would surprise.
      event.preventDefault();
      const item = open ? items[active] : undefined;
      if (item !== undefined) pick(item);
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      event.stopPropagation();
      setOpen(false);
    }
  };
  const note = error ?? hint;

  return (
    <div className={`${field.field} ${styles.picker}`}>
      <label htmlFor={id}>{label}</label>
      <div className={field.box} data-invalid={error !== undefined}>
        <Icon name="magnifying-glass" size={16} className={styles.glass} />
        <input
          id={id}
          role="combobox"
          autoComplete="off"
          spellCheck={false}
          placeholder={placeholder}
          aria-expanded={open}
          aria-controls={`${id}-list`}
          aria-activedescendant={open && items.length > 0 ? `${id}-${active}` : undefined}
          aria-invalid={error !== undefined}
          aria-describedby={note === undefined ? undefined : `${id}-note`}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setOpen(true);
          }}
          onFocus={() => setOpen(true)}
          onBlur={() => setOpen(false)}
          onKeyDown={onKeyDown}
        />
      </div>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label={label}
        className={styles.list}
        hidden={!open || items.length === 0}
      >
        {items.map((item, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field takes the keys
          <div
            key={keyOf(item)}
            id={`${id}-${at}`}
            role="option"
            tabIndex={-1}
            aria-selected={at === active}
            // Before the field loses the focus and closes the list.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => pick(item)}
          >
            {render(item)}
          </div>
        ))}
      </div>
      {open && state === "failed" ? (
        <p className={field.hint} role="status">
          The names could not be loaded.
        </p>
      ) : open && state === "idle" && items.length === 0 && text.trim() !== "" ? (
        <p className={field.hint} role="status">
          Nothing fits “{text.trim()}”.
        </p>
      ) : null}
      {note === undefined ? null : (
        <p id={`${id}-note`} className={error === undefined ? field.hint : field.error}>
          {error === undefined ? null : <Icon name="warning-circle" size={16} />}
          {note}
        </p>
      )}
    </div>
  );
}
