// SPDX-License-Identifier: Apache-2.0
import { type KeyboardEvent, type RefObject, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import type { Channel, Id } from "../../api/types";
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
  /** Thread that is written to; absent when the message starts one. */
  readonly threadId: Id | undefined;
  /** What the text is kept under until it is sent. */
  readonly draftId: Id;
  readonly label: string;
  readonly placeholder: string;
  readonly sendLabel: string;
  readonly busy?: boolean;
  readonly field: RefObject<HTMLTextAreaElement | null>;
  /** The field is emptied once this is true. */
  readonly onSend: (content: string) => true | Promise<boolean>;
  readonly onEditLast?: () => void;
  /** Called with every key that leaves text, and when the field is left. */
  readonly onTyping?: (writing: boolean) => void;
}

/**
 * The field every message is written in: Enter sends and Shift+Enter makes a line where there is a keyboard, names are
 * completed, and what will be set in motion is told below.
 */
export function WriteBox(props: Props) {
  const { channel, threadId, draftId, label, placeholder, sendLabel, field } = props;
  const listId = useId();
  const draft = useDraft(draftId);
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  /** Position of a sign whose list was closed; it does not open again for the same word. */
  const [closed, setClosed] = useState(-1);

  /** Where the caret belongs once the text of a taken name is in the field. */
  const wantedCaret = useRef<number>(undefined);

  const query = nameQuery(draft.text, caret);
  const open = query !== undefined && query.from !== closed;
  const candidates = useCandidates(open ? query : undefined, channel, threadId ?? channel.main_thread_id ?? draftId);
  const shown = open && candidates.length > 0;
  const active = Math.min(chosen, candidates.length - 1);
  const outlook = useStore(
    (state) => outlookOf(state, channel, threadId ?? draftId, draft.text) ?? { text: "", starts: false },
    sameMembers,
  );

  useAutoHeight(field, draft.text);
  // Before the next key: React leaves the caret of a text it set at the end.
  useLayoutEffect(() => {
    if (wantedCaret.current === undefined) return;
    field.current?.setSelectionRange(wantedCaret.current, wantedCaret.current);
    wantedCaret.current = undefined;
  });
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) field.current?.focus();
  }, [field]);

  const change = (text: string, position: number) => {
    draft.set(text);
    setCaret(position);
    setChosen(0);
    if (text !== "") props.onTyping?.(true);
  };

  const sent = () => {
    draft.clear();
    setCaret(0);
    setClosed(-1);
    field.current?.focus();
  };

  const send = () => {
    const content = draft.text.trim();
    if (content === "" || props.busy === true) return;
    const done = props.onSend(content);
    if (done === true) sent();
    else void done.then((success) => success && sent());
  };

  const accept = (at: number) => {
    const candidate = candidates[at];
    if (query === undefined || candidate === undefined) return;
    const taken = take(draft.text, query, candidate);
    change(taken.text, taken.caret);
    wantedCaret.current = taken.caret;
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
    } else if (event.key === "ArrowUp" && draft.text === "" && props.onEditLast !== undefined) {
      event.preventDefault();
      props.onEditLast();
    }
  };

  return (
    <div className={styles.dock}>
      <div className={styles.box}>
        {shown ? <CompletionList id={listId} candidates={candidates} active={active} onTake={accept} /> : null}
        <textarea
          ref={field}
          className={styles.field}
          aria-label={label}
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
          onBlur={() => props.onTyping?.(false)}
        />
        <IconButton
          icon="paper-plane-right"
          label={sendLabel}
          tip="none"
          disabled={draft.text.trim() === "" || props.busy === true}
          onClick={send}
        />
      </div>
      <div className={styles.below}>
        {threadId === undefined ? <span /> : <TypingLine threadId={threadId} />}
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
