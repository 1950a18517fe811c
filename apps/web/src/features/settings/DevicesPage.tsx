// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { Session } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { PagesView } from "../../client/Listing";
import { SessionRow } from "../../client/SessionRow";
import { usePages } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { Page, Section } from "../../ui/Page";

/** Where the person is signed in. */
export function DevicesPage() {
  const { api } = useAccount();
  const [ending, setEnding] = useState<Session | "others">();
  const sessions = usePages("sessions", async (cursor, signal) =>
    body(await api.GET("/me/sessions", { signal, params: { query: cursor === undefined ? {} : { cursor } } })),
  );
  const others = sessions.loaded.state === "ready" ? sessions.loaded.value.filter((each) => !each.current).length : 0;
  const close = () => setEnding(undefined);
  return (
    <Page title="Devices and sessions" lead="Where you are signed in. End what you do not recognise.">
      <Section
        title="Sessions"
        {...(sessions.loaded.state === "ready" && others === 0 ? { hint: "You are signed in only here." } : {})}
        action={others === 0 ? null : <Button onClick={() => setEnding("others")}>Sign out everywhere else</Button>}
      >
        <PagesView pages={sessions} label="Sessions" empty="No session is open.">
          {(session) => (
            <SessionRow
              key={session.id}
              session={session}
              end={session.current ? null : <Button onClick={() => setEnding(session)}>End</Button>}
            />
          )}
        </PagesView>
      </Section>
      {ending === undefined ? null : ending === "others" ? (
        <ConfirmDialog
          title="Sign out everywhere else?"
          action="Sign out"
          onClose={close}
          onConfirm={async () => {
            await api.POST("/me/sessions/revoke-others");
            sessions.reload();
          }}
        >
          <p>Every other browser and app is signed out within a second. This browser stays.</p>
        </ConfirmDialog>
      ) : (
        <ConfirmDialog
          title={`End the session on ${ending.device?.name ?? "this device"}?`}
          action="End session"
          onClose={close}
          onConfirm={async () => {
            await api.DELETE("/sessions/{session_id}", { params: { path: { session_id: ending.id } } });
            sessions.put((known) => known.filter((each) => each.id !== ending.id));
          }}
        >
          <p>It is signed out within a second. Whoever uses it has to sign in again.</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
