// SPDX-License-Identifier: Apache-2.0
//
// What a message text says, as a tree of blocks and inlines. The server reads texts with a parser of its own; the case
// files of test/markdownCorpus.test.ts hold that both find the same.
import type { SyntaxNode } from "@lezer/common";
import { dialect, type MentionToken, readMention } from "./dialect";
import { decodeEntity } from "./entities";
import { safeHref } from "./links";

/** Quotes, lists and marks inside each other. The server refuses what is deeper; here it is shown as it was written. */
export const maxNesting = 32;

/** A piece of a line. A string is text; `at` is where a node begins in its source. */
export type Inline =
  | string
  | { readonly kind: "break"; readonly at: number }
  | {
      readonly kind: "emphasis" | "strong" | "struck" | "spoiler";
      readonly at: number;
      readonly children: readonly Inline[];
    }
  | { readonly kind: "code"; readonly at: number; readonly text: string }
  | { readonly kind: "mention"; readonly at: number; readonly token: string; readonly mention: MentionToken }
  | Link;

/** A link or a picture, which is never loaded. Without `href` it leads nowhere and its label is text. */
export interface Link {
  readonly kind: "link";
  readonly at: number;
  /** The address as it was written; a bare address has it as its label as well. */
  readonly target: string;
  readonly bare: boolean;
  readonly href: string | undefined;
  readonly children: readonly Inline[];
}

/** A block of a text. */
export type Block =
  | { readonly kind: "paragraph"; readonly at: number; readonly children: readonly Inline[] }
  | { readonly kind: "heading"; readonly at: number; readonly level: number; readonly children: readonly Inline[] }
  | { readonly kind: "task"; readonly at: number; readonly done: boolean; readonly children: readonly Inline[] }
  | { readonly kind: "quote"; readonly at: number; readonly blocks: readonly Block[] }
  | {
      readonly kind: "list";
      readonly at: number;
      readonly ordered: boolean;
      readonly start: number;
      readonly items: readonly Item[];
    }
  | { readonly kind: "code"; readonly at: number; readonly language: string; readonly text: string }
  | { readonly kind: "rule"; readonly at: number }
  | { readonly kind: "table"; readonly at: number; readonly rows: readonly Row[] };

export interface Item {
  readonly at: number;
  readonly blocks: readonly Block[];
}

export interface Row {
  readonly at: number;
  readonly head: boolean;
  readonly cells: readonly Cell[];
}

export interface Cell {
  readonly at: number;
  readonly children: readonly Inline[];
}

class TooDeep extends Error {}

