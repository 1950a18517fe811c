// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import type { Device } from "../api/types";
import { Icon } from "../ui/Icon";
import { Row, Tag } from "../ui/Page";
import { shortDate, timeAgo } from "./times";
import { useNow } from "./useNow";

const ways: Readonly<Record<string, string>> = {
  first: "the first device",
  policy: "let in without approval",
  approval: "approved on another device",
  pairing: "paired by a code",
  enrollment: "came with an invitation",
};

/** A device in a list: what it is, since when, when last. */
export function DeviceRow({ device, end }: { readonly device: Device; readonly end: ReactNode }) {
  const now = useNow();
  const waiting = device.state === "pending";
  const parts = [
    device.client === "cli" ? "command line" : undefined,
    device.current ? "Active now" : `${waiting ? "Asked" : "Active"} ${timeAgo(device.last_seen_at, now)}`,
    waiting ? undefined : `since ${shortDate(device.created_at)}`,
    device.approved_via === null ? undefined : ways[device.approved_via],
    device.network === "other" ? "from another network" : undefined,
  ];
  return (
    <Row
      mark={<Icon name={device.client === "cli" ? "terminal-window" : "devices"} />}
      title={
        <>
          <span dir="auto">{device.name}</span>
          {device.current ? <Tag tone="ok">This browser</Tag> : null}
          {waiting ? <Tag tone="warn">Waits for approval</Tag> : null}
        </>
      }
      note={parts.filter((part) => part !== undefined).join(" · ")}
      end={end}
    />
  );
}
