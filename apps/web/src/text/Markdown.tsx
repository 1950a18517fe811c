// SPDX-License-Identifier: Apache-2.0
//
// Message text to React elements. There is no HTML in between, so nothing a message holds can become markup.
import type { SyntaxNode, Tree } from "@lezer/common";
import { createElement, Fragment, memo, type ReactNode, useState } from "react";
import { CodeBlock } from "./CodeBlock";
import { dialect, type MentionToken, readMention, safeHref } from "./dialect";
import { decodeEntity } from "./entities";
import styles from "./Markdown.module.css";

/** Draws a mention with the name it has now. */
export type RenderMention = (mention: MentionToken) => ReactNode;

interface Props {
  readonly text: string;
  readonly renderMention: RenderMention;
}

/** Deeper nesting is shown as plain text; the server refuses it anyway. */
const maxDepth = 40;

/** A whole text. Blocks are drawn apart, so a growing text redraws its last block only. */
export const Markdown = memo(function Markdown({ text, renderMention }: Props) {
  const tree = parse(text);
  if (tree === undefined) return <p dir="auto">{text}</p>;
  return (
    <div className={styles.text}>
      {children(tree.topNode).map((node) => (
        <Block key={node.from} source={text.slice(node.from, node.to)} renderMention={renderMention} />
      ))}
    </div>
  );
});

/** Link definitions do not exist in the dialect, so a block means the same alone as in its document. */
const Block = memo(function Block({ source, renderMention }: { source: string; renderMention: RenderMention }) {
  const tree = parse(source);
  if (tree === undefined) return <p dir="auto">{source}</p>;
  const renderer = new Renderer(source, renderMention);
  return <>{children(tree.topNode).map((node) => renderer.block(node, 0))}</>;
});

function parse(text: string): Tree | undefined {
  try {
    return dialect.parse(text);
  } catch {
    // A text that cannot be parsed is still a message; it is shown as it stands.
    return undefined;
  }
}

function children(node: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) found.push(child);
  return found;
}

class Renderer {
  constructor(
    private readonly source: string,
    private readonly renderMention: RenderMention,
  ) {}

  block(node: SyntaxNode, depth: number): ReactNode {
    const key = node.from;
    if (depth > maxDepth) return <p key={key}>{this.slice(node)}</p>;
    switch (node.name) {
      case "Paragraph":
        return (
          <p key={key} dir="auto">
            {this.inlines(node, depth)}
          </p>
        );
      case "Blockquote":
        return <blockquote key={key}>{this.blocks(node, depth)}</blockquote>;
      case "BulletList":
        return <ul key={key}>{this.blocks(node, depth)}</ul>;
      case "OrderedList":
        return (
          <ol key={key} start={this.listStart(node)}>
            {this.blocks(node, depth)}
          </ol>
        );
      case "ListItem":
        return <li key={key}>{this.blocks(node, depth)}</li>;
      case "Task":
        return this.task(node, depth);
      case "FencedCode":
        return this.code(node);
      case "HorizontalRule":
        return <hr key={key} />;
      case "Table":
        return this.table(node, depth);
      default:
        if (node.name.startsWith("ATXHeading")) return this.heading(node, depth);
        return (
          <p key={key} dir="auto">
            {this.inlines(node, depth)}
          </p>
        );
    }
  }

  private blocks(node: SyntaxNode, depth: number): ReactNode {
    return children(node)
      .filter((child) => child.name !== "QuoteMark" && child.name !== "ListMark")
      .map((child) => this.block(child, depth + 1));
  }

  private listStart(node: SyntaxNode): number {
    const mark = node.firstChild?.getChild("ListMark");
    const start = mark == null ? 1 : Number.parseInt(this.slice(mark), 10);
    return Number.isFinite(start) ? start : 1;
  }

  private task(node: SyntaxNode, depth: number): ReactNode {
    const marker = node.getChild("TaskMarker");
    const done = marker !== null && /x/i.test(this.slice(marker));
    return (
      <p key={node.from} className={styles.task} dir="auto">
        <input type="checkbox" checked={done} readOnly disabled aria-label={done ? "done" : "open"} />
        <span>{this.inlines(node, depth)}</span>
      </p>
    );
  }

  private code(node: SyntaxNode): ReactNode {
    const info = node.getChild("CodeInfo");
    const language = info === null ? "" : (this.slice(info).split(/\s/)[0] ?? "");
    const text = node
      .getChildren("CodeText")
      .map((part) => this.slice(part))
      .join("")
      .replace(/\n$/, "");
    return <CodeBlock key={node.from} language={language} text={text} />;
  }

  private heading(node: SyntaxNode, depth: number): ReactNode {
    // Titles of the page are above the message; its own headings follow below them.
    const level = Math.min(6, Number(node.name.slice(-1)) + 3);
    return createElement(`h${level}`, { key: node.from, dir: "auto" }, this.inlines(node, depth));
  }

