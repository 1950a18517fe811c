// SPDX-License-Identifier: Apache-2.0
import { useClient } from "../../client/Client";
import { useNow } from "../../client/useNow";
import { useStore } from "../../client/useStore";
import type { OutboxEntry } from "../../engine/outbox";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import styles from "./MessageRow.module.css";
import { outboxText } from "./words";

/** Where work on a message stands while the server has not answered, and what to do when it refused. */
export function PendingLine({ entry }: { readonly entry: OutboxEntry }) {
  const { engine } = useClient();
  const stuck = entry.state === "failed" || entry.state === "held";
  const connected = useStore((state) => state.connection.state !== "waiting" && state.connection.state !== "stopped");
  const now = useNow(!stuck);
  const text = outboxText(entry, now, connected && navigator.onLine);
  if (text === undefined) return null;
  const current = entry.fault?.current;
  return (
    <div className={styles.pending} data-stuck={stuck} role={stuck ? "alert" : undefined}>
      <Icon name={stuck ? "warning-circle" : "clock"} size={16} />
      <span>{text}</span>
      {current === undefined ? null : <q dir="auto">{current}</q>}
      {stuck ? (
        <>
          <Button tone="quiet" onClick={() => void engine.retry(entry.key)}>
            {entry.state === "held" ? "Send" : "Try again"}
          </Button>
          {entry.work.kind === "delete" ? null : <CopyText text={entry.work.content} />}
          <Button tone="quiet" onClick={() => void engine.discard(entry.key)}>
            Discard
          </Button>
        </>
      ) : null}
    </div>
  );
}

function CopyText({ text }: { readonly text: string }) {
  return (
    <Button tone="quiet" onClick={() => void navigator.clipboard.writeText(text)}>
      Copy text
    </Button>
  );
}
