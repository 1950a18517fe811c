// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import { useClient } from "../client/Client";
import { clockTime } from "../client/times";
import { useNow } from "../client/useNow";
import { useStore } from "../client/useStore";
import type { Connection, StopReason } from "../store/state";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";
import styles from "./ConnectionBanner.module.css";

const quiet = 3_000;

const stops: Record<StopReason, string> = {
  elsewhere: "Bothy is connected in another window of this device.",
  update_required: "This page is too old for the server.",
  forbidden: "You may not connect at the moment.",
  setup: "The instance is not set up yet.",
  client_fault: "This page made a mistake the server did not understand.",
};

/** Says how current the screen is, whenever it is not live. What is shown follows from the state alone. */
export function ConnectionBanner() {
  const { engine } = useClient();
  const connection = useStore((state) => state.connection);
  const lastLive = useStore((state) => state.lastLiveAt);
  const now = useNow(connection.state !== "live");
  const text = bannerText(connection, lastLive, now);
  if (text === undefined) return null;
  return (
    <div className={styles.banner} data-state={connection.state} role="status">
      {connection.state === "catching_up" ? null : <Icon name="cloud-slash" size={16} />}
      <span>{text}</span>
      {actionFor(connection, engine)}
    </div>
  );
}

function bannerText(connection: Connection, lastLive: number | null, now: number): string | undefined {
  const asOf = lastLive === null ? "" : ` Last update ${clockTime(lastLive)}.`;
  switch (connection.state) {
    case "booting":
    case "live":
      return undefined;
    case "connecting":
      return now - connection.since < quiet ? undefined : `Connecting.${asOf}`;
    case "catching_up":
      return connection.to - connection.from < 500 ? undefined : "Catching up";
    case "resyncing":
      return lastLive === null ? undefined : "Refreshing everything";
    case "waiting": {
      const seconds = Math.max(0, Math.ceil((connection.nextAt - now) / 1_000));
      // The first attempts after a drop are fast; saying so would only flicker.
      if (connection.attempt <= 1 && (lastLive === null || now - lastLive < quiet)) return undefined;
      return `Offline.${asOf} Trying again${seconds > 0 ? ` in ${seconds} s` : ""}.`;
    }
    case "stopped":
      return stops[connection.reason];
  }
}

function actionFor(connection: Connection, engine: { hurry(): void; useHere(): void }): ReactNode {
  if (connection.state === "waiting") return <Button onClick={() => engine.hurry()}>Try now</Button>;
  if (connection.state !== "stopped") return null;
  if (connection.reason === "elsewhere") return <Button onClick={() => engine.useHere()}>Use here</Button>;
  return <Button onClick={() => location.reload()}>Reload</Button>;
}
