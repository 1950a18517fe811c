// SPDX-License-Identifier: Apache-2.0
//
// Levels and capabilities in words.
import type { Capability, Level } from "../api/types";

/** Every level, from the lowest. */
export const levels: readonly Level[] = ["read", "write", "trigger", "manage"];

/** What a level lets somebody do, as a sentence for a choice. */
export const levelSentences: Readonly<Record<Level, string>> = {
  read: "Read what is written there.",
  write: "Read and write.",
  trigger: "Read, write, and set agents to work.",
  manage: "All of that, and change the place and who has access.",
};

/** Name of a level in a list. */
export const levelNames: Readonly<Record<Level, string>> = {
  read: "read",
  write: "write",
  trigger: "trigger",
  manage: "manage",
};

/** Capabilities in words, in the order they are offered. */
export const capabilityWords: Readonly<Record<Capability, string>> = {
  "files.upload": "attach files",
  "threads.create": "start threads",
  "messages.moderate": "remove messages of others",
  "pins.manage": "pin messages",
  "mentions.broadcast": "mention everybody at once",
  "commands.manage": "manage commands",
  "webhooks.manage": "manage webhooks",
  "members.manage": "let members in and out",
  export: "export what is written",
  "costs.read": "see costs",
  "terminal.open": "open terminals",
};

/** Every capability in the order it is offered. */
export const capabilities = Object.keys(capabilityWords) as Capability[];

/** Changes that reach far are confirmed with a fresh proof; the person is told before. */
export function isStrong(target: string, level: Level, extra: readonly Capability[]): boolean {
  return (
    target === "instance" ||
    target === "host" ||
    level === "manage" ||
    extra.some((each) => each === "export" || each === "costs.read" || each === "terminal.open")
  );
}
