// SPDX-License-Identifier: Apache-2.0
//
// The audit log in words.
import { actions } from "../../api/gen/actions";
import type { components } from "../../api/gen/schema";

type Verified = components["schemas"]["AuditVerifyResult"];

const summaries: ReadonlyMap<string, string> = new Map(actions.map(({ id, summary }) => [id, summary]));

/** What an action does, for a reader; an unknown one by its name. */
export function actionWords(action: string): string {
  return summaries.get(action) ?? action;
}

/** Names of the kinds of actors that have no face. */
export const actorWords: Readonly<Record<string, string>> = {
  anonymous: "Somebody not signed in",
  webhook: "A webhook",
  host: "A host",
  system: "The instance itself",
};

const breaks: Readonly<Record<string, string>> = {
  gap: "an entry is missing",
  hash: "an entry was changed",
  link: "an entry does not follow the one before",
  checkpoint_signature: "the signature of a checkpoint is wrong",
  checkpoint_hash: "a checkpoint does not fit the entries",
  anchor: "the beginning does not fit what was removed before",
};

const warnings: Readonly<Record<string, string>> = {
  no_sink: "Checkpoints are kept only in this database. Somebody who can write to it could replace the whole log.",
  sink_pending: "Some checkpoints are not deposited outside yet.",
  uncheckpointed_tail: "The newest entries have no checkpoint yet.",
  key_unpublished: "A key of an old checkpoint is published no more.",
  trimmed: "Old entries were removed by the retention rule.",
};

/** The result of a verification in one sentence. */
export function verdict(result: Verified): string {
  if (result.ok) {
    const entries = result.checked.toLocaleString();
    return `Intact: ${entries} ${result.checked === 1 ? "entry" : "entries"}, ${result.first_seq} to ${result.last_seq}, with ${result.checkpoints} ${result.checkpoints === 1 ? "checkpoint" : "checkpoints"}.`;
  }
  const [first] = result.breaks;
  if (first === undefined) return "Not intact.";
  const more = result.breaks.length - 1;
  return `Not intact: at entry ${first.seq} ${breaks[first.kind] ?? first.kind}${more === 0 ? "" : `, and ${more} more`}.`;
}

/** What a verification has to say besides. */
export function warningWords(warning: string): string {
  return warnings[warning] ?? warning;
}

/** A value of the details as text. Identifiers stay as they are. */
export function detailWords(value: unknown): string {
  if (Array.isArray(value)) return value.map(detailWords).join(", ") || "none";
  if (typeof value === "object" && value !== null) return JSON.stringify(value);
  return String(value);
}
