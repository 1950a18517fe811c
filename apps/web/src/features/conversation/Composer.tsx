// SPDX-License-Identifier: Apache-2.0
import { type KeyboardEvent, type RefObject, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import type { Channel, Id } from "../../api/types";
import { useClient } from "../../client/Client";
import { mayInChannel } from "../../client/places";
import { sameMembers, useStore } from "../../client/useStore";
import { IconButton } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { CompletionList } from "./CompletionList";
import styles from "./Composer.module.css";
import { nameQuery, take } from "./completion";
import { isComposing } from "./ime";
import { TypingLine } from "./TypingLine";
import { useCandidates } from "./useCandidates";
import { useDraft } from "./useDraft";
import { outlookOf } from "./whoActs";

interface Props {
  readonly channel: Channel;
  readonly threadId: Id;
  readonly placeholder: string;
  readonly field: RefObject<HTMLTextAreaElement | null>;
  /** Arrow up in an empty field: the last own message is changed. */
  readonly onEditLast: () => void;
}

/** Where messages are written. Mount it with the thread as key. */
export function Composer(props: Props) {
  const { channel } = props;
  const may = useStore((state) => mayInChannel(state, channel.id, "write"));
  if (channel.archived !== null) return <p className={styles.closed}>This channel is archived.</p>;
  if (channel.read_only !== null) return <p className={styles.closed}>This channel is read-only.</p>;
  if (!may) return <p className={styles.closed}>You read here, but may not write.</p>;
  return <Field {...props} />;
}

const typingPace = 4_000;

function Field({ channel, threadId, placeholder, field, onEditLast }: Props) {
  const { engine } = useClient();
  const listId = useId();
  const draft = useDraft(threadId);
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  /** Position of a sign whose list was closed; it does not open again for the same word. */
  const [closed, setClosed] = useState(-1);
  const lastTyping = useRef(0);

  const query = nameQuery(draft.text, caret);
  const open = query !== undefined && query.from !== closed;
  const candidates = useCandidates(open ? query : undefined, channel, threadId);
  const shown = open && candidates.length > 0;
  const active = Math.min(chosen, candidates.length - 1);
  const outlook = useStore(
    (state) => outlookOf(state, channel, threadId, draft.text) ?? { text: "", starts: false },
    sameMembers,
  );

  useAutoHeight(field, draft.text);
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) field.current?.focus();
  }, [field]);

  const change = (text: string, position: number) => {
    draft.set(text);
    setCaret(position);
    setChosen(0);
    const now = Date.now();
    if (text !== "" && now - lastTyping.current > typingPace) {
      lastTyping.current = now;
      engine.typing(threadId, true);
    }
  };

  const send = () => {
    const content = draft.text.trim();
    if (content === "") return;
    void engine.submit({ kind: "create", threadId, content });
    lastTyping.current = 0;
    draft.clear();
    setCaret(0);
    setClosed(-1);
    field.current?.focus();
  };

  const accept = (at: number) => {
    const candidate = candidates[at];
    if (query === undefined || candidate === undefined) return;
    const taken = take(draft.text, query, candidate);
    change(taken.text, taken.caret);
    requestAnimationFrame(() => field.current?.setSelectionRange(taken.caret, taken.caret));
  };

  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (isComposing(event)) return;
    if (shown && completionKey(event, active, candidates.length, setChosen, accept)) return;
    if (shown && event.key === "Escape") {
      event.stopPropagation();
      setClosed(query?.from ?? -1);
    } else if (event.key === "Enter" && !event.shiftKey && (event.ctrlKey || event.metaKey || !isTouch())) {
      event.preventDefault();
      send();
    } else if (event.key === "ArrowUp" && draft.text === "") {
      event.preventDefault();
      onEditLast();
    }
  };

  return (
    <div className={styles.dock}>
      <div className={styles.box}>
        {shown ? <CompletionList id={listId} candidates={candidates} active={active} onTake={accept} /> : null}
        <textarea
          ref={field}
          className={styles.field}
          aria-label={placeholder}
          placeholder={placeholder}
          dir="auto"
          rows={1}
          role="combobox"
          aria-autocomplete="list"
          aria-expanded={shown}
          aria-controls={listId}
          aria-activedescendant={shown ? `${listId}-${active}` : undefined}
          value={draft.text}
          onChange={(event) => change(event.target.value, event.target.selectionStart)}
          onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
          onKeyDown={onKeyDown}
          onBlur={() => engine.typing(threadId, false)}
        />
        <IconButton
          icon="paper-plane-right"
          label="Send"
          tip="none"
          disabled={draft.text.trim() === ""}
          onClick={send}
        />
      </div>
      <div className={styles.below}>
        <TypingLine threadId={threadId} />
        {outlook.text === "" ? null : (
          <p data-starts={outlook.starts}>
            <Icon name="robot" size={16} />
            {outlook.text}
          </p>
        )}
      </div>
    </div>
  );
}

/** Keys of an open completion list. Returns true when the key was used. */
function completionKey(
  event: KeyboardEvent,
  active: number,
  count: number,
  choose: (at: number) => void,
  accept: (at: number) => void,
): boolean {
  if (event.key === "ArrowDown") choose((active + 1) % count);
  else if (event.key === "ArrowUp") choose((active + count - 1) % count);
  else if (event.key === "Enter" || event.key === "Tab") accept(active);
  else return false;
  event.preventDefault();
  return true;
}

function isTouch(): boolean {
  return matchMedia("(hover: none)").matches;
}

/** The field grows with its text, up to two fifths of the view. */
function useAutoHeight(field: RefObject<HTMLTextAreaElement | null>, text: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text is what changes the height
  useLayoutEffect(() => {
    const box = field.current;
    if (box === null) return;
    box.style.blockSize = "auto";
    box.style.blockSize = `${Math.min(box.scrollHeight, innerHeight * 0.4)}px`;
  }, [field, text]);
}
