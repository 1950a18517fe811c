// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "react";
import { body } from "../../api/client";
import type { Session } from "../../api/types";
import { useClient } from "../../client/Client";
import { faceOf } from "../../client/names";
import { timeAgo } from "../../client/times";
import { useNow } from "../../client/useNow";
import { sameMembers, useStore } from "../../client/useStore";
import { useSubmit, wordsFor } from "../../client/useSubmit";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Choice } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { setTheme, type Theme, useTheme } from "../../ui/theme";
import styles from "./AccountDialog.module.css";

/** The person, the look of the client and where they are signed in. */
export function AccountDialog({ onClose }: { readonly onClose: () => void }) {
  const { principalId, signOut } = useClient();
  const face = useStore((state) => faceOf(state, principalId), sameMembers);
  const unsent = useStore((state) => state.outbox.length);
  const [asking, setAsking] = useState(false);
  const leave = () => (unsent > 0 && !asking ? setAsking(true) : void signOut());
  return (
    <Dialog title="You" onClose={onClose}>
      <div className={styles.who}>
        <Avatar name={face.name} id={face.id} />
        <p>
          <strong>{face.name}</strong>
          <span>@{face.handle}</span>
        </p>
        <Button icon="sign-out" onClick={leave}>
          Sign out
        </Button>
      </div>
      {asking ? (
        <Notice
          tone="warn"
          action={
            <Button tone="danger" onClick={() => void signOut()}>
              Discard and sign out
            </Button>
          }
        >
          {unsent === 1 ? "One message is not sent yet." : `${unsent} messages are not sent yet.`}
        </Notice>
      ) : null}
      <ThemeChoice />
      <Sessions />
    </Dialog>
  );
}

function ThemeChoice() {
  const theme = useTheme();
  return (
    <Choice<Theme>
      legend="Appearance"
      value={theme}
      onChange={setTheme}
      options={[
        { value: "system", label: "Like the system" },
        { value: "light", label: "Light" },
        { value: "dark", label: "Dark" },
      ]}
    />
  );
}

function Sessions() {
  const { api } = useClient();
  const submit = useSubmit();
  const [sessions, setSessions] = useState<readonly Session[]>();
  const [failed, setFailed] = useState<string>();
  const now = useNow();

  useEffect(() => {
    api.GET("/me/sessions").then(
      (result) => setSessions(body(result).items),
      (cause: unknown) => setFailed(wordsFor(cause)),
    );
  }, [api]);

  const end = (session: Session) =>
    submit.run(async () => {
      await api.DELETE("/sessions/{session_id}", { params: { path: { session_id: session.id } } });
      setSessions((known) => known?.filter((each) => each.id !== session.id));
    });

  return (
    <section className={styles.sessions} aria-label="Where you are signed in">
      <h3>Where you are signed in</h3>
      {failed === undefined ? null : <Notice tone="warn">{failed}</Notice>}
      {sessions === undefined && failed === undefined ? <p aria-busy="true">Loading</p> : null}
      <ul>
        {sessions?.map((session) => (
          <li key={session.id}>
            <Icon name="devices" />
            <p>
              <span dir="auto">{session.device?.name ?? "Unknown device"}</span>
              <small>{session.current ? "this browser" : `active ${timeAgo(session.last_seen_at, now)}`}</small>
            </p>
            {session.current ? null : (
              <Button disabled={submit.busy} onClick={() => void end(session)}>
                End
              </Button>
            )}
          </li>
        ))}
      </ul>
      {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
    </section>
  );
}
