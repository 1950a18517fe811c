// SPDX-License-Identifier: Apache-2.0
//
// States and ends of runs in words. Nothing is guessed: every word follows from the state the server sent.
import type { Presence, Run } from "../../api/types";
import { isFinal } from "../../store/runDocument";

/** Word for the state of a run. */
export function stateWord(run: Run): string {
  if (run.cancel_requested_at !== null && !isFinal(run.state)) return "Stopping";
  switch (run.state) {
    case "queued":
      return "Waiting";
    case "running":
      return run.stall_warned_at === null ? "Working" : "No sign of life";
    case "waiting_input":
      return "Waits for an answer";
    case "completed":
      return "Done";
    case "failed":
      return "Failed";
    case "cancelled":
      return "Stopped";
  }
}

const ends: Readonly<Record<string, string>> = {
  max_tokens: "It reached the length limit of its model; the answer may be incomplete.",
  max_turns: "It reached its limit of turns; the work may be incomplete.",
  refusal: "The model declined to do this.",
  agent_error: "The agent met an error it could not get past.",
  agent_rejected: "The agent did not accept the work.",
  agent_unavailable: "The agent was not reachable in time. Ask again when it is online.",
  expired: "It was delivered too late to be done.",
  policy_denied: "The rights it needs were no longer there.",
  interrupted: "The agent went away in the middle of the work.",
  stale: "The agent no longer knows of this work.",
  token_rejected: "The agent could not verify who asked.",
  cancel_timeout: "The agent did not react to the request to stop.",
  access_revoked: "Whoever asked lost the right to.",
  user_disabled: "The account of whoever asked was disabled.",
  agent_disabled: "The agent was disabled.",
  channel_read_only: "The channel became read-only.",
  message_deleted: "The message that asked for it was deleted.",
  budget_exceeded: "It would have cost more than it may.",
  parent_cancelled: "The work it belonged to was stopped.",
};

/** Why a run ended, when that is worth a sentence. */
export function endText(run: Run): string | undefined {
  if (!isFinal(run.state) || run.end_reason === null || run.end_reason === "done" || run.end_reason === "requested") {
    return undefined;
  }
  return ends[run.end_reason] ?? `It ended for a reason this client does not know (${run.end_reason}).`;
}

/** Why a run has not begun. */
export function queuedText(presence: Presence, ahead: number, agent: string): string {
  if (presence === "offline" || presence === "unknown") return `${agent} is offline. It starts when ${agent} is back.`;
  if (ahead > 0) return ahead === 1 ? `${agent} finishes other work first` : `Behind ${ahead} other runs`;
  return `${agent} is about to start`;
}
