// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { useClient } from "../../client/Client";
import { faceOf } from "../../client/names";
import { sameMembers, useStore } from "../../client/useStore";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Choice } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { setTheme, type Theme, useTheme } from "../../ui/theme";
import styles from "./AccountDialog.module.css";

interface Props {
  readonly onClose: () => void;
  readonly onSettings: () => void;
}

/** The person, the look of the client, and the ways to the settings, to the console and out. */
export function AccountDialog({ onClose, onSettings }: Props) {
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
          <strong dir="auto">{face.name}</strong>
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
      <ul className={styles.ways}>
        <li>
          <button type="button" onClick={onSettings}>
            <Icon name="gear-six" />
            <span>
              Settings
              <small>Profile, signing in, devices, tokens</small>
            </span>
            <Icon name="caret-right" size={16} />
          </button>
        </li>
        <li>
          <a href="/console/">
            <Icon name="sliders-horizontal" />
            <span>
              Console
              <small>People, groups, access and the instance</small>
            </span>
            <Icon name="caret-right" size={16} />
          </a>
        </li>
      </ul>
      <ThemeChoice />
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
