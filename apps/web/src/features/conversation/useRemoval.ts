// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useRef, useState } from "react";
import type { Id, Message } from "../../api/types";
import { useClient } from "../../client/Client";

const undoTime = 8_000;

/** Messages that are about to be deleted. */
export interface Removal {
  readonly removed: ReadonlySet<Id>;
  readonly remove: (message: Message) => void;
  readonly undo: (message: Message) => void;
}

/** Deletes after a moment in which it can be taken back. Leaving the place deletes at once. */
export function useRemoval(threadId: Id): Removal {
  const { engine } = useClient();
  const [removed, setRemoved] = useState<ReadonlySet<Id>>(new Set());
  const timers = useRef(new Map<Id, ReturnType<typeof setTimeout>>());

  const drop = useCallback((id: Id) => {
    clearTimeout(timers.current.get(id));
    timers.current.delete(id);
    setRemoved((known) => new Set([...known].filter((each) => each !== id)));
  }, []);

  const remove = useCallback(
    (message: Message) => {
      if (timers.current.has(message.id)) return;
      const send = () => {
        void engine.submit({ kind: "delete", threadId, messageId: message.id }).then(() => drop(message.id));
      };
      timers.current.set(message.id, setTimeout(send, undoTime));
      setRemoved((known) => new Set([...known, message.id]));
    },
    [engine, threadId, drop],
  );

  useEffect(() => {
    const waiting = timers.current;
    return () => {
      for (const [id, timer] of waiting) {
        clearTimeout(timer);
        void engine.submit({ kind: "delete", threadId, messageId: id });
      }
      waiting.clear();
    };
  }, [engine, threadId]);

  return { removed, remove, undo: (message) => drop(message.id) };
}
