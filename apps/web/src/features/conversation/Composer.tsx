// SPDX-License-Identifier: Apache-2.0
import { type RefObject, useRef } from "react";
import type { Channel, Id } from "../../api/types";
import { useClient } from "../../client/Client";
import { mayInChannel } from "../../client/places";
import { useStore } from "../../client/useStore";
import styles from "./Composer.module.css";
import { WriteBox } from "./WriteBox";

interface Props {
  readonly channel: Channel;
  readonly threadId: Id;
  readonly placeholder: string;
  readonly field: RefObject<HTMLTextAreaElement | null>;
  /** Arrow up in an empty field: the last own message is changed. */
  readonly onEditLast: () => void;
}

/** Where messages of a thread are written. Mount it with the thread as key. */
export function Composer(props: Props) {
  const { channel } = props;
  const may = useStore((state) => mayInChannel(state, channel.id, "write"));
  if (channel.archived !== null) return <p className={styles.closed}>This channel is archived.</p>;
  if (channel.read_only !== null) return <p className={styles.closed}>This channel is read-only.</p>;
  if (!may) return <p className={styles.closed}>You read here, but may not write.</p>;
  return <Field {...props} />;
}

const typingPace = 4_000;

function Field({ channel, threadId, placeholder, field, onEditLast }: Props) {
  const { engine } = useClient();
  const lastTyping = useRef(0);
  return (
    <WriteBox
      channel={channel}
      threadId={threadId}
      draftId={threadId}
      label={placeholder}
      placeholder={placeholder}
      sendLabel="Send"
      field={field}
      onEditLast={onEditLast}
      onSend={(content) => {
        void engine.submit({ kind: "create", threadId, content });
        lastTyping.current = 0;
        return true;
      }}
      onTyping={(writing) => {
        const now = Date.now();
        if (writing && now - lastTyping.current <= typingPace) return;
        if (writing) lastTyping.current = now;
        engine.typing(threadId, writing);
      }}
    />
  );
}
