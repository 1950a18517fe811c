// SPDX-License-Identifier: Apache-2.0
import { memo, type ReactNode } from "react";
import type { Message } from "../../api/types";
import { authorOf, faceOf } from "../../client/names";
import { clockTime, fullTime } from "../../client/times";
import { sameItems, sameMembers, useStore } from "../../client/useStore";
import type { OutboxEntry } from "../../engine/outbox";
import { Markdown } from "../../text/Markdown";
import { Avatar } from "../../ui/Avatar";
import { IconButton } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Menu, type MenuItem } from "../../ui/Menu";
import { EditBox } from "./EditBox";
import { renderMention } from "./MentionChip";
import styles from "./MessageRow.module.css";
import { PendingLine } from "./PendingLine";
import { triggerText } from "./words";

/** What can be done with messages; the list provides it once for all rows. */
export interface MessageActions {
  readonly edit: (message: Message) => void;
  readonly endEdit: () => void;
  readonly saveEdit: (message: Message, content: string) => void;
  readonly remove: (message: Message) => void;
  readonly copyText: (message: Message) => void;
  readonly copyLink: (message: Message) => void;
  readonly openThread: ((message: Message) => void) | undefined;
  readonly markUnread: (message: Message) => void;
}

interface Props {
  readonly message: Message;
  readonly head: boolean;
  readonly pending: OutboxEntry | undefined;
  readonly editing: boolean;
  readonly mine: boolean;
  readonly mayDelete: boolean;
  readonly namesMe: boolean;
  readonly actions: MessageActions;
}

/** One message with its author, text, outcome and actions. */
export const MessageRow = memo(function MessageRow(props: Props) {
  const { message, head, pending, editing, actions } = props;
  const shown = pending?.work.kind === "edit" ? pending.work.content : message.content;
  return (
    <div className={styles.row} data-head={head} data-mention={props.namesMe}>
      <Gutter message={message} head={head} />
      <div className={styles.main}>
        {head ? <Byline message={message} /> : null}
        {editing ? (
          <EditBox
            text={message.content}
            onSave={(text) => actions.saveEdit(message, text)}
            onCancel={actions.endEdit}
          />
        ) : (
          <div className={styles.content}>
            <Markdown text={shown} renderMention={renderMention} />
            {message.edited_at === null ? null : (
              <span className={styles.edited} title={fullTime(message.edited_at)}>
                edited
              </span>
            )}
          </div>
        )}
        <Outcomes message={message} />
        <ThreadLink message={message} onOpen={actions.openThread} />
        {pending === undefined ? null : <PendingLine entry={pending} />}
      </div>
      {editing ? null : <Actions {...props} />}
    </div>
  );
});

function Gutter({ message, head }: { message: Message; head: boolean }) {
  const face = useStore((state) => authorOf(state, message), sameMembers);
  if (head) return <Avatar name={face.name} id={face.id} shape={face.shape} />;
  return (
    <time className={styles.gutterTime} dateTime={message.created_at} aria-hidden="true">
      {clockTime(message.created_at)}
    </time>
  );
}

function Byline({ message }: { message: Message }) {
  const face = useStore((state) => authorOf(state, message), sameMembers);
  return (
    <p className={styles.byline}>
      <span className={styles.name} dir="auto">
        {face.name}
      </span>
      {face.shape === "agent" ? <span className={styles.kind}>agent</span> : null}
      {face.shape === "machine" ? <span className={styles.kind}>app</span> : null}
      <time dateTime={message.created_at} title={fullTime(message.created_at)}>
        {clockTime(message.created_at)}
      </time>
    </p>
  );
}

/** Says what became of a message that named an agent, so that nobody wonders about silence. */
function Outcomes({ message }: { message: Message }) {
  const lines = useStore(
    (state) => message.triggers.flatMap((trigger) => triggerText(trigger, faceOf(state, trigger.agent_id).name) ?? []),
    sameItems,
  );
  const denied = message.trigger_state === "denied";
  return lines.map((line) => (
    <p key={line} className={styles.outcome} data-denied={denied}>
      <Icon name={denied ? "prohibit" : "arrow-bend-up-left"} size={16} />
      {line}
    </p>
  ));
}

/** The conversation that started at a message. */
function ThreadLink({ message, onOpen }: { message: Message; onOpen: MessageActions["openThread"] }) {
  const id = message.started_thread_id;
  const count = useStore((state) =>
    id === null ? 0 : (state.tables.threads.get(id)?.value.counters.message_count ?? 0),
  );
  const unread = useStore((state) => id !== null && (state.tables.readStates.get(id)?.value.unread_count ?? 0) > 0);
  if (id === null || onOpen === undefined) return null;
  return (
    <button type="button" className={styles.thread} data-unread={unread} onClick={() => onOpen(message)}>
      <Icon name="chat-circle" size={16} />
      {count === 0 ? "Thread" : count === 1 ? "1 answer" : `${count} answers`}
      {unread ? <span className="visually-hidden">, unread</span> : null}
    </button>
  );
}

function Actions({ message, mine, mayDelete, actions }: Props): ReactNode {
  const more: MenuItem[] = [
    { label: "Copy text", icon: "copy", onSelect: () => actions.copyText(message) },
    { label: "Copy link", icon: "link", onSelect: () => actions.copyLink(message) },
    { label: "Mark unread from here", icon: "circle", onSelect: () => actions.markUnread(message) },
  ];
  if (mine) more.unshift({ label: "Edit", icon: "pencil-simple", onSelect: () => actions.edit(message) });
  if (mayDelete) {
    more.push({ label: "Delete", icon: "trash", tone: "danger", onSelect: () => actions.remove(message) });
  }
  return (
    <div className={styles.actions} role="toolbar" aria-label="Message actions">
      {actions.openThread === undefined ? null : (
        <IconButton icon="chat-circle" label="Open thread" size={16} onClick={() => actions.openThread?.(message)} />
      )}
      {mine ? <IconButton icon="pencil-simple" label="Edit" size={16} onClick={() => actions.edit(message)} /> : null}
      <Menu
        trigger={<Icon name="dots-three" size={20} />}
        label="More actions"
        triggerClass={styles.more}
        items={more}
        align="end"
      />
    </div>
  );
}
