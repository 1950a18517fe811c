// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "react";
import { body } from "../../api/client";
import { useClient } from "../../client/Client";
import { useNow } from "../../client/useNow";
import { useStore } from "../../client/useStore";
import type { WaitingDevice } from "../../store/state";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import styles from "./DeviceBanner.module.css";

/** Tells that a new device asks to be let in. Events bring it; what waited before the start is asked for once. */
export function DeviceBanner({ onOpen }: { readonly onOpen: (device: WaitingDevice) => void }) {
  const { principalId } = useClient();
  const before = useWaitingBefore();
  const told = useStore((state) => state.waitingDevices);
  const now = useNow(before.length > 0 || told.size > 0);
  const waiting = [...told.values(), ...before.filter((each) => !told.has(each.id))].filter(({ until }) => until > now);
  const [device] = waiting;
  if (device === undefined) return null;
  const own = device.principalId === principalId;
  return (
    <div className={styles.banner} role="status">
      <Icon name="devices" />
      <p>
        {own ? "A new device wants to sign in as you" : `A new device of ${device.principalName} waits`}
        <span dir="auto">: {device.name}</span>
        {waiting.length > 1 ? ` and ${waiting.length - 1} more` : ""}
      </p>
      <Button onClick={() => onOpen(device)}>Look at it</Button>
    </div>
  );
}

/** Own devices that waited when the client started. The store follows the log from then on. */
function useWaitingBefore(): readonly WaitingDevice[] {
  const { api, principalId } = useClient();
  const resolved = useStore((state) => state.decidedDevices);
  const [found, setFound] = useState<readonly WaitingDevice[]>([]);
  useEffect(() => {
    api.GET("/me/devices", { params: { query: { state: "pending" } } }).then(
      (result) =>
        setFound(
          body(result).items.map(({ id, name, pending_until }) => ({
            id,
            name,
            principalId,
            principalName: "",
            until: Date.parse(pending_until ?? ""),
          })),
        ),
      // Asked again at the next start; an event tells of anything new.
      () => undefined,
    );
  }, [api, principalId]);
  return found.filter(({ id }) => !resolved.has(id));
}
