// SPDX-License-Identifier: Apache-2.0
import type { Channel } from "../api/types";
import { channelName, faceOf } from "../client/names";
import { mayInChannel } from "../client/places";
import { useStore } from "../client/useStore";
import { IconButton } from "../ui/Button";
import { Icon } from "../ui/Icon";
import styles from "./PlaceHeader.module.css";

interface Props {
  readonly channel: Channel;
  readonly onBack: () => void;
  readonly onSettings: () => void;
  readonly onPeople: () => void;
}

/** Name, topic and operator of the place on the screen. */
export function PlaceHeader({ channel, onBack, onSettings, onPeople }: Props) {
  const name = useStore((state) => channelName(state, channel));
  const manages = useStore((state) => mayInChannel(state, channel.id, "manage"));
  return (
    <header className={styles.header}>
      <span className={styles.back}>
        <IconButton icon="arrow-left" label="Back to all places" tip="none" onClick={onBack} />
      </span>
      <div className={styles.title}>
        <h1 dir="auto">
          {channel.kind === "dm" ? null : <Icon name="hash" />}
          {name}
        </h1>
        <p>
          {channel.topic === "" ? null : <span dir="auto">{channel.topic}</span>}
          <Operator channel={channel} />
        </p>
      </div>
      <IconButton icon="users" label="Who is here" tip="below" onClick={onPeople} />
      {manages && channel.kind !== "dm" ? (
        <IconButton icon="gear-six" label="Channel settings" tip="below" onClick={onSettings} />
      ) : null}
    </header>
  );
}

function Operator({ channel }: { readonly channel: Channel }) {
  const id = channel.operator.agent_id;
  const name = useStore((state) => (id === null ? "" : faceOf(state, id).name));
  const presence = useStore((state) => (id === null ? "unknown" : (state.presence.get(id) ?? "unknown")));
  const live = useStore((state) => state.connection.state === "live");
  if (id === null || channel.trigger_rule === "off") return null;
  const rule = channel.trigger_rule === "all" ? "answers every message" : "answers mentions";
  return (
    <span className={styles.operator} data-presence={live ? presence : "unknown"}>
      {name} {rule}
      {live && presence === "offline" ? ", offline" : ""}
    </span>
  );
}
