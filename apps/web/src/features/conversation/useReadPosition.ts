// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "react";
import type { Id } from "../../api/types";
import { useClient } from "../../client/Client";
import { useAttention } from "../../client/useAttention";
import { useStore } from "../../client/useStore";
import type { MessageWindow } from "../../store/state";

interface Options {
  readonly threadId: Id;
  readonly window: MessageWindow | undefined;
  readonly atEnd: boolean;
}

/**
 * Acknowledges the newest message once it was on the screen of somebody who looks. Returns how many arrived since the
 * end was last in view.
 */
export function useReadPosition({ threadId, window, atEnd }: Options): number {
  const { engine } = useClient();
  const attentive = useAttention();
  const live = useStore((state) => state.connection.state === "live");
  const newest = window?.messages.at(-1)?.thread_seq ?? 0;
  const seen = useRef(newest);

  const complete = window?.atEnd === true && !window.stale;
  useEffect(() => {
    if (!atEnd || !complete || newest === 0) return;
    seen.current = newest;
    if (attentive && live) engine.reads.acknowledge(threadId, newest, false);
  }, [engine, threadId, newest, atEnd, complete, attentive, live]);

  useEffect(() => () => engine.reads.flush(threadId), [engine, threadId]);

  if (seen.current === 0) seen.current = newest;
  return Math.max(0, newest - seen.current);
}
