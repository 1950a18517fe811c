// SPDX-License-Identifier: Apache-2.0
import { Avatar } from "../../ui/Avatar";
import { Icon } from "../../ui/Icon";
import styles from "./CompletionList.module.css";
import type { Candidate } from "./completion";

interface Props {
  readonly id: string;
  readonly candidates: readonly Candidate[];
  readonly active: number;
  readonly onTake: (at: number) => void;
}

/** Names that fit what is being typed. The focus stays in the field; the active one is told by its identifier. */
export function CompletionList({ id, candidates, active, onTake }: Props) {
  return (
    <div id={id} role="listbox" aria-label="Names" className={styles.list}>
      {candidates.map((candidate, at) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and takes the keys
        <div
          key={candidate.id}
          id={`${id}-${at}`}
          role="option"
          tabIndex={-1}
          aria-selected={at === active}
          className={styles.option}
          // The press must not take the focus away from the field.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onTake(at)}
        >
          {candidate.face === undefined ? (
            <Icon name="hash" size={20} />
          ) : (
            <Avatar name={candidate.face.name} id={candidate.face.id} shape={candidate.face.shape} size={20} />
          )}
          <span>{candidate.label}</span>
          {candidate.face === undefined ? null : (
            <small>
              {candidate.face.shape === "agent" ? "agent · " : ""}@{candidate.face.handle}
            </small>
          )}
        </div>
      ))}
    </div>
  );
}
