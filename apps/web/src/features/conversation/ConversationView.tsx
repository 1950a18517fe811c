// SPDX-License-Identifier: Apache-2.0
import { type KeyboardEvent, type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Channel, Id, Message } from "../../api/types";
import { useClient } from "../../client/Client";
import { sameItems, useStore } from "../../client/useStore";
import type { OutboxEntry } from "../../engine/outbox";
import { readPosition } from "../../store/unread";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Empty, Notice } from "../../ui/Notice";
import styles from "./ConversationView.module.css";
import { RowView } from "./RowView";
import { byDay, rowsOf } from "./rows";
import { act, useActions } from "./useActions";
import { useReadPosition } from "./useReadPosition";
import { useRemoval } from "./useRemoval";
import { useRoving } from "./useRoving";
import { useScroll } from "./useScroll";

interface Props {
  readonly channel: Channel;
  readonly threadId: Id;
  readonly label: string;
  /** Shows the run whose place in the thread this is. */
  readonly renderRun: (runId: Id) => ReactNode;
  readonly onOpenThread: ((message: Message) => void) | undefined;
  /** Stands before the first message; a thread shows what it started from. */
  readonly beginning?: ReactNode;
  /** Message the address names. */
  readonly target: Id | undefined;
  /** Puts the focus into the composer, with a letter that was typed outside of it. */
  readonly onCompose: (letter?: string) => void;
  /** Message being edited, shared with the composer's arrow key. */
  readonly editing: Id | undefined;
  readonly onEdit: (messageId: Id | undefined) => void;
}

const noEntries: readonly OutboxEntry[] = [];

/** The messages of a thread. Mount it with the thread as key: its position belongs to one thread. */
export function ConversationView(props: Props) {
  const { channel, threadId, label, target } = props;
  const { engine, principalId } = useClient();
  const window = useStore((state) => state.windows.get(threadId));
  const load = useStore((state) => state.loads.get(threadId));
  const outbox = useStore((state) => {
    const found = state.outbox.filter((entry) => entry.work.threadId === threadId);
    return found.length === 0 ? noEntries : found;
  }, sameItems);
  const firstUnread = useFirstUnread(threadId);
  const list = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (target === undefined) void engine.messages.open(threadId);
    else void engine.messages.openAround(threadId, target);
  }, [engine, threadId, target]);

  const removal = useRemoval(threadId);
  const rows = useMemo(
    () => (window === undefined ? [] : rowsOf({ window, outbox, me: principalId, newFrom: firstUnread })),
    [window, outbox, principalId, firstUnread],
  );
  const ready = window !== undefined && !(window.stale && load === "loading" && window.messages.length === 0);
  const startAt = useMemo(() => {
    const found = target === undefined ? undefined : window?.messages.find((message) => message.id === target);
    if (found !== undefined) return found.client_msg_id ?? found.id;
    return firstUnread !== undefined && rows.some((row) => row.kind === "new") ? "new" : undefined;
  }, [target, window, firstUnread, rows]);

  const scroll = useScroll({
    list,
    content,
    rows,
    startAt,
    ready: ready && rows.length > 0,
    onNearStart: () => void engine.messages.loadOlder(threadId),
    onNearEnd: () => {
      if (window !== undefined && !window.atEnd) void engine.messages.loadNewer(threadId);
    },
  });
  useOwnMessages(outbox, scroll.toEnd);
  const unseen = useReadPosition({ threadId, window, atEnd: scroll.atEnd });
  const actions = useActions({ ...props, remove: removal.remove });
  const roving = useRoving(list);

  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (roving.onKeyDown(event)) return;
    const key = roving.keyOf(event.target);
    const row = rows.find((each) => each.key === key && each.kind === "message");
    const message = row?.kind === "message" ? row.message : undefined;
    if (event.key === "Escape") {
      scroll.toEnd();
      props.onCompose();
    } else if (message !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
      act(event, message, actions, principalId, props.onCompose);
    }
  };

  if (load === "gone") {
    return <Empty title="Nothing to see here">This is not available to you or gone.</Empty>;
  }
  if (window === undefined) {
    if (load === "failed") {
      return (
        <Empty
          title="The messages did not arrive"
          action={<Button onClick={() => void engine.messages.open(threadId)}>Try again</Button>}
        >
          The server cannot be reached at the moment. Nothing is lost.
        </Empty>
      );
    }
    return <Skeleton />;
  }

  return (
    <div className={styles.frame}>
      {load === "failed" ? (
        <Notice
          tone="warn"
          action={
            <Button tone="quiet" onClick={() => void engine.messages.open(threadId)}>
              Try again
            </Button>
          }
        >
          Some messages could not be loaded.
        </Notice>
      ) : null}
      <section
        ref={list}
        className={styles.list}
        role="feed"
        aria-label={label}
        aria-busy={load === "loading"}
        tabIndex={-1}
        onScroll={scroll.onScroll}
        onKeyDown={onKeyDown}
        onFocus={roving.onFocus}
      >
        <div ref={content} className={styles.content}>
          {byDay(rows).map((group) => (
            <div key={group.key} className={styles.group}>
              {group.rows.map((row) => (
                <RowView
                  key={row.key}
                  row={row}
                  channel={channel}
                  me={principalId}
                  editing={props.editing}
                  hidden={removal.removed}
                  actions={actions}
                  renderRun={props.renderRun}
                  beginning={props.beginning}
                  undo={removal.undo}
                  target={target}
                />
              ))}
            </div>
          ))}
        </div>
      </section>
      {scroll.atEnd && window.atEnd ? null : (
        <button
          type="button"
          className={styles.pill}
          onClick={() => {
            if (!window.atEnd) void engine.messages.openEnd(threadId);
            scroll.toEnd();
          }}
        >
          {unseen > 0 ? `${unseen} new` : "Newest"}
          <Icon name="arrow-down" size={16} />
        </button>
      )}
    </div>
  );
}

function Skeleton() {
  return (
    <div className={styles.skeleton} aria-hidden="true">
      {[64, 42, 71, 30, 55].map((width) => (
        <div key={width}>
          <span />
          <p>
            <i data-width="short" />
            <i data-width={width > 50 ? "long" : "middle"} />
          </p>
        </div>
      ))}
    </div>
  );
}

/** The first unread message as it was when the place was opened; the line stays until the place is left. */
function useFirstUnread(threadId: Id): number | undefined {
  const { store } = useClient();
  const [first] = useState(() => {
    const read = store.getState().tables.readStates.get(threadId)?.value;
    if (read === undefined || (read.unread_count === 0 && read.manually_unread_from === null)) return undefined;
    return read.first_unread_thread_seq ?? readPosition(read) + 1;
  });
  return first;
}

/** Whoever sends wants to see it: a new own message leads to the end. */
function useOwnMessages(outbox: readonly OutboxEntry[], toEnd: () => void): void {
  const newest = outbox.findLast((entry) => entry.work.kind === "create")?.key;
  const known = useRef(newest);
  useLayoutEffect(() => {
    if (newest !== undefined && newest !== known.current) toEnd();
    known.current = newest;
  });
}
