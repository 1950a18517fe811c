// SPDX-License-Identifier: Apache-2.0
//
// Message text to React elements. There is no HTML in between, so nothing a message holds can become markup.
import { createElement, Fragment, memo, type ReactNode, useState } from "react";
import { CodeBlock } from "./CodeBlock";
import type { MentionToken } from "./dialect";
import styles from "./Markdown.module.css";
import { type Block, type Inline, type Link, type Row, readText, splitBlocks } from "./tree";

/** Draws a mention with the name it has now. */
export type RenderMention = (mention: MentionToken) => ReactNode;

interface Props {
  readonly text: string;
  readonly renderMention: RenderMention;
}

/** A whole text. Blocks are drawn apart, so a growing text redraws its last block only. */
export const Markdown = memo(function Markdown({ text, renderMention }: Props) {
  return (
    <div className={styles.text}>
      {splitBlocks(text).map(({ at, source }) => (
        <Part key={at} source={source} renderMention={renderMention} />
      ))}
    </div>
  );
});

const Part = memo(function Part({ source, renderMention }: { source: string; renderMention: RenderMention }) {
  const blocks = readText(source);
  // What cannot be read is still a message; it is shown as it stands.
  if (blocks === undefined) return <p dir="auto">{source}</p>;
  const renderer = new Renderer(renderMention);
  return <>{blocks.map((block) => renderer.block(block))}</>;
});

class Renderer {
  constructor(private readonly renderMention: RenderMention) {}

  block(block: Block): ReactNode {
    const key = block.at;
    switch (block.kind) {
      case "paragraph":
        return (
          <p key={key} dir="auto">
            {this.inlines(block.children)}
          </p>
        );
      case "heading": {
        // Titles of the page are above the message; its own headings follow below them.
        const tag = `h${Math.min(6, block.level + 3)}`;
        return createElement(tag, { key, dir: "auto" }, this.inlines(block.children));
      }
      case "task":
        return (
          <p key={key} className={styles.task} dir="auto">
            <input type="checkbox" checked={block.done} readOnly disabled aria-label={block.done ? "done" : "open"} />
            <span>{this.inlines(block.children)}</span>
          </p>
        );
      case "quote":
        return <blockquote key={key}>{block.blocks.map((inner) => this.block(inner))}</blockquote>;
      case "list":
        return this.list(block);
      case "code":
        return <CodeBlock key={key} language={block.language} text={block.text} />;
      case "rule":
        return <hr key={key} />;
      case "table":
        return this.table(key, block.rows);
    }
  }

  private list(list: Extract<Block, { kind: "list" }>): ReactNode {
    const items = list.items.map((item) => <li key={item.at}>{item.blocks.map((inner) => this.block(inner))}</li>);
    return list.ordered ? (
      <ol key={list.at} start={list.start}>
        {items}
      </ol>
    ) : (
      <ul key={list.at}>{items}</ul>
    );
  }

  private table(key: number, rows: readonly Row[]): ReactNode {
    const head = rows.filter((row) => row.head);
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
      <section key={key} className={styles.scroll} tabIndex={0} aria-label="Table">
        <table>
          {head.length === 0 ? null : <thead>{head.map((row) => this.row(row, "th"))}</thead>}
          <tbody>{rows.filter((row) => !row.head).map((row) => this.row(row, "td"))}</tbody>
        </table>
      </section>
    );
  }

  private row(row: Row, tag: "th" | "td"): ReactNode {
    const cells = row.cells.map((cell) =>
      createElement(tag, { key: cell.at, dir: "auto" }, this.inlines(cell.children)),
    );
    return <tr key={row.at}>{cells}</tr>;
  }

  private inlines(parts: readonly Inline[]): ReactNode[] {
    return parts.map((part) => (typeof part === "string" ? part : this.inline(part)));
  }

  private inline(part: Exclude<Inline, string>): ReactNode {
    const key = part.at;
    switch (part.kind) {
      case "break":
        return <br key={key} />;
      case "emphasis":
        return <em key={key}>{this.inlines(part.children)}</em>;
      case "strong":
        return <strong key={key}>{this.inlines(part.children)}</strong>;
      case "struck":
        return <del key={key}>{this.inlines(part.children)}</del>;
      case "spoiler":
        return <Spoiler key={key}>{this.inlines(part.children)}</Spoiler>;
      case "code":
        return <code key={key}>{part.text}</code>;
      case "mention":
        return <Fragment key={key}>{this.renderMention(part.mention)}</Fragment>;
      case "link":
        return this.link(part);
    }
  }

  private link(link: Link): ReactNode {
    const label = this.inlines(link.children);
    if (link.href === undefined) return <Fragment key={link.at}>{label}</Fragment>;
    return (
      <Anchor key={link.at} href={link.href}>
        {label.length === 0 ? link.href : label}
      </Anchor>
    );
  }
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
