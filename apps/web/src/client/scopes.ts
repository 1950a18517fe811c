// SPDX-License-Identifier: Apache-2.0
//
// What a token may do, in words: the scopes follow from the catalogue of actions.
import { actions, type CatalogueAction } from "../api/gen/actions";

/** A scope with what it opens. */
export interface ScopeWords {
  readonly scope: string;
  /** The area, such as "Messages". */
  readonly area: string;
  readonly kind: "read" | "write" | "admin" | "other";
  /** The single things it opens, in sentences. */
  readonly summaries: readonly string[];
}

const areas: Readonly<Record<string, string>> = {
  agents: "Agents",
  apps: "Apps",
  audit: "Audit log",
  authz: "Access and groups",
  billing: "Costs",
  chat: "Spaces, channels, threads",
  commands: "Commands",
  costs: "Costs",
  files: "Files",
  gateway: "Live connection",
  identity: "People and profile",
  importer: "Imports",
  instance: "Instance",
  messaging: "Messages",
  notify: "Notifications",
  runs: "Runs",
  search: "Search",
  stats: "Statistics",
  status: "Status",
  sync: "Synchronisation",
  terminal: "Terminals",
};

const verbs = { read: "read", write: "change", admin: "administer" } as const;

/** Scopes a token of a person can carry, in the order of the catalogue. */
export function scopesOf(catalogue: readonly CatalogueAction[] = actions): readonly ScopeWords[] {
  const found = new Map<string, string[]>();
  for (const action of catalogue) {
    if (!action.person || action.scope === "" || action.scope === "session" || action.scope === "none") continue;
    found.set(action.scope, [...(found.get(action.scope) ?? []), action.summary]);
  }
  return [...found].map(([scope, summaries]) => {
    const [module = scope, verb = ""] = scope.split(".");
    const kind = verb === "read" || verb === "write" || verb === "admin" ? verb : "other";
    return { scope, area: areas[module] ?? module, kind, summaries };
  });
}

/** Name of a scope for a list, such as "Messages: read". */
export function scopeLabel({ area, kind, scope }: ScopeWords): string {
  return kind === "other" ? `${area} (${scope})` : `${area}: ${verbs[kind]}`;
}

/** How far a token reaches, for people who do not want to choose one by one. */
export type Reach = "read" | "write" | "chosen";

/** The scopes of a reach. */
export function scopesForReach(reach: Exclude<Reach, "chosen">, all: readonly ScopeWords[]): readonly string[] {
  const kinds = reach === "read" ? ["read"] : ["read", "write"];
  return all.filter((each) => kinds.includes(each.kind)).map((each) => each.scope);
}
