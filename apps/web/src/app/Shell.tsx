// SPDX-License-Identifier: Apache-2.0
import { lazy, Suspense, useEffect, useState } from "react";
import { useLocation } from "wouter";
import type { Channel, Id, Message, Space } from "../api/types";
import { useClient } from "../client/Client";
import { channelName, faceOf } from "../client/names";
import { flatRows, placesOf } from "../client/places";
import { useAttention } from "../client/useAttention";
import { sameMembers, useStore } from "../client/useStore";
import { DeviceBanner } from "../features/devices/DeviceBanner";
import { Sidebar } from "../features/sidebar/Sidebar";
import type { WaitingDevice } from "../store/state";
import { totalUnread } from "../store/unread";
import { Avatar } from "../ui/Avatar";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { Empty } from "../ui/Notice";
import { ConnectionBanner } from "./ConnectionBanner";
import { ChannelPlace } from "./Place";
import { PlaceHeader } from "./PlaceHeader";
import { Part } from "./PlainError";
import styles from "./Shell.module.css";
import { ThreadPanel } from "./ThreadPanel";
import { focusRegion, modName, useKeys } from "./useKeys";
import { addressOf, type Place as PlaceAddress, usePlace } from "./usePlace";

// Everything that opens over the page loads after the first paint, in one piece.
const Overlays = lazy(async () => ({ default: (await import("./Overlays")).Overlays }));

/** What lies over the page. */
export type Overlay =
  | { readonly kind: "account" | "people" | "person" | "agent" | "space" | "switcher" | "help" }
  | { readonly kind: "channel"; readonly space: Space }
  | { readonly kind: "device"; readonly device: WaitingDevice }
  | { readonly kind: "settings"; readonly channelId: Id };

/** The inside: places at the left, one place in the middle, a thread at the right. */
export function Shell() {
  const { engine, principalId } = useClient();
  const [, navigate] = useLocation();
  const place = usePlace();
  const [overlay, setOverlay] = useState<Overlay>();
  const owner = useStore((state) => state.self?.owner === true);
  const me = useStore((state) => faceOf(state, principalId), sameMembers);
  const instance = useStore((state) => state.instance?.name ?? "Bothy");

  useFocus(place);
  useTitle(place.channel);
  const step = useStep(place.channel?.id);
  useKeys({
    switcher: () => setOverlay({ kind: "switcher" }),
    help: () => setOverlay({ kind: "help" }),
    step,
    region: focusRegion,
  });
  useEffect(() => {
    const prefetch = () => void import("./Overlays");
    const idle = "requestIdleCallback" in globalThis ? requestIdleCallback(prefetch) : undefined;
    return () => {
      if (idle !== undefined) cancelIdleCallback(idle);
    };
  }, []);

  const people = () => setOverlay({ kind: "people" });
  const panel = place.threadId !== undefined || place.from !== undefined;
  return (
    <div className={styles.shell} data-place={place.channel !== undefined} data-panel={panel}>
      <a className="skip-link" href="#place">
        Skip to the messages
      </a>
      <div className={styles.banners}>
        <DeviceBanner onOpen={(device) => setOverlay({ kind: "device", device })} />
      </div>
      <div className={styles.side}>
        <Sidebar
          current={place.channel?.id}
          head={
            <>
              <strong className={styles.instance} dir="auto">
                {instance}
              </strong>
              <button
                type="button"
                className={styles.me}
                aria-label={`${me.name}, account`}
                onClick={() => setOverlay({ kind: "account" })}
              >
                <Avatar name={me.name} id={me.id} size={28} />
              </button>
            </>
          }
          tools={
            <button type="button" className={styles.search} onClick={() => setOverlay({ kind: "switcher" })}>
              <Icon name="magnifying-glass" size={16} />
              <span>Go to</span>
              <kbd>{modName} K</kbd>
            </button>
          }
          foot={
            <div className={styles.foot}>
              <Button tone="quiet" icon="users" onClick={people}>
                Who is here
              </Button>
              {owner ? (
                <Button tone="quiet" icon="plus" onClick={() => setOverlay({ kind: "space" })}>
                  New space
                </Button>
              ) : null}
            </div>
          }
          onNewChannel={owner ? (space) => setOverlay({ kind: "channel", space }) : undefined}
        />
      </div>
      <main id="place" className={styles.main} tabIndex={-1}>
        <Middle
          place={place}
          onBack={() => navigate("/")}
          onSettings={(channelId) => setOverlay({ kind: "settings", channelId })}
          onPeople={people}
          onOpenThread={(message) => navigate(addressOfThread(message))}
          onNewSpace={owner ? () => setOverlay({ kind: "space" }) : undefined}
          onNewChannel={owner ? (space) => setOverlay({ kind: "channel", space }) : undefined}
        />
      </main>
      {panel && place.channel !== undefined ? (
        <Part name="The thread">
          <ThreadPanel
            channel={place.channel}
            threadId={place.threadId}
            from={place.from}
            target={place.threadId === undefined ? undefined : place.target}
            onClose={() => navigate(addressOf(place.channel?.id))}
            onStarted={(threadId) => navigate(addressOf(place.channel?.id, threadId))}
          />
        </Part>
      ) : null}
      {overlay === undefined ? null : (
        <Suspense fallback={null}>
          <Overlays
            overlay={overlay}
            owner={owner}
            onChange={setOverlay}
            onSettings={() => navigate("/settings")}
            onGo={(channelId) => {
              setOverlay(undefined);
              navigate(addressOf(channelId));
              engine.hurryOutbox();
            }}
          />
        </Suspense>
      )}
    </div>
  );
}

