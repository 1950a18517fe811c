// SPDX-License-Identifier: Apache-2.0
//
// Dialect 1 of message text: CommonMark with tables, strikethrough, task lists, autolinks, spoilers and mentions;
// without raw HTML, setext headings, indented code and link definitions, which stay visible text.
import {
  Autolink,
  parser as commonmark,
  type InlineContext,
  type MarkdownConfig,
  Strikethrough,
  Table,
  TaskList,
} from "@lezer/markdown";

const lessThan = 60;
const pipe = 124;

const angleTarget = /^<(?:[a-z][a-z0-9+.-]{1,31}:[^\s<>]*|[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9.-]+)>/i;
const mentionToken = /^<(?:@_?&?[0-9a-f-]{36}|#[0-9a-f-]{36}|@(?:here|channel|thread))>/;
const spoilerMark = { resolve: "Spoiler", mark: "SpoilerMark" };

/** `<@id>` and its relatives; the stored form of a mention. */
const mention: MarkdownConfig = {
  defineNodes: ["Mention"],
  parseInline: [
    {
      name: "Mention",
      before: "Link",
      parse(cx: InlineContext, next: number, position: number) {
        if (next !== lessThan) return -1;
        const token = mentionToken.exec(cx.slice(position, Math.min(cx.end, position + 42)));
        return token === null ? -1 : cx.addElement(cx.elt("Mention", position, position + token[0].length));
      },
    },
    {
      // The parser of CommonMark finds `<https://…>` together with raw HTML, which the dialect does without.
      name: "AngleLink",
      before: "Link",
      parse(cx: InlineContext, next: number, position: number) {
        if (next !== lessThan) return -1;
        const match = angleTarget.exec(cx.slice(position, cx.end));
        if (match === null) return -1;
        const end = position + match[0].length;
        return cx.addElement(cx.elt("Autolink", position, end, [cx.elt("URL", position + 1, end - 1)]));
      },
    },
  ],
};

/** `||hidden||`. */
const spoiler: MarkdownConfig = {
  defineNodes: ["Spoiler", "SpoilerMark"],
  parseInline: [
    {
      name: "Spoiler",
      after: "Emphasis",
      parse(cx: InlineContext, next: number, position: number) {
        if (next !== pipe || cx.char(position + 1) !== pipe || cx.char(position + 2) === pipe) return -1;
        const spaceBefore = /\s|^$/.test(cx.slice(position - 1, position));
        const spaceAfter = /\s|^$/.test(cx.slice(position + 2, position + 3));
        return cx.addDelimiter(spoilerMark, position, position + 2, !spaceAfter, !spaceBefore);
      },
    },
  ],
};

/** Parser of the dialect. */
export const dialect = commonmark.configure([
  { remove: ["HTMLBlock", "HTMLTag", "SetextHeading", "IndentedCode", "LinkReference"] },
  Table,
  TaskList,
  Strikethrough,
  Autolink,
  mention,
  spoiler,
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

/** The address of a link if it may be followed: http, https, mailto, or a path of this instance. */
export function safeHref(target: string): string | undefined {
  const trimmed = target.trim();
  if (/^(?:https?:\/\/|mailto:)/i.test(trimmed)) return trimmed;
  if (/^www\./i.test(trimmed)) return `https://${trimmed}`;
  if (/^[^\s/:@]+@[^\s/:@]+$/.test(trimmed)) return `mailto:${trimmed}`;
  // Two slashes, or a backslash after the first, would leave this origin.
  return /^\/(?![/\\])/.test(trimmed) ? trimmed : undefined;
}
