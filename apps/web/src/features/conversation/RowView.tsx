// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import type { Channel, Id, Message } from "../../api/types";
import { authorOf, channelName } from "../../client/names";
import { mayInChannel } from "../../client/places";
import { clockTime, dayName, fullTime } from "../../client/times";
import { useStore } from "../../client/useStore";
import { Button } from "../../ui/Button";
import styles from "./ConversationView.module.css";
import { EchoRow } from "./EchoRow";
import { type MessageActions, MessageRow } from "./MessageRow";
import type { Row } from "./rows";
import { systemText } from "./words";

interface RowViewProps {
  readonly row: Row;
  readonly channel: Channel;
  readonly me: Id;
  readonly editing: Id | undefined;
  readonly hidden: ReadonlySet<Id>;
  readonly actions: MessageActions;
  readonly renderRun: (runId: Id) => ReactNode;
  readonly beginning: ReactNode;
  readonly undo: (message: Message) => void;
  readonly target: Id | undefined;
}

/** One row of a conversation. */
export function RowView({
  row,
  channel,
  me,
  editing,
  hidden,
  actions,
  renderRun,
  beginning,
  undo,
  target,
}: RowViewProps) {
  const moderates = useStore(
    (state) =>
      state.self?.owner === true || state.access.get(channel.id)?.capabilities.includes("messages.moderate") === true,
  );
  switch (row.kind) {
    case "beginning":
      return beginning ?? <Beginning channel={channel} empty={row.empty} />;
    case "older":
      return <p className={styles.older}>Loading what was said before</p>;
    case "day":
      return (
        <article className={styles.day} data-key={row.key} aria-label={dayName(row.time, Date.now())}>
          <h3>{dayName(row.time, Date.now())}</h3>
        </article>
      );
    case "new":
      return (
        <p className={styles.new} data-key={row.key}>
          <span>New</span>
        </p>
      );
    case "echo":
      return (
        <article data-key={row.key}>
          <EchoRow entry={row.entry} head={row.head} />
        </article>
      );
    case "gone":
      return (
        <p className={styles.line} data-key={row.key}>
          {row.count > 1 ? `${row.count} messages were deleted` : goneText(row.message)}
        </p>
      );
    case "system":
      return (
        <p className={styles.line} data-key={row.key}>
          {systemText(row.message.system?.code ?? "")} <time>{clockTime(row.message.created_at)}</time>
        </p>
      );
    case "run":
      return (
        <Article row={row}>
          <div className={styles.run}>{renderRun(row.runId)}</div>
        </Article>
      );
    case "message": {
      const { message } = row;
      if (hidden.has(message.id)) {
        return (
          <p className={styles.line} data-key={row.key} role="status">
            Message deleted.{" "}
            <Button tone="quiet" onClick={() => undo(message)}>
              Undo
            </Button>
          </p>
        );
      }
      if (row.pending?.work.kind === "delete" && row.pending.state !== "failed") {
        return (
          <p className={styles.line} data-key={row.key}>
            Message deleted.
          </p>
        );
      }
      const mine = message.author.id === me;
      return (
        <Article row={row} marked={message.id === target}>
          <MessageRow
            message={message}
            head={row.head}
            pending={row.pending}
            editing={editing === message.id}
            mine={mine}
            mayDelete={mine || moderates}
            namesMe={!mine && message.mentions.some((mention) => mention.id === me && !mention.silent)}
            actions={actions}
          />
        </Article>
      );
    }
  }
}

/** A row that can hold the focus; arrows move between them. */
function Article({
  row,
  marked = false,
  children,
}: {
  row: Row & { message: Message };
  marked?: boolean;
  children: ReactNode;
}) {
  const name = useStore((state) => authorOf(state, row.message).name);
  return (
    <article
      data-key={row.key}
      data-row=""
      data-marked={marked}
      tabIndex={-1}
      aria-label={`${name}, ${fullTime(row.message.created_at)}`}
      aria-posinset={row.message.thread_seq}
      aria-setsize={-1}
    >
      {children}
    </article>
  );
}

function goneText(message: Message): string {
  return message.deleted?.kind === "moderator" ? "A message was deleted by a moderator" : "A message was deleted";
}

function Beginning({ channel, empty }: { channel: Channel; empty: boolean }) {
  const name = useStore((state) => channelName(state, channel));
  const may = useStore((state) => mayInChannel(state, channel.id, "write"));
  return (
    <div className={styles.beginning}>
      <p>{channel.kind === "dm" ? name : `#${name}`}</p>
      {channel.topic === "" ? null : <p dir="auto">{channel.topic}</p>}
      <p>
        {channel.kind === "dm"
          ? "Only the people in here read this."
          : empty && may
            ? "This is the beginning. Write the first line."
            : `This is the beginning of #${name}.`}
      </p>
    </div>
  );
}
