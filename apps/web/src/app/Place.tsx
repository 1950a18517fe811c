// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, type RefObject, useCallback, useRef, useState } from "react";
import type { Channel, Id, Message } from "../api/types";
import { useClient } from "../client/Client";
import { channelName } from "../client/names";
import { useStore } from "../client/useStore";
import { Composer } from "../features/conversation/Composer";
import { ConversationView } from "../features/conversation/ConversationView";
import { renderMention } from "../features/conversation/MentionChip";
import { RunCard } from "../features/runs/RunCard";
import { Part } from "./PlainError";
import styles from "./Shell.module.css";

interface Props {
  readonly channel: Channel;
  readonly threadId: Id;
  readonly target: Id | undefined;
  readonly onOpenThread: ((message: Message) => void) | undefined;
  readonly label: string;
  readonly placeholder: string;
  readonly beginning?: ReactNode;
}

/** A thread with its list and its composer. */
export function Place({ channel, threadId, target, onOpenThread, label, placeholder, beginning }: Props) {
  const { store, principalId } = useClient();
  const field = useRef<HTMLTextAreaElement>(null);
  const [editing, setEditing] = useState<Id>();
  const compose = useCallback((letter?: string) => write(field, letter), []);

  const editLast = () => {
    const messages = store.getState().windows.get(threadId)?.messages ?? [];
    const last = messages.findLast(
      (message) => message.author.id === principalId && message.kind === "message" && message.deleted === null,
    );
    if (last !== undefined) setEditing(last.id);
  };

  return (
    <div className={styles.place} data-thread={threadId}>
      <Part name="The conversation">
        <ConversationView
          channel={channel}
          threadId={threadId}
          label={label}
          renderRun={(runId) => <RunCard runId={runId} renderMention={renderMention} />}
          onOpenThread={onOpenThread}
          target={target}
          beginning={beginning}
          onCompose={compose}
          editing={editing}
          onEdit={setEditing}
        />
      </Part>
      <Composer channel={channel} threadId={threadId} placeholder={placeholder} field={field} onEditLast={editLast} />
    </div>
  );
}

/** The main thread of a channel. */
export function ChannelPlace(props: {
  channel: Channel;
  target: Id | undefined;
  onOpenThread: (message: Message) => void;
}) {
  const { channel } = props;
  const name = useStore((state) => channelName(state, channel));
  if (channel.main_thread_id === null) return null;
  const shown = channel.kind === "dm" ? name : `#${name}`;
  return (
    <Place
      key={channel.main_thread_id}
      channel={channel}
      threadId={channel.main_thread_id}
      target={props.target}
      onOpenThread={channel.kind === "dm" ? undefined : props.onOpenThread}
      label={`Messages in ${shown}`}
      placeholder={`Write to ${shown}`}
    />
  );
}

function write(field: RefObject<HTMLTextAreaElement | null>, letter: string | undefined): void {
  const box = field.current;
  if (box === null) return;
  box.focus();
  // Keeps the undo history of the field, unlike setting its value.
  if (letter !== undefined) document.execCommand("insertText", false, letter);
}
