// SPDX-License-Identifier: Apache-2.0
//
// Dialect 1 of message text: CommonMark with tables, strikethrough, task lists, autolinks, spoilers and mentions;
// without raw HTML, setext headings, indented code and link definitions, which stay visible text.
import {
  type BlockContext,
  type BlockParser,
  parser as commonmark,
  type LeafBlock,
  type Line,
  type MarkdownConfig,
  Table,
  TaskList,
} from "@lezer/markdown";
import { links } from "./links";
import { marks } from "./marks";

const lessThan = 60;
const backslash = 92;
const letter = 97;

const identifier = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const mentionToken = new RegExp(`^<(?:@_?&?${identifier}|#${identifier}|@(?:here|channel|thread))>`);

/** `<@id>` and its relatives; the stored form of a mention. */
const mention: MarkdownConfig = {
  defineNodes: ["Mention"],
  parseInline: [
    {
      name: "Mention",
      before: "Link",
      parse(cx, next, from) {
        if (next !== lessThan) return -1;
        const token = mentionToken.exec(cx.slice(from, Math.min(cx.end, from + 42)));
        return token === null ? -1 : cx.addElement(cx.elt("Mention", from, from + token[0].length));
      },
    },
  ],
};

/** Every line break is one on the screen, so blanks in front of it need no search; a backslash there vanishes. */
const hardBreak: MarkdownConfig = {
  parseInline: [
    {
      name: "HardBreak",
      parse(cx, next, from) {
        const breaks = next === backslash && cx.char(from + 1) === 10;
        return breaks ? cx.addElement(cx.elt("HardBreak", from, from + 2)) : -1;
      },
    },
  ],
};

/** A line indented like code is text, and no mark in front of it opens a block: nothing else looks at `next`. */
const indented: MarkdownConfig = {
  parseBlock: [
    {
      name: "IndentedCode",
      parse(_, line) {
        if (line.indent >= line.baseIndent + 4) line.next = letter;
        return false;
      },
    },
  ],
};

/** A long run of blanks costs the table's own look ahead the square of its length, and is no delimiter row. */
const table: MarkdownConfig = {
  ...Table,
  parseBlock: (Table.parseBlock ?? []).map((block: BlockParser) => ({
    ...block,
    endLeaf: (cx: BlockContext, line: Line, leaf: LeafBlock) =>
      !/[ \t]{100}/.test(cx.peekLine()) && (block.endLeaf?.(cx, line, leaf) ?? false),
  })),
};

/** Parser of the dialect. */
export const dialect = commonmark.configure([
  { remove: ["HTMLBlock", "HTMLTag", "SetextHeading", "LinkReference"] },
  indented,
  table,
  TaskList,
  hardBreak,
  marks,
  links,
  mention,
]);

/** Whom or what a mention token names. */
export interface MentionToken {
  readonly kind: "principal" | "group" | "channel" | "broadcast";
  /** Identifier, or the word of a broadcast. */
  readonly id: string;
}

/** Reads a token such as `<@_&id>`. */
export function readMention(token: string): MentionToken {
  const inner = token.slice(1, -1);
  if (inner.startsWith("#")) return { kind: "channel", id: inner.slice(1) };
  const name = inner.slice(1).replace(/^_/, "");
  if (name.startsWith("&")) return { kind: "group", id: name.slice(1) };
  if (/^(?:here|channel|thread)$/.test(name)) return { kind: "broadcast", id: name };
  return { kind: "principal", id: name };
}