  private table(node: SyntaxNode, depth: number): ReactNode {
    const header = node.getChild("TableHeader");
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
      <section key={node.from} className={styles.scroll} tabIndex={0} aria-label="Table">
        <table>
          {header === null ? null : (
            <thead>
              <tr>{this.cells(header, "th", depth)}</tr>
            </thead>
          )}
          <tbody>
            {node.getChildren("TableRow").map((row) => (
              <tr key={row.from}>{this.cells(row, "td", depth)}</tr>
            ))}
          </tbody>
        </table>
      </section>
    );
  }

  private cells(row: SyntaxNode, tag: "th" | "td", depth: number): ReactNode {
    return row
      .getChildren("TableCell")
      .map((cell) => createElement(tag, { key: cell.from, dir: "auto" }, this.inlines(cell, depth)));
  }

  /** Inline content: child nodes and the text between them. Marks vanish, everything else is kept. */
  private inlines(node: SyntaxNode, depth: number, from = node.from, to = node.to): ReactNode[] {
    const parts: ReactNode[] = [];
    let position = from;
    for (const child of children(node)) {
      if (child.from < from || child.to > to) continue;
      if (child.from > position) parts.push(this.text(position, child.from));
      parts.push(this.inline(child, depth + 1));
      // A quote mark takes its blank with it.
      position = child.to + (child.name === "QuoteMark" && this.source[child.to] === " " ? 1 : 0);
    }
    if (position < to) parts.push(this.text(position, to));
    return trimStart(parts);
  }

  private inline(node: SyntaxNode, depth: number): ReactNode {
    const key = node.from;
    if (depth > maxDepth) return this.slice(node);
    switch (node.name) {
      case "Emphasis":
        return <em key={key}>{this.inlines(node, depth)}</em>;
      case "StrongEmphasis":
        return <strong key={key}>{this.inlines(node, depth)}</strong>;
      case "Strikethrough":
        return <del key={key}>{this.inlines(node, depth)}</del>;
      case "Spoiler":
        return <Spoiler key={key}>{this.inlines(node, depth)}</Spoiler>;
      case "InlineCode":
        return <code key={key}>{this.codeSpan(node)}</code>;
      case "Link":
      case "Image":
        return this.link(node, depth);
      case "Autolink":
      case "URL":
        return this.autolink(node);
      case "Mention":
        return <Fragment key={key}>{this.renderMention(readMention(this.slice(node)))}</Fragment>;
      case "Escape":
        return this.source.slice(node.from + 1, node.to);
      case "Entity":
        return decodeEntity(this.slice(node));
      case "HardBreak":
        return <br key={key} />;
      case "TaskMarker":
        return null;
      default:
        return node.name.endsWith("Mark") ? null : this.slice(node);
    }
  }

  private codeSpan(node: SyntaxNode): string {
    const marks = node.getChildren("CodeMark");
    const inner = this.source.slice(marks[0]?.to ?? node.from, marks.at(-1)?.from ?? node.to).replaceAll("\n", " ");
    const padded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "";
    return padded ? inner.slice(1, -1) : inner;
  }

  private link(node: SyntaxNode, depth: number): ReactNode {
    const url = node.getChild("URL");
    const marks = node.getChildren("LinkMark");
    const href = url === null ? undefined : safeHref(this.slice(url).replace(/^<|>$/g, ""));
    const open = marks[0];
    const close = marks[1];
    // Without a followable target the brackets are ordinary text. A picture becomes a link and is never loaded.
    if (href === undefined || open === undefined || close === undefined) return this.slice(node);
    const label = this.inlines(node, depth, open.to, close.from);
    return (
      <Anchor key={node.from} href={href}>
        {label.length === 0 ? href : label}
      </Anchor>
    );
  }

  private autolink(node: SyntaxNode): ReactNode {
    const url = node.name === "URL" ? node : node.getChild("URL");
    const text = url === null ? this.slice(node) : this.slice(url);
    const href = safeHref(text);
    return href === undefined ? (
      this.slice(node)
    ) : (
      <Anchor key={node.from} href={href}>
        {text}
      </Anchor>
    );
  }

  /** Plain text; a line break of the source is a line break on the screen. */
  private text(from: number, to: number): ReactNode {
    const lines = this.source.slice(from, to).split("\n");
    if (lines.length === 1) return lines[0];
    return (
      <Fragment key={`t${from}`}>
        {lines.map((line, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of one slice have no other identity
          <Fragment key={at}>
            {at === 0 ? null : <br />}
            {at === 0 ? line : line.replace(/^(?:\s*>)?\s+/, "")}
          </Fragment>
        ))}
      </Fragment>
    );
  }

  private slice(node: SyntaxNode): string {
    return this.source.slice(node.from, node.to);
  }
}

/** Blanks behind a mark that vanished, as in headings and tasks. */
function trimStart(parts: ReactNode[]): ReactNode[] {
  const at = parts.findIndex((part) => part !== null);
  const first = parts[at];
  if (typeof first !== "string") return parts;
  return [...parts.slice(0, at), first.trimStart(), ...parts.slice(at + 1)];
}

function Anchor({ href, children: label }: { href: string; children: ReactNode }) {
  const own = href.startsWith("/");
  return (
    <a href={href} {...(own ? {} : { target: "_blank", rel: "noopener noreferrer" })}>
      {label}
    </a>
  );
}

function Spoiler({ children: hidden }: { children: ReactNode }) {
  const [open, setOpen] = useState(false);
  if (open) return <span className={styles.revealed}>{hidden}</span>;
  return (
    <button type="button" className={styles.spoiler} onClick={() => setOpen(true)} aria-label="Hidden text, show it">
      <span aria-hidden="true">{hidden}</span>
    </button>
  );
}
