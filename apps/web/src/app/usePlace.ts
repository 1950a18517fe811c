// SPDX-License-Identifier: Apache-2.0
//
// The address as a place. Addresses name places only by identifiers and grant nothing.
import { useEffect, useState } from "react";
import { useLocation, useRoute, useSearch } from "wouter";
import { body } from "../api/client";
import type { Channel, Id, Message } from "../api/types";
import { useClient } from "../client/Client";
import { flatRows, placesOf } from "../client/places";
import { useStore } from "../client/useStore";

const lastPlaceKey = "last_place";

/** What the address shows. */
export interface Place {
  readonly channel: Channel | undefined;
  /** Side thread in the panel. */
  readonly threadId: Id | undefined;
  /** Message a new thread shall start from. */
  readonly from: Message | undefined;
  /** Message to jump to. */
  readonly target: Id | undefined;
  /** The address names a place, whether there is one or not. */
  readonly asked: boolean;
}

/** Address of a channel with a thread beside it. */
export function addressOf(channelId: Id | undefined, threadId?: Id): string {
  if (channelId === undefined) return "/";
  return threadId === undefined ? `/c/${channelId}` : `/c/${channelId}?thread=${threadId}`;
}

/** Reads the address. On a wide screen the root leads to the last place. */
export function usePlace(): Place {
  const [, inChannel] = useRoute("/c/:channel");
  const [, inThread] = useRoute("/t/:thread/:message?");
  const search = new URLSearchParams(useSearch());
  const thread = useThread(inThread?.thread);
  const channelId = inChannel?.channel ?? thread?.channel_id;
  const channel = useStore((state) =>
    channelId === undefined ? undefined : state.tables.channels.get(channelId)?.value,
  );
  const fromId = search.get("from");
  const from = useStore((state) => {
    if (fromId === null || channel?.main_thread_id == null) return undefined;
    return state.windows.get(channel.main_thread_id)?.messages.find((message) => message.id === fromId);
  });
  useRoot(channel);

  const side = thread !== undefined && thread.kind !== "main" ? thread.id : undefined;
  return {
    channel,
    threadId: side ?? search.get("thread") ?? undefined,
    from,
    target: inThread?.message,
    asked: inChannel !== null || inThread !== null,
  };
}

/** A thread of a permalink; asked from the server when it is not known yet. */
function useThread(id: Id | undefined) {
  const { api, engine } = useClient();
  const thread = useStore((state) => (id === undefined ? undefined : state.tables.threads.get(id)?.value));
  const [asked, setAsked] = useState<Id>();
  useEffect(() => {
    if (id === undefined || thread !== undefined || asked === id) return;
    setAsked(id);
    api.GET("/threads/{thread_id}", { params: { path: { thread_id: id } } }).then(
      (result) => {
        const found = body(result);
        engine.absorb((draft) => draft.put("threads", found.id, found, 0));
      },
      // Missing and forbidden look alike: the page says that nothing is there.
      () => undefined,
    );
  }, [api, engine, id, thread, asked]);
  return thread;
}

/** Remembers the place on this device, and leads the root there where both fit beside each other. */
function useRoot(channel: Channel | undefined): void {
  const [path, navigate] = useLocation();
  const first = useStore((state) => flatRows(placesOf(state))[0]?.channel.id);
  const last = localStorage.getItem(lastPlaceKey);
  const exists = useStore((state) => last !== null && state.tables.channels.has(last));
  useEffect(() => {
    if (channel !== undefined) localStorage.setItem(lastPlaceKey, channel.id);
  }, [channel]);
  useEffect(() => {
    if (path !== "/" || !matchMedia("(width >= 720px)").matches) return;
    const goal = exists && last !== null ? last : first;
    if (goal !== undefined) navigate(addressOf(goal), { replace: true });
  }, [path, navigate, first, last, exists]);
}
