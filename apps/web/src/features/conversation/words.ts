// SPDX-License-Identifier: Apache-2.0
import type { MessageTrigger } from "../../api/types";
import { problemText } from "../../client/problemText";
import type { OutboxEntry } from "../../engine/outbox";

const denials: Readonly<Record<string, string>> = {
  agent_disabled: "is disabled",
  agent_cannot_read:
    "cannot read this channel. Whoever manages it lets the agent in: channel settings, “Agent that answers”",
  channel_read_only: "does not work in read-only channels",
  level_insufficient: "was not started: you may write here but not set agents to work",
  i1_personal: "works only for the person whose plan it runs on",
  dev_environment_not_ready: "has no ready environment for this",
  project_not_ready: "has no ready project here",
  budget_exhausted: "has used up its budget",
  queue_full: "has too much work waiting",
  rate_limited: "was asked too often; wait a moment",
  trigger_off: "does not work in this channel",
  too_many_agents: "was left out: a message starts a few agents at most",
  chaining_off: "may not be started by other agents here",
  chain_depth: "was not started: too many agents in a row",
  chain_loop: "was not started: it is already part of this work",
  chain_fanout: "was not started: this work has started enough others",
};

/** Why an agent stays silent, or what else became of a message; undefined when a run shows it. */
export function triggerText(trigger: MessageTrigger, agent: string): string | undefined {
  switch (trigger.outcome) {
    case "triggered":
      return undefined;
    case "followup":
      return `Added to the work of ${agent}`;
    case "held":
      return `${agent} starts when the file is checked`;
    case "denied":
      return `${agent} ${denials[trigger.reason ?? ""] ?? "was not started"}`;
  }
}

/**
 * Where an entry of the outbox stands; undefined while nothing needs to be said. A normal send is over before its mark
 * would be read; what cannot go out at the moment says so at once.
 */
export function outboxText(entry: OutboxEntry, now: number, connected: boolean): string | undefined {
  const waited = now - entry.createdAt;
  switch (entry.state) {
    case "failed":
      return entry.fault?.current === undefined
        ? problemText(entry.fault?.code ?? "internal_error", entry.fault?.reason)
        : "Changed by somebody else meanwhile. Your text is kept here.";
    case "held":
      return "This waited for a long time. Still send it?";
    default:
      if (waited >= 30_000) return "Not sent yet. It goes out when the server can be reached.";
      if (!connected || entry.attempts > 0) return "Waiting to send";
      return waited < 3_000 ? undefined : "Sending";
  }
}

const systemTexts: Readonly<Record<string, string>> = {
  "thread.moved": "This thread was moved here.",
  "agent_session.resume_failed": "The agent could not continue its former session and started a new one.",
  "run.child_ended": "Work that was handed on has ended.",
};

/** Sentence of a system line; a code this client does not know is told neutrally. */
export function systemText(code: string): string {
  return systemTexts[code] ?? "Something changed here.";
}
