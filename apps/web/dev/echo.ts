// SPDX-License-Identifier: Apache-2.0
//
// An agent that repeats what it hears, slowly, so that a run can be watched.
import { randomUUID } from "node:crypto";
import type { Message, Principal, Run, RunStep } from "../src/api/types";
import type { World } from "./world";

const stamp = () => new Date().toISOString();
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function emptyRun(message: Message, agent: Principal): Run {
  const id = randomUUID();
  return {
    id,
    agent_id: agent.id,
    thread_id: message.thread_id,
    channel_id: message.channel_id,
    space_id: message.space_id,
    trigger_kind: "message",
    trigger_message_id: message.id,
    triggered_by: message.author.id ?? "",
    parent_run_id: null,
    root_run_id: id,
    chain_depth: 0,
    state: "queued",
    end_reason: null,
    doc_version: 1,
    title: "",
    status_line: "",
    anchor_message_id: null,
    output_message_id: null,
    output_length: 0,
    agent_session_id: null,
    model: null,
    held_until: null,
    queued_at: stamp(),
    delivered_at: null,
    started_at: null,
    last_activity_at: null,
    stall_warned_at: null,
    ended_at: null,
    cancel_requested_at: null,
    cancel_requested_by: null,
    cancel_reason: null,
    input_tokens: 0,
    output_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    cost: { amount: null, currency: null, state: "none", billing_mode: "organization" },
    error_code: null,
    error_message: null,
    followups: { pending: 0, mode: "queue" },
    sources: { outside: 0, restricted: 0 },
    trigger_interaction_id: null,
    plan: [],
    steps: {},
    artifacts: {},
    output: { text: "", length: 0 },
    usage: {},
    source_list: [],
    chain: [],
  };
}

/** Starts a run for a message that names the agent. */
export function trigger(world: World, message: Message, agent: Principal): void {
  const run = emptyRun(message, agent);
  const anchor = world.post(message.thread_id, agent, "", { kind: "run", run_id: run.id });
  run.anchor_message_id = anchor.id;
  world.runs.set(run.id, run);
  changed(world, run, null);
  const triggers = [{ agent_id: agent.id, outcome: "triggered" as const, reason: null, run_id: run.id }];
  world.replace(
    { ...message, version: message.version + 1, trigger_state: "triggered", triggers },
    "message.updated",
    "trigger",
  );
  void work(world, run, message, agent);
}

/** Tells everybody about a new state. */
export function changed(world: World, run: Run, previous: Run["state"] | null): void {
  const { plan: _p, steps: _s, artifacts: _a, output: _o, usage: _u, source_list: _l, chain: _c, ...summary } = run;
  world.append("run.state_changed", { run: summary, previous_state: previous });
}

function patch(world: World, run: Run, change: Partial<Run>, text = ""): void {
  const base = run.doc_version;
  const offset = [...(run.output?.text ?? "")].length;
  Object.assign(run, change, { doc_version: base + 1, last_activity_at: stamp() });
  if (text !== "") run.output = { text: (run.output?.text ?? "") + text, length: offset + [...text].length };
  const append = text === "" ? undefined : [{ target: "output", offset, text }];
  const entry = { version: base + 1, patch: change, ...(append === undefined ? {} : { append }) };
  const data = { run_id: run.id, thread_id: run.thread_id, base_version: base, version: base + 1, patches: [entry] };
  world.ephemeral({ event_id: randomUUID(), type: "run.updated", occurred_at: stamp(), data }, run.thread_id);
}

async function work(world: World, run: Run, message: Message, agent: Principal): Promise<void> {
  const slow = message.content.includes("slow") ? 8 : 1;
  await pause(400);
  Object.assign(run, { state: "running", started_at: stamp() });
  changed(world, run, "queued");
  const step = (ordinal: number, title: string, state: RunStep["state"]): RunStep => ({
    ordinal,
    parent_key: null,
    kind: "tool",
    tool_kind: "read",
    title,
    state,
    started_at: stamp(),
    ended_at: state === "completed" ? stamp() : null,
    input: null,
    output: null,
    output_length: 0,
    truncated: false,
  });
  patch(world, run, { status_line: "Reading the thread", steps: { a: step(1, "Read 12 messages", "running") } });
  await pause(500 * slow);
  patch(world, run, {
    status_line: "Writing the answer",
    steps: { a: step(1, "Read 12 messages", "completed"), b: step(2, "Compare with the release notes", "running") },
  });
  const said = message.content.replace(/<@[^>]+>/g, "").trim();
  const answer = `You said: *${said || "nothing"}*.\n\nHere is what I make of it:\n\n- it arrived once\n- it kept its place\n\n\`\`\`go\nfmt.Println("echo")\n\`\`\`\n`;
  for (const piece of answer.match(/[\s\S]{1,7}/g) ?? []) {
    await pause(40 * slow);
    if (run.cancel_requested_at !== null) {
      Object.assign(run, { state: "cancelled", end_reason: "requested", ended_at: stamp() });
      changed(world, run, "running");
      return;
    }
    patch(world, run, {}, piece);
  }
  const output = world.post(run.thread_id, agent, answer, { run_id: run.id });
  const failed = message.content.includes("fail");
  Object.assign(run, {
    state: failed ? "failed" : "completed",
    end_reason: failed ? "agent_error" : "done",
    error_message: failed ? "the model answered 529: overloaded" : null,
    ended_at: stamp(),
    output_message_id: output.id,
  });
  changed(world, run, "running");
}
