// SPDX-License-Identifier: Apache-2.0
import type { Id } from "../api/types";
import { ApproveDeviceDialog } from "../client/ApproveDeviceDialog";
import { useClient } from "../client/Client";
import { useStore } from "../client/useStore";
import { AccountDialog } from "../features/account/AccountDialog";
import { NewAgentDialog } from "../features/agents/NewAgentDialog";
import { ChannelSettingsDialog } from "../features/channels/ChannelSettingsDialog";
import { NewChannelDialog, NewSpaceDialog } from "../features/channels/NewChannelDialog";
import { NewPersonDialog } from "../features/people/NewPersonDialog";
import { PeopleDialog } from "../features/people/PeopleDialog";
import { Switcher } from "../features/switcher/Switcher";
import type { WaitingDevice } from "../store/state";
import { HelpDialog } from "./HelpDialog";
import type { Overlay } from "./Shell";

interface Props {
  readonly overlay: Overlay;
  readonly owner: boolean;
  readonly onChange: (overlay: Overlay | undefined) => void;
  readonly onGo: (channelId: Id) => void;
  readonly onSettings: () => void;
}

/** The dialog that is open. */
export function Overlays({ overlay, owner, onChange, onGo, onSettings }: Props) {
  const close = () => onChange(undefined);
  switch (overlay.kind) {
    case "account":
      return <AccountDialog onClose={close} onSettings={onSettings} />;
    case "people":
      return (
        <PeopleDialog
          onClose={close}
          onNewPerson={owner ? () => onChange({ kind: "person" }) : undefined}
          onNewAgent={owner ? () => onChange({ kind: "agent" }) : undefined}
        />
      );
    case "person":
      return <NewPersonDialog onClose={close} />;
    case "agent":
      return <NewAgentDialog onClose={close} />;
    case "device":
      return <Device device={overlay.device} onClose={close} />;
    case "space":
      return <NewSpaceDialog onClose={close} />;
    case "channel":
      return <NewChannelDialog space={overlay.space} onClose={close} onCreated={onGo} />;
    case "settings":
      return <Settings channelId={overlay.channelId} onClose={close} />;
    case "switcher":
      return <Switcher onClose={close} onGo={onGo} />;
    case "help":
      return <HelpDialog onClose={close} />;
  }
}

function Device({ device, onClose }: { device: WaitingDevice; onClose: () => void }) {
  const { principalId } = useClient();
  const owner = device.principalId === principalId ? undefined : device.principalName;
  // The log tells everybody, this tab too, that the device waits no longer.
  return <ApproveDeviceDialog device={device} owner={owner} onClose={onClose} onDecided={() => undefined} />;
}

function Settings({ channelId, onClose }: { channelId: Id; onClose: () => void }) {
  const channel = useStore((state) => state.tables.channels.get(channelId)?.value);
  return channel === undefined ? null : <ChannelSettingsDialog channel={channel} onClose={onClose} />;
}
