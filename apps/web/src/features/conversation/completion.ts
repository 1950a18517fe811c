// SPDX-License-Identifier: Apache-2.0
//
// Completion of names in the composer, as pure functions over text and caret.
import type { Face } from "../../client/names";

/** A name that is being typed. */
export interface NameQuery {
  readonly sign: "@" | "#";
  readonly query: string;
  /** Position of the sign in the text. */
  readonly from: number;
  readonly to: number;
}

const typing = /(^|[^\p{L}\p{N}_.\-/@#])([@#])([\p{L}\p{N}._-]{0,40})$/u;

/** The name before the caret, if one is being typed. Not inside code. */
export function nameQuery(text: string, caret: number): NameQuery | undefined {
  const before = text.slice(0, caret);
  if (insideCode(before)) return undefined;
  const match = typing.exec(before);
  const sign = match?.[2];
  if (match === null || (sign !== "@" && sign !== "#")) return undefined;
  const query = match[3] ?? "";
  return { sign, query: query.toLocaleLowerCase(), from: caret - query.length - 1, to: caret };
}

function insideCode(before: string): boolean {
  const fences = before.match(/^```/gm)?.length ?? 0;
  if (fences % 2 === 1) return true;
  const line = before.slice(before.lastIndexOf("\n") + 1);
  return (line.match(/`/g)?.length ?? 0) % 2 === 1;
}

/** What the list offers. */
export interface Candidate {
  readonly id: string;
  readonly label: string;
  /** Text that goes in behind the sign. */
  readonly insert: string;
  readonly face?: Face;
}

const offered = 8;

/**
 * Candidates for a query, best first: those who spoke in this thread, then by where the query begins. An empty query
 * offers everybody in that order.
 */
export function rank(
  candidates: readonly Candidate[],
  query: string,
  recent: ReadonlySet<string>,
): readonly Candidate[] {
  return candidates
    .map((candidate) => ({ candidate, score: score(candidate, query, recent) }))
    .filter(({ score: value }) => value > 0)
    .sort((a, b) => b.score - a.score || a.candidate.label.localeCompare(b.candidate.label))
    .slice(0, offered)
    .map(({ candidate }) => candidate);
}

function score({ id, label, insert }: Candidate, query: string, recent: ReadonlySet<string>): number {
  const near = recent.has(id) ? 0.5 : 0;
  if (query === "") return 1 + near;
  const name = label.toLocaleLowerCase();
  const handle = insert.toLocaleLowerCase();
  if (handle === query) return 5 + near;
  if (handle.startsWith(query)) return 4 + near;
  if (name.startsWith(query)) return 3 + near;
  if (name.split(/\s+/).some((word) => word.startsWith(query))) return 2 + near;
  return handle.includes(query) ? 1 + near : 0;
}

/** Text and caret after a candidate was taken. */
export function take(text: string, query: NameQuery, candidate: Candidate): { text: string; caret: number } {
  const inserted = `${query.sign}${candidate.insert} `;
  const rest = text.slice(query.to).replace(/^ /, "");
  return { text: text.slice(0, query.from) + inserted + rest, caret: query.from + inserted.length };
}
