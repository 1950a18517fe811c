// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import styles from "./DoorPage.module.css";
import hut from "./hut.svg";

interface Props {
  readonly title: string;
  readonly lead: ReactNode;
  readonly children: ReactNode;
}

/** The page of everything that happens before somebody is inside. */
export function DoorPage({ title, lead, children }: Props) {
  return (
    <main className={styles.page}>
      <div className={styles.sheet}>
        <svg className={styles.hut} viewBox="0 0 64 40" aria-hidden="true">
          <use href={`${hut}#hut`} />
        </svg>
        <h1>{title}</h1>
        <p className={styles.lead}>{lead}</p>
        {children}
      </div>
    </main>
  );
}