/** The blocks of a text; nothing if it nests too deeply to be read. */
export function readText(source: string): readonly Block[] | undefined {
  if (deepestLine(source) > maxNesting) return undefined;
  try {
    return new Reader(source).blocks(dialect.parse(source).topNode, 0);
  } catch (error) {
    // Marks inside each other can exhaust the stack of the parser before the limit is seen.
    if (error instanceof TooDeep || error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The parts of a text that mean the same alone as in it, since there are no link definitions. */
export function splitBlocks(source: string): readonly { readonly at: number; readonly source: string }[] {
  if (deepestLine(source) > maxNesting) return [{ at: 0, source }];
  try {
    return childrenOf(dialect.parse(source).topNode).map(({ from, to }) => ({
      at: from,
      // The blanks in front of a block are part of its meaning.
      source: source.slice(source.lastIndexOf("\n", from - 1) + 1, to),
    }));
  } catch (error) {
    if (error instanceof RangeError) return [{ at: 0, source }];
    throw error;
  }
}

const ruleLine = /^[ \t]*([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const containerMark = /[ \t]*(?:>|[-+*](?=[ \t]|$)|\d{1,9}[.)](?=[ \t]))/y;

/** How deep the marks at the beginning of a line would nest; the parser opens a block for each. */
function deepestLine(source: string): number {
  let deepest = 0;
  for (const line of source.split("\n")) {
    if (ruleLine.test(line)) continue;
    containerMark.lastIndex = 0;
    let depth = 0;
    while (depth <= maxNesting && containerMark.test(line)) depth++;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) found.push(child);
  return found;
}

class Reader {
  /** Inside a link a mention or an address is text. */
  private inLink = false;

  constructor(private readonly source: string) {}

  blocks(node: SyntaxNode, depth: number): Block[] {
    if (depth > maxNesting) throw new TooDeep();
    return childrenOf(node)
      .filter((child) => child.name !== "QuoteMark" && child.name !== "ListMark")
      .map((child) => this.block(child, depth));
  }

  private block(node: SyntaxNode, depth: number): Block {
    const at = node.from;
    switch (node.name) {
      case "Blockquote":
        return { kind: "quote", at, blocks: this.blocks(node, depth + 1) };
      case "BulletList":
      case "OrderedList":
        return this.list(node, depth + 1);
      case "Task":
        return { kind: "task", at, done: this.isDone(node), children: this.line(node, depth) };
      case "FencedCode":
        return this.fence(node);
      case "HorizontalRule":
        return { kind: "rule", at };
      case "Table":
        return { kind: "table", at, rows: this.rows(node, depth) };
      default: {
        const level = /^ATXHeading(\d)$/.exec(node.name)?.[1];
        const children = this.line(node, depth);
        return level === undefined
          ? { kind: "paragraph", at, children }
          : { kind: "heading", at, level: Number(level), children };
      }
    }
  }

  private list(node: SyntaxNode, depth: number): Block {
    const mark = node.firstChild?.getChild("ListMark");
    const start = mark == null ? 1 : Number.parseInt(this.slice(mark), 10);
    return {
      kind: "list",
      at: node.from,
      ordered: node.name === "OrderedList",
      start: Number.isFinite(start) ? start : 1,
      items: node.getChildren("ListItem").map((item) => ({ at: item.from, blocks: this.blocks(item, depth) })),
    };
  }

  private isDone(node: SyntaxNode): boolean {
    const marker = node.getChild("TaskMarker");
    return marker !== null && /x/i.test(this.slice(marker));
  }

  private fence(node: SyntaxNode): Block {
    const info = node.getChild("CodeInfo");
    const text = node.getChildren("CodeText").map((part) => this.slice(part));
    return {
      kind: "code",
      at: node.from,
      language: info === null ? "" : (this.slice(info).split(/\s/)[0] ?? ""),
      text: text.join("").replace(/\n$/, ""),
    };
  }

  /** What a row has more than the head is not shown; what it lacks is left out, for a wide head would multiply it. */
  private rows(node: SyntaxNode, depth: number): Row[] {
    const rows = childrenOf(node)
      .filter((row) => row.name === "TableHeader" || row.name === "TableRow")
      .map((row) => ({ at: row.from, head: row.name === "TableHeader", cells: this.cells(row, depth) }));
    const width = rows[0]?.cells.length ?? 0;
    return rows.map((row) => ({ ...row, cells: row.cells.slice(0, width) }));
  }

  /** A cell without a text has no node; it lies between two bars. */
  private cells(row: SyntaxNode, depth: number): Cell[] {
    const cells: Cell[] = [];
    let behindBar = false;
    for (const child of childrenOf(row)) {
      if (child.name === "TableCell") {
        cells.push({ at: child.from, children: this.line(child, depth) });
        behindBar = false;
      } else if (child.name === "TableDelimiter") {
        if (behindBar) cells.push({ at: child.from, children: [] });
        behindBar = true;
      }
    }
    return cells;
  }

  /** The inlines of a block, without the blanks at its ends. */
  private line(node: SyntaxNode, depth: number): Inline[] {
    const parts = this.inlines(node, depth);
    trim(parts, 0, "start");
    trim(parts, parts.length - 1, "end");
    return parts;
  }

  /** Child nodes and the text between them. Marks vanish, everything else is kept. */
  private inlines(node: SyntaxNode, depth: number, from = node.from, to = node.to): Inline[] {
    if (depth > maxNesting) throw new TooDeep();
    const parts: Inline[] = [];
    let position = from;
    for (const child of childrenOf(node)) {
      if (child.from < from || child.to > to) continue;
      this.text(parts, position, child.from);
      this.inline(parts, child, depth);
      position = child.to;
    }
    this.text(parts, position, to);
    return parts;
  }

  private inline(parts: Inline[], node: SyntaxNode, depth: number): void {
    const at = node.from;
    const kind = pairs[node.name];
    if (kind !== undefined) {
      parts.push({ kind, at, children: this.inlines(node, depth + 1) });
      return;
    }
    switch (node.name) {
      case "InlineCode":
        parts.push({ kind: "code", at, text: this.codeSpan(node) });
        return;
      case "Link":
      case "Image":
        parts.push(this.link(node, depth + 1));
        return;
      case "Autolink":
      case "URL":
        this.address(parts, node);
        return;
      case "Mention":
        if (this.inLink) append(parts, this.slice(node));
        else parts.push({ kind: "mention", at, token: this.slice(node), mention: readMention(this.slice(node)) });
        return;
      case "Escape":
        append(parts, this.source.slice(at + 1, node.to));
        return;
      case "Entity":
        append(parts, decodeEntity(this.slice(node)));
        return;
      case "HardBreak":
        parts.push({ kind: "break", at });
        return;
      default:
        if (!/Mark(?:er)?$/.test(node.name)) append(parts, this.slice(node));
    }
  }

  private codeSpan(node: SyntaxNode): string {
    const marks = node.getChildren("CodeMark");
    let inner = "";
    let position = marks[0]?.to ?? node.from;
    for (const quote of node.getChildren("QuoteMark")) {
      inner += this.source.slice(position, quote.from);
      position = quote.to + (this.source[quote.to] === " " ? 1 : 0);
    }
    inner = (inner + this.source.slice(position, marks.at(-1)?.from ?? node.to)).replaceAll("\n", " ");
    if (node.parent?.name === "TableCell") inner = inner.replaceAll("\\|", "|");
    const padded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "";
    return padded ? inner.slice(1, -1) : inner;
  }

  private link(node: SyntaxNode, depth: number): Inline {
    const url = node.getChild("URL");
    const [open, close] = node.getChildren("LinkMark");
    const target = url === null ? "" : this.slice(url).replace(/^<|>$/g, "");
    const outer = this.inLink;
    this.inLink = true;
    const children = this.inlines(node, depth, open?.to, close?.from);
    this.inLink = outer;
    return { kind: "link", at: node.from, target, bare: false, href: safeHref(decodeTarget(target)), children };
  }

  private address(parts: Inline[], node: SyntaxNode): void {
    const target = this.slice(node.getChild("URL") ?? node);
    const mail = node.name === "Autolink" && !target.includes(":");
    const href = this.inLink ? undefined : safeHref(mail ? `mailto:${target}` : target);
    parts.push({ kind: "link", at: node.from, target, bare: true, href, children: [target] });
  }

  /** Plain text; a line break of the source is one on the screen, without the blanks around it. */
  private text(parts: Inline[], from: number, to: number): void {
    let position = from;
    for (const line of this.source.slice(from, to).split("\n")) {
      if (position > from) {
        trim(parts, parts.length - 1, "end");
        parts.push({ kind: "break", at: position - 1 });
      }
      append(parts, isBreak(parts.at(-1)) ? line.replace(/^[ \t]+/, "") : line);
      position += line.length + 1;
    }
  }

  private slice(node: SyntaxNode): string {
    return this.source.slice(node.from, node.to);
  }
}

const pairs: Readonly<Record<string, "emphasis" | "strong" | "struck" | "spoiler">> = {
  Emphasis: "emphasis",
  StrongEmphasis: "strong",
  Strikethrough: "struck",
  Spoiler: "spoiler",
};

function isBreak(part: Inline | undefined): boolean {
  return typeof part === "object" && part.kind === "break";
}

/** Adds text; neighbours become one. */
function append(parts: Inline[], text: string): void {
  if (text === "") return;
  const last = parts.at(-1);
  if (typeof last === "string") parts[parts.length - 1] = last + text;
  else parts.push(text);
}

function trim(parts: Inline[], at: number, end: "start" | "end"): void {
  const part = parts[at];
  if (typeof part !== "string") return;
  const rest = end === "start" ? part.replace(/^[ \t]+/, "") : trimEnd(part);
  if (rest === "") parts.splice(at, 1);
  else parts[at] = rest;
}

/** An expression for blanks at the end would try every run of them. */
function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === " " || text[end - 1] === "\t")) end--;
  return text.slice(0, end);
}

/** A target without its escapes. */
function decodeTarget(target: string): string {
  return target
    .replace(/\\([!-/:-@[-`{-~])/g, "$1")
    .replace(/&(?:#\d{1,7}|#x[0-9a-f]{1,6}|\w{1,31});/gi, (entity) => decodeEntity(entity));
}
