// SPDX-License-Identifier: Apache-2.0
import { type KeyboardEvent, useCallback, useMemo } from "react";
import type { Id, Message } from "../../api/types";
import { useClient } from "../../client/Client";
import type { MessageActions } from "./MessageRow";

interface Options {
  readonly threadId: Id;
  readonly onOpenThread: ((message: Message) => void) | undefined;
  readonly onCompose: (letter?: string) => void;
  readonly onEdit: (messageId: Id | undefined) => void;
  readonly remove: (message: Message) => void;
}

/** What can be done with a message of the thread. */
export function useActions(options: Options): MessageActions {
  const { engine, api, announcer } = useClient();
  const { onEdit, onOpenThread, onCompose, threadId, remove } = options;
  const endEdit = useCallback(() => {
    onEdit(undefined);
    onCompose();
  }, [onEdit, onCompose]);
  return useMemo(
    () => ({
      edit: (message) => onEdit(message.id),
      endEdit,
      saveEdit: (message, text) => {
        const trimmed = text.trim();
        if (trimmed !== "" && trimmed !== message.content) {
          void engine.submit({
            kind: "edit",
            threadId,
            messageId: message.id,
            content: trimmed,
            version: message.version,
            revision: message.revision,
          });
        }
        endEdit();
      },
      remove,
      copyText: (message) => {
        void navigator.clipboard.writeText(message.content);
        announcer.say("Copied");
      },
      copyLink: (message) => {
        void navigator.clipboard.writeText(`${location.origin}/t/${message.thread_id}/${message.id}`);
        announcer.say("Link copied");
      },
      openThread: onOpenThread,
      markUnread: (message) => {
        const work = api.POST("/threads/{thread_id}/read-state/unread", {
          params: { path: { thread_id: message.thread_id } },
          body: { from_thread_seq: message.thread_seq },
        });
        work.then(
          () => announcer.say("Marked unread"),
          () => announcer.alert("Could not be marked unread"),
        );
      },
    }),
    [engine, api, announcer, onEdit, onOpenThread, endEdit, remove, threadId],
  );
}

/** Single letters act on the focused message; any other letter belongs to the composer. */
export function act(
  event: KeyboardEvent,
  message: Message,
  actions: MessageActions,
  me: Id,
  compose: (letter?: string) => void,
): void {
  if (event.target instanceof HTMLElement && event.target.closest("button, a, input, textarea, [role=menu]")) return;
  const mine = message.author.id === me;
  if (event.key === "e" && mine) actions.edit(message);
  else if (event.key === "Delete" && mine) actions.remove(message);
  else if (event.key === "c") actions.copyText(message);
  else if (event.key === "l") actions.copyLink(message);
  else if (event.key === "u") actions.markUnread(message);
  else if (event.key === "t" && actions.openThread !== undefined) actions.openThread(message);
  else if (event.key.length === 1 && event.key !== " ") compose(event.key);
  else return;
  event.preventDefault();
}
