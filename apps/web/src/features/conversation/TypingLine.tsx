// SPDX-License-Identifier: Apache-2.0
import type { Id } from "../../api/types";
import { faceOf } from "../../client/names";
import { useNow } from "../../client/useNow";
import { sameItems, useStore } from "../../client/useStore";

const none: readonly string[] = [];

/** Who writes at the moment. Shown only while the connection is live, and never spoken. */
export function TypingLine({ threadId }: { readonly threadId: Id }) {
  const someone = useStore((state) => (state.typing.get(threadId)?.size ?? 0) > 0);
  const now = useNow(someone);
  const names = useStore((state) => {
    const typists = state.typing.get(threadId);
    if (typists === undefined || state.connection.state !== "live") return none;
    return [...typists]
      .filter(([id, until]) => until > now && id !== state.self?.id)
      .map(([id]) => faceOf(state, id).name);
  }, sameItems);
  if (names.length === 0) return null;
  return <p>{sentence(names)}</p>;
}

function sentence(names: readonly string[]): string {
  if (names.length > 3) return "Several people are writing";
  const list = new Intl.ListFormat(undefined, { type: "conjunction" }).format(names);
  return names.length === 1 ? `${list} is writing` : `${list} are writing`;
}
