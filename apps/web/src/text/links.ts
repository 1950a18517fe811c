// SPDX-License-Identifier: Apache-2.0
//
// Links, addresses in angle brackets and bare addresses, and where they may lead.
import type { Element, InlineContext, InlineParser, MarkdownConfig } from "@lezer/markdown";
import { characterBefore } from "./marks";

/** Each attempt may read the rest of its block, so their number bounds the work. */
export const maxFailedLinks = 250;

const exclamation = 33;
const lessThan = 60;
const openBracket = 91;
const closeBracket = 93;
const lowerH = 104;

const linkStart = {};

interface Opening {
  /** Where its mark lies among the parts of the context. */
  readonly index: number;
  readonly from: number;
  readonly to: number;
  readonly image: boolean;
}

/** What the links of one block have come to; the parser makes a context for every block. */
interface Links {
  readonly openings: Opening[];
  failed: number;
  /** Links that open before this place would hold another link, which none may. */
  barredBefore: number;
}

const states = new WeakMap<InlineContext, Links>();

function stateOf(cx: InlineContext): Links {
  const known = states.get(cx);
  if (known !== undefined) return known;
  const fresh: Links = { openings: [], failed: 0, barredBefore: -1 };
  states.set(cx, fresh);
  return fresh;
}

const opening: InlineParser = {
  name: "Link",
  parse(cx, next, from) {
    const image = next === exclamation && cx.char(from + 1) === openBracket;
    if (next !== openBracket && !image) return -1;
    const state = stateOf(cx);
    if (state.failed >= maxFailedLinks) return -1;
    const to = from + (image ? 2 : 1);
    cx.addDelimiter(linkStart, from, to, true, false);
    const index = cx.findOpeningDelimiter(linkStart);
    if (index !== null) state.openings.push({ index, from, to, image });
    return to;
  },
};

const closing: InlineParser = {
  name: "LinkEnd",
  parse(cx, next, at) {
    if (next !== closeBracket) return -1;
    const state = stateOf(cx);
    if (state.failed >= maxFailedLinks) return -1;
    const open = state.openings.pop();
    const barred = open === undefined || (!open.image && open.from < state.barredBefore);
    const target = barred ? undefined : readTarget(cx, at + 1);
    if (open === undefined || target === undefined) {
      state.failed++;
      return -1;
    }
    const content = cx.takeContent(open.index);
    if (!open.image) state.barredBefore = open.from;
    const children = [
      cx.elt("LinkMark", open.from, open.to),
      ...content,
      cx.elt("LinkMark", at, at + 1),
      ...(target.url === undefined ? [] : [target.url]),
    ];
    return cx.addElement(cx.elt(open.image ? "Image" : "Link", open.from, target.to, children));
  },
};

/** `(target "title")`. The title is read and not shown. */
function readTarget(cx: InlineContext, at: number): { to: number; url?: Element } | undefined {
  if (cx.char(at) !== 40) return undefined;
  let to = cx.skipSpace(at + 1);
  if (cx.char(to) === 41) return { to: to + 1 };
  const end = destinationEnd(cx, to);
  if (end === undefined) return undefined;
  const url = cx.elt("URL", to, end);
  to = cx.skipSpace(end);
  if (to > end && cx.char(to) !== 41) to = cx.skipSpace(titleEnd(cx, to) ?? to);
  return cx.char(to) === 41 ? { to: to + 1, url } : undefined;
}

function destinationEnd(cx: InlineContext, from: number): number | undefined {
  const angled = cx.char(from) === lessThan;
  let depth = 0;
  for (let at = angled ? from + 1 : from; at < cx.end; at++) {
    const code = cx.char(at);
    if (code === 92 && isMark(cx.char(at + 1))) at++;
    else if (angled) {
      if (code === 62) return at + 1;
      if (code === lessThan || code === 10) return undefined;
    } else if (code <= 32) return at > from ? at : undefined;
    else if (code === 40) depth++;
    else if (code === 41 && depth-- === 0) return at > from ? at : undefined;
  }
  return angled || from === cx.end ? undefined : cx.end;
}

function titleEnd(cx: InlineContext, from: number): number | undefined {
  const open = cx.char(from);
  if (open !== 34 && open !== 39 && open !== 40) return undefined;
  const close = open === 40 ? 41 : open;
  for (let at = from + 1; at < cx.end; at++) {
    const code = cx.char(at);
    if (code === 92) at++;
    else if (code === close) return at + 1;
    else if (code === open) return undefined;
  }
  return undefined;
}

function isMark(code: number): boolean {
  return (code > 32 && code < 48) || (code > 57 && code < 65) || (code > 90 && code < 97) || (code > 122 && code < 127);
}

const angleTarget =
  /^<(?:[a-z][a-z0-9+.-]{1,31}:[^\s<>]*|[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)>/i;

/** `<https://…>`. The parser underneath finds these together with raw HTML, which the dialect does without. */
const angled: InlineParser = {
  name: "AngleLink",
  after: "LinkEnd",
  parse(cx, next, from) {
    if (next !== lessThan) return -1;
    const match = angleTarget.exec(cx.slice(from, cx.end));
    if (match === null) return -1;
    const to = from + match[0].length;
    return cx.addElement(cx.elt("Autolink", from, to, [cx.elt("URL", from + 1, to - 1)]));
  },
};

/** An address without any mark around it, behind punctuation or a blank. */
const bare: InlineParser = {
  name: "BareAddress",
  parse(cx, next, from) {
    if (next !== lowerH || stateOf(cx).openings.length > 0) return -1;
    if (!/^[\s"'(:;,<>=|*_~[{}!?/.)\]`-]?$/.test(characterBefore(cx, from))) return -1;
    const to = addressEnd(cx, from);
    return to === undefined ? -1 : cx.addElement(cx.elt("URL", from, to));
  },
};

/** Punctuation at the end and brackets that were not opened inside belong to the sentence around it. */
function addressEnd(cx: InlineContext, from: number): number | undefined {
  const scheme = /^https?:\/\/(?=[a-z0-9[\u0080-\uffff])/i.exec(cx.slice(from, Math.min(cx.end, from + 9)))?.[0];
  if (scheme === undefined || !scheme.startsWith("http")) return undefined;
  const start = from + scheme.length;
  let round = 0;
  let square = 0;
  let at = start;
  for (; at < cx.end; at++) {
    const code = cx.char(at);
    if (code <= 32 || code === 60 || code === 62 || code === 34 || code === 96 || code === 124 || code === 92) break;
    if (code === 40) round++;
    else if (code === openBracket) square++;
    else if (code === 41 && --round < 0) break;
    else if (code === closeBracket && --square < 0) break;
  }
  while (at > start && /[?!.,:;*_~'。，、！？；：）」』】…]/.test(cx.slice(at - 1, at))) at--;
  return at > start ? at : undefined;
}

/** `[label](target)`, `![label](target)`, `<target>` and bare addresses. */
export const links: MarkdownConfig = {
  remove: ["Image"],
  parseInline: [opening, closing, angled, bare],
};

/** The address of a link if it may be followed: http, https, mailto, or a path of this instance. */
export function safeHref(target: string): string | undefined {
  const trimmed = target.trim();
  if (/^(?:https?:\/\/|mailto:)./i.test(trimmed)) return trimmed;
  // Two slashes, or a backslash after the first, would leave this origin.
  return /^\/(?![/\\])/.test(trimmed) ? trimmed : undefined;
}
