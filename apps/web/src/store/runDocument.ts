// SPDX-License-Identifier: Apache-2.0
//
// The run document on the client: merge patches and appended text, applied in order of versions.
import type { Id, Run, RunSummary } from "../api/types";

/** Text added to one place of the document; `offset` counts Unicode code points. */
export interface RunAppend {
  readonly target: string;
  readonly offset: number;
  readonly text: string;
}

/** One version step of a document. */
export interface RunPatch {
  readonly version: number;
  readonly patch?: Readonly<Record<string, unknown>> | null;
  readonly append?: readonly RunAppend[] | null;
}

/** Payload of `run.updated`: steps from a base, or the whole document. */
export interface RunUpdate {
  readonly run_id: Id;
  readonly thread_id: Id;
  readonly version: number;
  readonly base_version?: number;
  readonly patches?: readonly RunPatch[];
  readonly snapshot?: Run;
}

/** Result of applying an update: the new document, nothing to do, or a missed version that calls for a load. */
export type RunMerge = { readonly kind: "merged"; readonly run: Run } | { readonly kind: "same" | "missed" };

/** Number of Unicode code points of a text. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Applies an update to the known document. */
export function mergeRunUpdate(known: Run | undefined, update: RunUpdate): RunMerge {
  const version = known?.doc_version ?? -1;
  if (update.snapshot !== undefined) {
    return update.version >= version ? { kind: "merged", run: update.snapshot } : { kind: "same" };
  }
  if (known === undefined || (update.base_version ?? 0) > version) return { kind: "missed" };
  if (update.version <= version) return { kind: "same" };
  let run: Run = known;
  for (const step of update.patches ?? []) {
    if (step.version <= version) continue;
    const next = applyStep(run, step);
    if (next === undefined) return { kind: "missed" };
    run = next;
  }
  return { kind: "merged", run: { ...run, doc_version: update.version } };
}

/** Lays a summary of an event or a list over the document; the parts only the document has stay. */
export function mergeRunSummary(known: Run | undefined, summary: RunSummary): Run {
  if (known === undefined) return summary;
  if (summary.doc_version < known.doc_version && isFinal(known.state)) return known;
  const docVersion = Math.max(summary.doc_version, known.doc_version);
  // The summary carries no document; when it is ahead of one, the version stays where the document is, so that the gap
  // is noticed with the next update.
  return { ...known, ...summary, doc_version: hasDocument(known) ? known.doc_version : docVersion };
}

/** True when more than the summary of a run is known. */
export function hasDocument(run: Run): boolean {
  return run.output !== undefined || run.steps !== undefined || run.plan !== undefined;
}

/** End states are final. */
export function isFinal(state: RunSummary["state"]): boolean {
  return state === "completed" || state === "failed" || state === "cancelled";
}

function applyStep(run: Run, step: RunPatch): Run | undefined {
  let next = step.patch ? (mergePatch(run, step.patch) as unknown as Run) : run;
  for (const append of step.append ?? []) {
    const appended = applyAppend(next, append);
    if (appended === undefined) return undefined;
    next = appended;
  }
  return next;
}

function applyAppend(run: Run, append: RunAppend): Run | undefined {
  const length = append.offset + codePoints(append.text);
  if (append.target === "output") {
    const output = run.output ?? { text: "", length: 0 };
    if (length <= output.length) return run;
    if (append.offset !== output.length) return undefined;
    return { ...run, output: { ...output, text: output.text + append.text, length } };
  }
  const key = /^steps\.(.+)\.output$/u.exec(append.target)?.[1];
  const step = key === undefined ? undefined : run.steps?.[key];
  if (key === undefined || step === undefined) return run;
  return { ...run, steps: { ...run.steps, [key]: { ...step, output: (step.output ?? "") + append.text } } };
}

/** JSON merge patch (RFC 7396). */
export function mergePatch(target: unknown, patch: unknown): Record<string, unknown> {
  const base = isObject(target) ? target : {};
  if (!isObject(patch)) return base;
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result[key] = null;
    else if (isObject(value)) result[key] = mergePatch(base[key], value);
    else result[key] = value;
  }
  return result;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
