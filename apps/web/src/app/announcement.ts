// SPDX-License-Identifier: Apache-2.0
import type { Id, Message } from "../api/types";
import { authorOf, faceOf } from "../client/names";
import type { State } from "../store/state";

const spoken = 140;

/** What a screen reader hears of a message that came in: only in a place on the screen, only of others. */
export function announcementOf(state: State, message: Message, visible: ReadonlySet<Id>): string | undefined {
  if (message.kind !== "message" || message.author.id === state.self?.id) return undefined;
  if (!visible.has(message.thread_id)) return undefined;
  return `${authorOf(state, message).name}: ${plain(state, message.content).slice(0, spoken)}`;
}

function plain(state: State, content: string): string {
  return content
    .replace(/```[\s\S]*?(?:```|$)/g, (block) => `code block, ${block.split("\n").length - 2} lines`)
    .replace(/<@_?([0-9a-f-]{36})>/g, (_token, id: Id) => faceOf(state, id).name)
    .replace(/<[#@][^>]*>/g, "")
    .replace(/[*_~`|#>]/g, "")
    .replace(/\s+/g, " ")
    .trim();
}
