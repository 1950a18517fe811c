// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "react";
import { body } from "../api/client";
import type { Channel, Id, Message } from "../api/types";
import { useClient } from "../client/Client";
import { authorOf } from "../client/names";
import { useStore } from "../client/useStore";
import { useSubmit } from "../client/useSubmit";
import { newId } from "../engine/browser";
import { renderMention } from "../features/conversation/MentionChip";
import { WriteBox } from "../features/conversation/WriteBox";
import { Markdown } from "../text/Markdown";
import { IconButton } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { Place } from "./Place";
import styles from "./Shell.module.css";

interface Props {
  readonly channel: Channel;
  readonly threadId: Id | undefined;
  /** Message a new thread shall start from. */
  readonly from: Message | undefined;
  readonly target: Id | undefined;
  readonly onClose: () => void;
  readonly onStarted: (threadId: Id) => void;
}

/** A side conversation beside its channel. */
export function ThreadPanel({ channel, threadId, from, target, onClose, onStarted }: Props) {
  const title = useStore((state) =>
    threadId === undefined ? undefined : state.tables.threads.get(threadId)?.value.title,
  );
  return (
    <aside className={styles.panel} aria-label="Thread">
      <header className={styles.panelHead}>
        <h2 dir="auto">{title ?? (threadId === undefined ? "New thread" : "Thread")}</h2>
        <IconButton icon="x" label="Close thread" tip="none" onClick={onClose} />
      </header>
      {threadId === undefined ? (
        from === undefined ? null : (
          <NewThread key={from.id} channel={channel} from={from} onStarted={onStarted} />
        )
      ) : (
        <Place
          key={threadId}
          channel={channel}
          threadId={threadId}
          target={target}
          onOpenThread={undefined}
          label="Messages in this thread"
          placeholder="Answer in this thread"
          beginning={<Root channel={channel} threadId={threadId} />}
        />
      )}
    </aside>
  );
}

/** The message a thread started from, in its place before the first answer. */
function Root({ channel, threadId }: { channel: Channel; threadId: Id }) {
  const { api } = useClient();
  const [loaded, setLoaded] = useState<Message>();
  const id = useStore((state) => state.tables.threads.get(threadId)?.value.parent_message_id ?? null);
  const known = useStore((state) =>
    channel.main_thread_id === null
      ? undefined
      : state.windows.get(channel.main_thread_id)?.messages.find((message) => message.id === id),
  );
  const missing = known === undefined && id !== null;
  useEffect(() => {
    if (!missing || id === null) return;
    api.GET("/messages/{message_id}", { params: { path: { message_id: id } } }).then(
      (result) => setLoaded(body(result)),
      // A root that is gone leaves its thread standing.
      () => undefined,
    );
  }, [api, id, missing]);
  const root = known ?? loaded;
  if (root === undefined) return null;
  return (
    <div className={styles.root}>
      <Quote message={root} />
    </div>
  );
}

function Quote({ message }: { message: Message }) {
  const name = useStore((state) => authorOf(state, message).name);
  return (
    <blockquote className={styles.quote}>
      <p dir="auto">{name}</p>
      <Markdown text={message.deleted === null ? message.content : "*deleted*"} renderMention={renderMention} />
    </blockquote>
  );
}

function NewThread({
  channel,
  from,
  onStarted,
}: {
  channel: Channel;
  from: Message;
  onStarted: (threadId: Id) => void;
}) {
  const { api, engine } = useClient();
  const submit = useSubmit();
  const field = useRef<HTMLTextAreaElement>(null);
  // One identifier for all attempts: pressing twice starts one thread.
  const [key] = useState(newId);

  const start = (content: string) =>
    submit.run(async () => {
      const made = body(
        await api.POST("/channels/{channel_id}/threads", {
          params: { path: { channel_id: channel.id } },
          body: { parent_message_id: from.id, message: { client_msg_id: key, content } },
        }),
      );
      engine.absorb((draft) => draft.put("threads", made.thread.id, made.thread, 0));
      onStarted(made.thread.id);
    });

  return (
    <div className={styles.place}>
      <div className={styles.newThread}>
        <Quote message={from} />
        {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
      </div>
      <WriteBox
        channel={channel}
        threadId={undefined}
        draftId={from.id}
        label="First message of the thread"
        placeholder="Start the thread"
        sendLabel="Start thread"
        busy={submit.busy}
        field={field}
        onSend={start}
      />
    </div>
  );
}
