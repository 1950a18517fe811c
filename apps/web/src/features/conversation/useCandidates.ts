// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "react";
import type { Channel, Id } from "../../api/types";
import { everybody } from "../../client/names";
import { useStore } from "../../client/useStore";
import { type Candidate, type NameQuery, rank } from "./completion";

/** Names that fit a query in a place; none without a query. */
export function useCandidates(query: NameQuery | undefined, channel: Channel, threadId: Id): readonly Candidate[] {
  const principals = useStore((state) => state.tables.principals);
  const agents = useStore((state) => state.tables.agents);
  const channels = useStore((state) => state.tables.channels);
  const window = useStore((state) => state.windows.get(threadId));
  const all = useStore((state) => state);
  const sign = query?.sign;
  const text = query?.query;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tables stand for the part of the state that is read
  return useMemo(() => {
    if (sign === undefined || text === undefined) return [];
    const recent = new Set(window?.messages.slice(-100).flatMap((message) => message.author.id ?? []));
    if (sign === "@") {
      const people = everybody(all).map((face) => ({ id: face.id, label: face.name, insert: face.handle, face }));
      return rank(people, text, recent);
    }
    const places = [...channels.values()]
      .map(({ value }) => value)
      .filter((one) => one.name !== null && one.archived === null && one.space_id === channel.space_id)
      .map((one) => ({ id: one.id, label: one.name ?? "", insert: one.name ?? "" }));
    return rank(places, text, recent);
  }, [sign, text, principals, agents, channels, window, channel.space_id]);
}
