// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "react";
import type { Id } from "../../api/types";
import { useClient } from "../../client/Client";

const pause = 300;

/** The text being written in a thread. It survives a reload. */
export interface DraftText {
  readonly text: string;
  readonly set: (text: string) => void;
  readonly clear: () => void;
}

/** Keeps the text of a thread in the browser, a moment after the last key. */
export function useDraft(threadId: Id): DraftText {
  const { storage } = useClient();
  const [text, setText] = useState("");
  const current = useRef("");
  const touched = useRef(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  useEffect(() => {
    let left = false;
    void storage.loadDraft(threadId).then((stored) => {
      if (left || touched.current || stored === "") return;
      current.current = stored;
      setText(stored);
    });
    return () => {
      left = true;
      clearTimeout(timer.current);
      if (touched.current) void storage.saveDraft(threadId, current.current);
    };
  }, [storage, threadId]);

  const set = (next: string) => {
    touched.current = true;
    current.current = next;
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void storage.saveDraft(threadId, next), next === "" ? 0 : pause);
  };
  return { text, set, clear: () => set("") };
}
