// SPDX-License-Identifier: Apache-2.0
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Id, Run, RunStep } from "../../api/types";
import { useClient } from "../../client/Client";
import { faceOf } from "../../client/names";
import { clockTime, duration } from "../../client/times";
import { useNow } from "../../client/useNow";
import { sameMembers, useStore } from "../../client/useStore";
import { wordsFor } from "../../client/useSubmit";
import { hasDocument, isFinal } from "../../store/runDocument";
import { Markdown, type RenderMention } from "../../text/Markdown";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import type { IconName } from "../../ui/icons.gen";
import styles from "./RunCard.module.css";
import { endText, queuedText, stateWord } from "./runWords";

interface Props {
  readonly runId: Id;
  readonly renderMention: RenderMention;
}

/** The work of an agent at its place in the thread: live while it runs, one line when it is over. */
export function RunCard({ runId, renderMention }: Props) {
  const { engine } = useClient();
  const run = useStore((state) => state.tables.runs.get(runId)?.value);
  const needed = run === undefined || (!hasDocument(run) && run.state !== "queued");
  useEffect(() => {
    if (needed) void engine.messages.loadRun(runId).catch(() => undefined);
  }, [engine, runId, needed]);

  if (run === undefined) return <p className={styles.missing}>The work of an agent</p>;
  return <Card run={run} renderMention={renderMention} />;
}

function Card({ run, renderMention }: { run: Run; renderMention: RenderMention }) {
  const agent = useStore((state) => faceOf(state, run.agent_id), sameMembers);
  const asker = useStore((state) => faceOf(state, run.triggered_by).name);
  const live = useStore((state) => state.connection.state === "live");
  const over = isFinal(run.state);
  const [open, setOpen] = useState(false);
  const details = !over || open;
  return (
    <section
      className={styles.card}
      data-state={run.state}
      data-live={live && !over && run.state !== "queued"}
      aria-label={`Work of ${agent.name}`}
    >
      <header className={styles.head}>
        <Avatar name={agent.name} id={agent.id} shape="agent" size={28} />
        <div className={styles.title}>
          <p>
            <strong dir="auto">{agent.name}</strong>
            <span className={styles.state} role="status">
              {stateWord(run)}
            </span>
            <Elapsed run={run} live={live} />
          </p>
          <p className={styles.line} dir="auto">
            {lineOf(run) ?? `asked by ${asker}`}
          </p>
        </div>
        {over ? null : <StopButton run={run} />}
        {over && hasSomething(run) ? (
          <Button tone="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? "Less" : "Details"}
          </Button>
        ) : null}
      </header>
      {run.state === "queued" ? <Queued run={run} /> : null}
      {details ? <Details run={run} renderMention={renderMention} /> : null}
      <Ending run={run} />
    </section>
  );
}

function lineOf(run: Run): string | undefined {
  if (run.status_line !== "" && !isFinal(run.state)) return run.status_line;
  return run.title === "" ? undefined : run.title;
}

function hasSomething(run: Run): boolean {
  return (
    Object.keys(run.steps ?? {}).length > 0 ||
    (run.plan ?? []).length > 0 ||
    // The text of a completed run is the answer below; of another one it is all there is.
    (run.state !== "completed" && (run.output?.text ?? "") !== "")
  );
}

/** Time at work; it stands still while the connection is not live, because nobody knows. */
function Elapsed({ run, live }: { run: Run; live: boolean }) {
  const over = isFinal(run.state);
  const now = useNow(live && !over);
  const from = run.started_at ?? run.queued_at;
  const to = run.ended_at === null ? now : Date.parse(run.ended_at);
  if (!live && !over) return <span className={styles.time}>last known</span>;
  return (
    <time className={styles.time} dateTime={from} title={clockTime(from)}>
      {duration(to - Date.parse(from))}
    </time>
  );
}

function StopButton({ run }: { run: Run }) {
  const { api, announcer } = useClient();
  const [sent, setSent] = useState(false);
  const stopping = sent || run.cancel_requested_at !== null;
  const stop = async () => {
    setSent(true);
    try {
      await api.POST("/runs/{run_id}/cancel", { params: { path: { run_id: run.id } }, body: {} });
    } catch (cause) {
      setSent(false);
      announcer.alert(wordsFor(cause));
    }
  };
  return (
    <Button icon="stop-circle" disabled={stopping} onClick={() => void stop()}>
      {stopping ? "Stopping" : "Stop"}
    </Button>
  );
}

