// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useClient } from "../../client/Client";
import { channelName, faceOf } from "../../client/names";
import { useStore } from "../../client/useStore";
import type { MentionToken } from "../../text/dialect";
import styles from "./MentionChip.module.css";

/** Draws a mention of a message. */
export function renderMention(mention: MentionToken): ReactNode {
  return <MentionChip kind={mention.kind} id={mention.id} />;
}

/** A name in a text, as it is now. */
function MentionChip({ kind, id }: MentionToken) {
  const { principalId } = useClient();
  const name = useStore((state) => {
    if (kind === "channel") {
      const channel = state.tables.channels.get(id)?.value;
      return channel === undefined ? "unavailable" : channelName(state, channel);
    }
    return kind === "principal" ? faceOf(state, id).name : id;
  });
  const agent = useStore((state) => kind === "principal" && state.tables.agents.has(id));
  if (kind === "channel" && name !== "unavailable") {
    return (
      <Link href={`/c/${id}`} className={styles.chip}>
        #{name}
      </Link>
    );
  }
  const mine = kind === "principal" && id === principalId;
  return (
    <span className={styles.chip} data-mine={mine} data-agent={agent}>
      {kind === "channel" ? "#" : "@"}
      {name}
    </span>
  );
}
