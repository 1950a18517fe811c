// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, useState } from "react";
import { body } from "../../api/client";
import type { Device, Session } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ApproveDeviceDialog } from "../../client/ApproveDeviceDialog";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { DeviceRow } from "../../client/DeviceRow";
import { PagesView } from "../../client/Listing";
import { RenameDialog } from "../../client/RenameDialog";
import { SessionRow } from "../../client/SessionRow";
import { usePages } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { Page, Section } from "../../ui/Page";

type Asked =
  | { readonly kind: "others" }
  | { readonly kind: "end"; readonly session: Session }
  | { readonly kind: "approve" | "rename" | "remove"; readonly device: Device };

/** Which devices know the account, and where it is signed in. */
export function DevicesPage() {
  const { api } = useAccount();
  const [asked, setAsked] = useState<Asked>();
  const devices = usePages("devices", async (cursor, signal) =>
    body(await api.GET("/me/devices", { signal, params: { query: cursor === undefined ? {} : { cursor } } })),
  );
  const sessions = usePages("sessions", async (cursor, signal) =>
    body(await api.GET("/me/sessions", { signal, params: { query: cursor === undefined ? {} : { cursor } } })),
  );
  const others = sessions.loaded.state === "ready" ? sessions.loaded.value.filter((each) => !each.current).length : 0;
  const reload = () => {
    devices.reload();
    sessions.reload();
  };
  return (
    <Page title="Devices and sessions" lead="Where your account is known and signed in. End what you do not recognise.">
      <Section title="Devices" hint="A device keeps a key of its own, so that the next sign-in on it is a known one.">
        <PagesView pages={devices} label="Devices" empty="No device is known.">
          {(device) => (
            <DeviceRow
              key={device.id}
              device={device}
              end={
                device.state === "pending" ? (
                  <Button tone="primary" onClick={() => setAsked({ kind: "approve", device })}>
                    Look at it
                  </Button>
                ) : (
                  <>
                    <Button onClick={() => setAsked({ kind: "rename", device })}>Rename</Button>
                    {device.current ? null : (
                      <Button onClick={() => setAsked({ kind: "remove", device })}>Remove</Button>
                    )}
                  </>
                )
              }
            />
          )}
        </PagesView>
      </Section>
      <Section
        title="Sessions"
        {...(sessions.loaded.state === "ready" && others === 0 ? { hint: "You are signed in only here." } : {})}
        action={
          others === 0 ? null : <Button onClick={() => setAsked({ kind: "others" })}>Sign out everywhere else</Button>
        }
      >
        <PagesView pages={sessions} label="Sessions" empty="No session is open.">
          {(session) => (
            <SessionRow
              key={session.id}
              session={session}
              end={session.current ? null : <Button onClick={() => setAsked({ kind: "end", session })}>End</Button>}
            />
          )}
        </PagesView>
      </Section>
      {asked === undefined ? null : <Ask asked={asked} onClose={() => setAsked(undefined)} onChanged={reload} />}
    </Page>
  );
}

interface AskProps {
  readonly asked: Asked;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** The dialog of an act on a device or a session. */
function Ask({ asked, onClose, onChanged }: AskProps) {
  const { api } = useAccount();
  const confirm = (title: string, action: string, text: ReactNode, act: () => Promise<unknown>) => (
    <ConfirmDialog
      title={title}
      action={action}
      onClose={onClose}
      onConfirm={async () => {
        await act();
        onChanged();
      }}
    >
      <p>{text}</p>
    </ConfirmDialog>
  );
  switch (asked.kind) {
    case "approve":
      return <ApproveDeviceDialog device={asked.device} onClose={onClose} onDecided={onChanged} />;
    case "rename": {
      const { device } = asked;
      return (
        <RenameDialog
          title="Rename the device"
          name={device.name}
          onClose={onClose}
          onSave={async (name) => {
            const params = { path: { device_id: device.id }, header: { "If-Match": `"${device.version}"` } };
            await api.PATCH("/devices/{device_id}", { params, body: { name } });
            onChanged();
          }}
        />
      );
    }
    case "remove": {
      const path = { device_id: asked.device.id };
      return confirm(
        `Remove ${asked.device.name}?`,
        "Remove device",
        "It is signed out within a second, what it stored is deleted, and it gets no notifications any more.",
        () => api.DELETE("/devices/{device_id}", { params: { path } }),
      );
    }
    case "end": {
      const path = { session_id: asked.session.id };
      return confirm(
        `End the session on ${asked.session.device?.name ?? "this device"}?`,
        "End session",
        "It is signed out within a second. Whoever uses it has to sign in again.",
        () => api.DELETE("/sessions/{session_id}", { params: { path } }),
      );
    }
    case "others":
      return confirm(
        "Sign out everywhere else?",
        "Sign out",
        "Every other browser and app is signed out within a second. This browser stays.",
        () => api.POST("/me/sessions/revoke-others"),
      );
  }
}