function Queued({ run }: { run: Run }) {
  const agent = useStore((state) => faceOf(state, run.agent_id).name);
  const presence = useStore((state) => state.presence.get(run.agent_id) ?? "unknown");
  const ahead = useStore((state) => {
    let count = 0;
    for (const { value: other } of state.tables.runs.values()) {
      if (other.agent_id === run.agent_id && !isFinal(other.state) && other.queued_at < run.queued_at) count += 1;
    }
    return count;
  });
  return <p className={styles.note}>{queuedText(presence, ahead, agent)}</p>;
}

function Details({ run, renderMention }: { run: Run; renderMention: RenderMention }) {
  const over = isFinal(run.state);
  const text = run.output?.text ?? "";
  const tail = useRef<HTMLElement>(null);
  const onScroll = useFollowTail(tail, text);
  const showText = text !== "" && !(over && run.state === "completed");
  return (
    <>
      <Plan run={run} />
      <Steps run={run} />
      {showText ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
        <section ref={tail} className={styles.text} onScroll={onScroll} tabIndex={0} aria-label="Text so far">
          <Markdown text={text} renderMention={renderMention} />
        </section>
      ) : null}
    </>
  );
}

function Plan({ run }: { run: Run }) {
  const plan = run.plan ?? [];
  if (plan.length === 0) return null;
  const done = plan.filter((item) => item.state === "completed").length;
  const open = plan.filter((item) => item.state !== "completed");
  return (
    <div className={styles.plan}>
      {done > 0 ? (
        <p>
          {done} of {plan.length} done
        </p>
      ) : null}
      <ul>
        {open.slice(0, 5).map((item) => (
          <li key={item.key} data-now={item.state === "running"}>
            <Icon name={item.state === "running" ? "caret-right" : "circle"} size={16} />
            {item.text}
          </li>
        ))}
      </ul>
    </div>
  );
}

const stepIcons: Record<RunStep["state"], IconName> = {
  pending: "circle-dashed",
  running: "caret-right",
  completed: "check",
  failed: "x-circle",
  cancelled: "prohibit",
};
const stepWords: Record<RunStep["state"], string> = {
  pending: "not begun",
  running: "running",
  completed: "done",
  failed: "failed",
  cancelled: "stopped",
};

/** The running step and the last three; the rest on demand. */
function Steps({ run }: { run: Run }) {
  const [all, setAll] = useState(false);
  const steps = Object.entries(run.steps ?? {}).sort(([, a], [, b]) => a.ordinal - b.ordinal);
  if (steps.length === 0) return null;
  const shown = all ? steps : steps.slice(-4);
  return (
    <ol className={styles.steps}>
      {shown.length < steps.length ? (
        <li>
          <Button tone="quiet" onClick={() => setAll(true)}>
            Show all {steps.length} steps
          </Button>
        </li>
      ) : null}
      {shown.map(([key, step]) => (
        <li key={key} data-state={step.state}>
          <Icon name={stepIcons[step.state]} size={16} />
          <span dir="auto">{step.title}</span>
          <small>
            <span className="visually-hidden">{stepWords[step.state]}</span>
            {step.started_at !== null && step.ended_at !== null
              ? duration(Date.parse(step.ended_at) - Date.parse(step.started_at))
              : ""}
          </small>
        </li>
      ))}
    </ol>
  );
}

function Ending({ run }: { run: Run }) {
  const why = endText(run);
  if (why === undefined && run.error_message === null) return null;
  return (
    <p className={styles.ending} data-failed={run.state === "failed"}>
      <Icon name={run.state === "failed" ? "warning-circle" : "stop-circle"} size={16} />
      <span>
        {why}
        {run.error_message === null ? null : <q dir="auto">{run.error_message}</q>}
      </span>
    </p>
  );
}

/** Keeps the end of growing text in view until the person scrolls up inside. Returns the scroll handler. */
function useFollowTail(box: RefObject<HTMLElement | null>, text: string): () => void {
  const follow = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text is what grows
  useLayoutEffect(() => {
    if (box.current !== null && follow.current) box.current.scrollTop = box.current.scrollHeight;
  }, [box, text]);
  return () => {
    const element = box.current;
    if (element === null) return;
    follow.current = element.scrollHeight - element.scrollTop - element.clientHeight < 24;
  };
}
