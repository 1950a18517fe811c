// SPDX-License-Identifier: Apache-2.0
import { useClient } from "../../client/Client";
import { faceOf } from "../../client/names";
import { clockTime } from "../../client/times";
import { sameMembers, useStore } from "../../client/useStore";
import type { OutboxEntry } from "../../engine/outbox";
import { Markdown } from "../../text/Markdown";
import { Avatar } from "../../ui/Avatar";
import { renderMention } from "./MentionChip";
import styles from "./MessageRow.module.css";
import { PendingLine } from "./PendingLine";

/** An own message in full ink before the server has it. */
export function EchoRow({ entry, head }: { readonly entry: OutboxEntry; readonly head: boolean }) {
  const { principalId } = useClient();
  const face = useStore((state) => faceOf(state, principalId), sameMembers);
  if (entry.work.kind !== "create") return null;
  return (
    <div className={styles.row} data-head={head}>
      {head ? <Avatar name={face.name} id={face.id} /> : <span />}
      <div className={styles.main}>
        {head ? (
          <p className={styles.byline}>
            <span className={styles.name}>{face.name}</span>
            <time>{clockTime(entry.createdAt)}</time>
          </p>
        ) : null}
        <Markdown text={entry.work.content} renderMention={renderMention} />
        <PendingLine entry={entry} />
      </div>
    </div>
  );
}
