// SPDX-License-Identifier: Apache-2.0
//
// Marks that stand in pairs around text: emphasis, strikethrough and spoilers.
import { InlineContext, type InlineParser, type MarkdownConfig } from "@lezer/markdown";

/** No written block has as many. Matching looks back over all open marks, so their number bounds the work. */
export const maxMarks = 1000;

const asterisk = 42;
const underscore = 95;

interface Flanks {
  readonly left: boolean;
  readonly right: boolean;
  readonly punctuationBefore: boolean;
  readonly punctuationAfter: boolean;
}

/** Whether marks from `from` to `to` may open or close, by the characters around them. */
function flanks(cx: InlineContext, from: number, to: number): Flanks {
  const before = characterBefore(cx, from);
  const after = characterAt(cx, to);
  const punctuationBefore = isPunctuation(before);
  const punctuationAfter = isPunctuation(after);
  const blankBefore = isBlank(before);
  const blankAfter = isBlank(after);
  return {
    left: !blankAfter && (!punctuationAfter || blankBefore || punctuationBefore),
    right: !blankBefore && (!punctuationBefore || blankAfter || punctuationAfter),
    punctuationBefore,
    punctuationAfter,
  };
}

/** A character may be a pair of surrogates. */
export function characterBefore(cx: InlineContext, at: number): string {
  return [...cx.slice(Math.max(cx.offset, at - 2), at)].at(-1) ?? "";
}

function characterAt(cx: InlineContext, at: number): string {
  return [...cx.slice(at, Math.min(cx.end, at + 2))][0] ?? "";
}

function isBlank(character: string): boolean {
  return character === "" || /^[\s\u0085]$/.test(character);
}

function isPunctuation(character: string): boolean {
  return /^[\p{P}\p{S}]$/u.test(character);
}

function runEnd(cx: InlineContext, from: number): number {
  let to = from + 1;
  while (cx.char(to) === cx.char(from)) to++;
  return to;
}

/** Counts the marks of each block, for which the parser makes a context; says whether one more may have a meaning. */
function budget(): (cx: InlineContext) => boolean {
  const spent = new WeakMap<InlineContext, number>();
  return (cx) => {
    const count = spent.get(cx) ?? 0;
    if (count < maxMarks) spent.set(cx, count + 1);
    return count < maxMarks;
  };
}

const mayEmphasise = budget();

const emphasis: InlineParser = {
  name: "Emphasis",
  parse(cx, next, from) {
    if ((next !== asterisk && next !== underscore) || !mayEmphasise(cx)) return -1;
    const to = runEnd(cx, from);
    const { left, right, punctuationBefore, punctuationAfter } = flanks(cx, from, to);
    if (next === asterisk) return cx.addDelimiter(InlineContext.emphasisAsterisk, from, to, left, right);
    const opens = left && (!right || punctuationBefore);
    const closes = right && (!left || punctuationAfter);
    return cx.addDelimiter(InlineContext.emphasisUnderscore, from, to, opens, closes);
  },
};

/** Exactly two marks on each side; longer runs are text. Each kind has the bound of emphasis for itself. */
function pair(name: string, mark: string): InlineParser {
  const delimiter = { resolve: name, mark: `${name}Mark` };
  const code = mark.charCodeAt(0);
  const mayPair = budget();
  return {
    name,
    after: "Emphasis",
    parse(cx, next, from) {
      if (next !== code) return -1;
      const to = runEnd(cx, from);
      if (to - from !== 2 || !mayPair(cx)) return to;
      const { left, right } = flanks(cx, from, to);
      return cx.addDelimiter(delimiter, from, to, left, right);
    },
  };
}

/** `*soft*`, `**bold**`, `~~gone~~` and `||hidden||`. */
export const marks: MarkdownConfig = {
  defineNodes: ["Strikethrough", "StrikethroughMark", "Spoiler", "SpoilerMark"],
  parseInline: [emphasis, pair("Strikethrough", "~"), pair("Spoiler", "|")],
};
