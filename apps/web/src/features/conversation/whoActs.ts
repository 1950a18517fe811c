// SPDX-License-Identifier: Apache-2.0
//
// What a message will set in motion, told before it is sent.
import type { Channel, Id } from "../../api/types";
import { everybody, faceOf } from "../../client/names";
import { mayInChannel } from "../../client/places";
import { isFinal } from "../../store/runDocument";
import type { State } from "../../store/state";

/** A sentence below the composer. */
export interface Outlook {
  readonly text: string;
  /** An agent will work when this is sent. */
  readonly starts: boolean;
}

/** The outlook of a text; undefined when only people are spoken to. */
export function outlookOf(state: State, channel: Channel, threadId: Id, text: string): Outlook | undefined {
  if (text.trim() === "") return undefined;
  const named = namedAgents(state, text);
  const operator = channel.operator.agent_id;
  const all = channel.trigger_rule === "all" && operator !== null ? [operator] : [];
  const agents = [...new Set([...named, ...all])];
  if (agents.length === 0) return undefined;
  const names = agents.map((id) => faceOf(state, id).name).join(" and ");
  if (channel.trigger_rule === "off") return { text: "Agents do not work in this channel", starts: false };
  if (!mayInChannel(state, channel.id, "trigger"))
    return { text: `You may write here, but not start ${names}`, starts: false };
  const running = agents.some((id) => isRunning(state, id, threadId));
  return { text: running ? `Joins the work of ${names}` : `Sends and starts ${names}`, starts: true };
}

function namedAgents(state: State, text: string): Id[] {
  const handles = new Set(
    [...text.matchAll(/(?:^|[^\p{L}\p{N}_.\-/@#])@([\p{L}\p{N}._-]+)/gu)].map((m) => trimHandle(m[1] ?? "")),
  );
  if (handles.size === 0) return [];
  return everybody(state)
    .filter((face) => face.shape === "agent" && handles.has(face.handle.toLocaleLowerCase()))
    .map((face) => face.id);
}

function trimHandle(name: string): string {
  return name.toLocaleLowerCase().replace(/[._-]+$/, "");
}

function isRunning(state: State, agentId: Id, threadId: Id): boolean {
  for (const { value: run } of state.tables.runs.values()) {
    if (run.agent_id === agentId && run.thread_id === threadId && !isFinal(run.state)) return true;
  }
  return false;
}
