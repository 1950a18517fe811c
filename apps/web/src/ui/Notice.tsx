// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import { Icon } from "./Icon";
import type { IconName } from "./icons.gen";
import styles from "./Notice.module.css";

type Tone = "info" | "warn" | "danger" | "ok";
const icons: Record<Tone, IconName> = {
  info: "question",
  warn: "warning",
  danger: "warning-circle",
  ok: "check-circle",
};

/** A sentence about a state, with an icon and at most one action. */
export function Notice({ tone = "info", children, action }: { tone?: Tone; children: ReactNode; action?: ReactNode }) {
  return (
    <div className={styles.notice} data-tone={tone} role={tone === "danger" ? "alert" : undefined}>
      <Icon name={icons[tone]} />
      <div>{children}</div>
      {action}
    </div>
  );
}

/** What would be here, and how it gets here. */
export function Empty({ title, children, action }: { title: string; children: ReactNode; action?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <p className={styles.line}>{title}</p>
      <p>{children}</p>
      {action}
    </div>
  );
}
