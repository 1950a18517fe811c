// SPDX-License-Identifier: Apache-2.0
//
// What somebody holds, and what changes about it, in words.
import type { Capability, Level } from "../../api/types";
import { capabilityWords } from "../rights";

/** Rights on a place as the server tells them. */
export interface Held {
  readonly level: Level | null;
  readonly capabilities: readonly Capability[];
}

/** What somebody holds, in a few words. */
export function heldWords({ level, capabilities }: Held): string {
  if (level === null) return "no access";
  // At the highest level nearly all of them come along; naming each would say nothing.
  if (level === "manage") return "manage";
  return [level, ...capabilities.map((each) => capabilityWords[each])].join(", ");
}

/** A change from one to the other. */
export function difference(before: Held, after: Held): string {
  if (before.level !== after.level) return `${before.level ?? "no access"} → ${after.level ?? "no access"}`;
  const gained = after.capabilities.filter((each) => !before.capabilities.includes(each));
  const lost = before.capabilities.filter((each) => !after.capabilities.includes(each));
  const parts = [
    gained.length === 0 ? undefined : `gains ${gained.map((each) => capabilityWords[each]).join(", ")}`,
    lost.length === 0 ? undefined : `loses ${lost.map((each) => capabilityWords[each]).join(", ")}`,
  ];
  return parts.filter((part) => part !== undefined).join("; ") || "stays the same";
}
