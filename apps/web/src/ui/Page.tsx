// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, useId } from "react";
import { Button } from "./Button";
import { Notice } from "./Notice";
import styles from "./Page.module.css";

interface PageProps {
  readonly title: string;
  /** Answers the question of the page in a sentence before any list does. */
  readonly lead?: ReactNode;
  /** The one primary action. */
  readonly action?: ReactNode;
  readonly children: ReactNode;
}

/** A page of a frame. */
export function Page({ title, lead, action, children }: PageProps) {
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <div>
          <h1 dir="auto">{title}</h1>
          {lead === undefined ? null : <p>{lead}</p>}
        </div>
        {action}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  readonly title: string;
  readonly hint?: ReactNode;
  readonly action?: ReactNode;
  readonly children: ReactNode;
}

/** A part of a page under a heading of its own. */
export function Section({ title, hint, action, children }: SectionProps) {
  const id = useId();
  return (
    <section className={styles.section} aria-labelledby={id}>
      <header>
        <div>
          <h2 id={id}>{title}</h2>
          {hint === undefined ? null : <p>{hint}</p>}
        </div>
        {action}
      </header>
      {children}
    </section>
  );
}

/** A list of things, ruled like a page of a book. */
export function Rows({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <ul className={styles.rows} aria-label={label}>
      {children}
    </ul>
  );
}

interface RowProps {
  /** Drawing before the words. */
  readonly mark?: ReactNode;
  readonly title: ReactNode;
  /** A second line. */
  readonly note?: ReactNode;
  /** Buttons and tags at the end. */
  readonly end?: ReactNode;
  /** Further lines under the row. */
  readonly children?: ReactNode;
}

/** One thing of a list. */
export function Row({ mark, title, note, end, children }: RowProps) {
  return (
    <li className={styles.row}>
      <div className={styles.line}>
        {mark === undefined ? null : <span className={styles.mark}>{mark}</span>}
        <div className={styles.words}>
          <span className={styles.name}>{title}</span>
          {note === undefined ? null : <span className={styles.note}>{note}</span>}
        </div>
        {end === undefined ? null : <div className={styles.end}>{end}</div>}
      </div>
      {children}
    </li>
  );
}

/** A word about the state of a thing. */
export function Tag({ tone = "plain", children }: { tone?: "plain" | "ok" | "warn" | "danger"; children: ReactNode }) {
  return (
    <span className={styles.tag} data-tone={tone}>
      {children}
    </span>
  );
}

/** Names with their values. */
export function Facts({ facts }: { readonly facts: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className={styles.facts}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Rows that are on their way. They stand still and say so to readers. */
export function Waiting({ rows = 3 }: { readonly rows?: number }) {
  return (
    <div className={styles.waiting} role="status">
      <span className="visually-hidden">Loading</span>
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are alike and never move
        <span key={at} aria-hidden="true" />
      ))}
    </div>
  );
}

/** What could not be loaded, and the way to try again. */
export function Failed({ error, onRetry }: { readonly error: string; readonly onRetry: () => void }) {
  return (
    <Notice tone="warn" action={<Button onClick={onRetry}>Try again</Button>}>
      {error}
    </Notice>
  );
}

/** A line where a list would be. */
export function Nothing({ children }: { readonly children: ReactNode }) {
  return <p className={styles.nothing}>{children}</p>;
}

/** Buttons side by side under a form or a list. */
export function Actions({ children }: { readonly children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