function addressOfThread(message: Message): string {
  if (message.started_thread_id !== null) return addressOf(message.channel_id, message.started_thread_id);
  return `${addressOf(message.channel_id)}?from=${message.id}`;
}

interface MiddleProps {
  readonly place: PlaceAddress;
  readonly onBack: () => void;
  readonly onSettings: (channelId: Id) => void;
  readonly onPeople: () => void;
  readonly onOpenThread: (message: Message) => void;
  readonly onNewSpace: (() => void) | undefined;
  readonly onNewChannel: ((space: Space) => void) | undefined;
}

function Middle({ place, onBack, onSettings, onPeople, onOpenThread, onNewSpace, onNewChannel }: MiddleProps) {
  const known = useStore((state) => state.cursor !== null);
  const space = useStore((state) => state.tables.spaces.values().next().value?.value);
  const { channel } = place;
  if (channel !== undefined) {
    return (
      <>
        <PlaceHeader channel={channel} onBack={onBack} onSettings={() => onSettings(channel.id)} onPeople={onPeople} />
        <ConnectionBanner />
        <ChannelPlace
          channel={channel}
          target={place.threadId === undefined ? place.target : undefined}
          onOpenThread={onOpenThread}
        />
      </>
    );
  }
  return (
    <>
      <span />
      <ConnectionBanner />
      {!known ? null : place.asked ? (
        <Empty title="Nothing here" action={<Button onClick={onBack}>All places</Button>}>
          This place is not available to you or gone.
        </Empty>
      ) : space === undefined && onNewSpace !== undefined ? (
        <Empty
          title="An empty hut"
          action={
            <Button tone="primary" onClick={onNewSpace}>
              New space
            </Button>
          }
        >
          Places to talk are grouped in spaces. Make the first one; you choose who comes in.
        </Empty>
      ) : space !== undefined && onNewChannel !== undefined ? (
        <Empty
          title="Where shall we talk?"
          action={
            <Button tone="primary" onClick={() => onNewChannel(space)}>
              New channel
            </Button>
          }
        >
          Choose a place at the left, or make the first channel in {space.name}.
        </Empty>
      ) : (
        <Empty title="No place yet">An owner opens channels to you. They appear here by themselves.</Empty>
      )}
    </>
  );
}

/** Tells the engine what is on the screen. */
function useFocus(place: PlaceAddress): void {
  const { engine } = useClient();
  const attentive = useAttention();
  const main = place.channel?.main_thread_id ?? undefined;
  const side = place.threadId;
  useEffect(() => {
    const visible = [side, main].filter((id) => id !== undefined);
    engine.setFocus(visible, !attentive);
  }, [engine, main, side, attentive]);
}

function useTitle(channel: Channel | undefined): void {
  const unread = useStore(totalUnread);
  const title = useStore((state) => {
    const parts = [state.instance?.name ?? "Bothy"];
    if (channel !== undefined) parts.unshift(`${channel.kind === "dm" ? "" : "#"}${channelName(state, channel)}`);
    return parts.join(" – ");
  });
  useEffect(() => {
    document.title = unread > 0 ? `(${unread}) ${title}` : title;
  }, [title, unread]);
}

/** Goes to the next or former place of the sidebar. */
function useStep(current: Id | undefined): (direction: 1 | -1, unreadOnly: boolean) => void {
  const { store } = useClient();
  const [, navigate] = useLocation();
  return (direction, unreadOnly) => {
    const rows = flatRows(placesOf(store.getState()));
    const at = rows.findIndex((row) => row.channel.id === current);
    for (let step = 1; step <= rows.length; step += 1) {
      const row = rows[(at + direction * step + rows.length * 2) % rows.length];
      if (row !== undefined && (!unreadOnly || row.unread.unread)) {
        navigate(addressOf(row.channel.id));
        return;
      }
    }
  };
}
