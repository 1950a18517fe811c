// SPDX-License-Identifier: Apache-2.0
import { Dialog } from "../ui/Dialog";
import styles from "./HelpDialog.module.css";
import { modName } from "./useKeys";

const groups: readonly { readonly title: string; readonly keys: readonly (readonly [string, string])[] }[] = [
  {
    title: "Everywhere",
    keys: [
      [`${modName} K`, "Go to a place"],
      ["Alt ↑ ↓", "Former, next place"],
      ["Alt ⇧ ↑ ↓", "Former, next unread place"],
      ["F6", "Next region"],
      [`${modName} /`, "This list"],
    ],
  },
  {
    title: "Writing",
    keys: [
      ["Enter", "Send"],
      ["⇧ Enter", "New line"],
      ["↑ in an empty field", "Edit the last own message"],
      ["@ and #", "Names of people, agents, channels"],
    ],
  },
  {
    title: "In the list",
    keys: [
      ["↑ ↓ Home End", "Move over messages"],
      ["e", "Edit"],
      ["Delete", "Delete"],
      ["t", "Open thread"],
      ["c, l", "Copy text, copy link"],
      ["u", "Mark unread from here"],
      ["Esc", "To the newest and to the field"],
    ],
  },
];

/** All keys. */
export function HelpDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose} size="wide">
      <div className={styles.groups}>
        {groups.map((group) => (
          <section key={group.title} aria-label={group.title}>
            <h3>{group.title}</h3>
            <dl>
              {group.keys.map(([keys, meaning]) => (
                <div key={keys}>
                  <dt>
                    <kbd>{keys}</kbd>
                  </dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
