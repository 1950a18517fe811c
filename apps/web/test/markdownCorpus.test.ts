// SPDX-License-Identifier: Apache-2.0
//
// The case files that bind the server's parser bind this one too. The client sees the canonical text, so what only the
// server can know is out of its reach: which typed name stands for whom, who may call many people at once, and how the
// author typed the name of a channel. Hence broadcasts are left out of the compared mentions, a token of nobody counts as
// the text it is, and the names of channels are taken from the input.
import { readdirSync, readFileSync } from "node:fs";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { Markdown } from "../src/text/Markdown";
import { type Block, type Inline, type Link, readText } from "../src/text/tree";

interface Mention {
  readonly kind: string;
  readonly id?: string;
  readonly label: string;
  readonly silent: boolean;
}

interface Case {
  readonly name: string;
  readonly input: string;
  readonly repeat?: number;
  readonly error?: string;
  readonly canonical: string;
  readonly plain: string;
  readonly preview: string;
  readonly mentions: readonly Mention[];
}

interface CaseFile {
  readonly handles: Readonly<Record<string, string>>;
  readonly channels?: Readonly<Record<string, string>>;
  readonly cases: readonly Case[];
}

const folder = new URL("../../../services/server/internal/messaging/testdata/markdown/", import.meta.url);
const files = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .map((name) => ({ name, ...(JSON.parse(readFileSync(new URL(name, folder), "utf8")) as CaseFile) }));

/** Both texts of a tree, its mentions and its links, by the rules of the server. */
class Findings {
  plain = "";
  preview = "";
  readonly mentions: Mention[] = [];
  readonly links: Link[] = [];
  private first = true;
  private quoted = false;
  private hidden = false;

  constructor(
    private readonly labels: ReadonlyMap<string, string>,
    private readonly channels: ReadonlyMap<string, string>,
  ) {}

  blocks(blocks: readonly Block[]): this {
    for (const block of blocks) this.block(block);
    return this;
  }

  private block(block: Block): void {
    switch (block.kind) {
      case "quote": {
        const outer = this.quoted;
        this.quoted = true;
        this.blocks(block.blocks);
        this.quoted = outer;
        return;
      }
      case "list":
        for (const item of block.items) this.blocks(item.blocks);
        return;
      case "rule":
        return;
      case "table":
        for (const row of block.rows) {
          this.separate();
          for (const [at, cell] of row.cells.entries()) {
            if (at > 0) this.text("\t");
            this.inlines(cell.children);
          }
        }
        return;
      case "code":
        this.separate();
        this.plain += block.text;
        this.shown("[code]");
        return;
      default:
        this.separate();
        this.inlines(block.children);
    }
  }

  private inlines(parts: readonly Inline[]): void {
    for (const part of parts) this.inline(part);
  }

  private inline(part: Inline): void {
    if (typeof part === "string") this.text(part);
    else if (part.kind === "break") this.text("\n");
    else if (part.kind === "code") this.text(part.text);
    else if (part.kind === "mention") this.mention(part);
    else if (part.kind === "link") this.link(part);
    else if (part.kind === "spoiler") this.spoiler(part.children);
    else this.inlines(part.children);
  }

  private link(link: Link): void {
    this.links.push(link);
    this.inlines(link.children);
    if (!link.bare) this.plain += ` ${link.target}`;
  }

  private spoiler(parts: readonly Inline[]): void {
    this.shown("▮▮▮");
    const outer = this.hidden;
    this.hidden = true;
    this.inlines(parts);
    this.hidden = outer;
  }

  private mention({ token, mention }: Extract<Inline, { kind: "mention" }>): void {
    const { kind, id } = mention;
    const label = kind === "principal" ? this.labels.get(id) : undefined;
    if (label !== undefined) {
      this.text(`@${label}`);
      if (!this.quoted) this.note(id, label, token.startsWith("<@_"));
    } else if (kind === "broadcast") this.text(`@${id}`);
    else this.text(kind === "channel" ? (this.channels.get(id) ?? token) : token);
  }

  /** A target counts once; naming it aloud anywhere makes the mention loud. */
  private note(id: string, label: string, silent: boolean): void {
    const at = this.mentions.findIndex((known) => known.id === id);
    const mention = { kind: "principal", id, label, silent: silent && (this.mentions[at]?.silent ?? true) };
    if (at < 0) this.mentions.push(mention);
    else this.mentions[at] = mention;
  }

  private separate(): void {
    if (!this.first) this.text("\n");
    this.first = false;
  }

  private text(text: string): void {
    const clean = text.replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g, "");
    this.plain += clean;
    this.shown(clean);
  }

  private shown(text: string): void {
    if (!this.quoted && !this.hidden) this.preview += text;
  }
}

const allowed = /^(?:https?:\/\/.|mailto:.|\/(?!\/))/i;

/** What the server holds for a target that may be followed; the client adds the scheme of a mail address. */
function mayLead(target: string): boolean {
  return allowed.test(target) || /^[^\s:/@]+@[^\s:/@]+$/.test(target);
}

/** Channels as the input names them; one that stands there as a token keeps it. */
function typedChannels(input: string, channels: Readonly<Record<string, string>>): Map<string, string> {
  const typed = Object.entries(channels).map(
    ([name, id]) => [id, new RegExp(`#${name}`, "i").exec(input)?.[0]] as const,
  );
  return new Map(typed.filter((entry): entry is readonly [string, string] => entry[1] !== undefined));
}

describe.each(files)("$name", ({ handles, channels, cases }) => {
  const labels = new Map(
    Object.entries(handles).map(([handle, id]) => [id, handle[0]?.toUpperCase() + handle.slice(1)]),
  );

  it.each(cases.filter((one) => one.repeat === undefined))("$name", (one) => {
    const blocks = readText(one.canonical);
    if (one.error !== undefined) return expect(blocks).toBeUndefined();
    const found = new Findings(labels, typedChannels(one.input, channels ?? {})).blocks(blocks ?? []);
    expect(found.plain).toBe(one.plain);
    expect(found.preview.trim()).toBe(one.preview);
    expect(found.mentions).toEqual(one.mentions);
    for (const { target, href } of found.links) expect(href !== undefined, target).toBe(mayLead(target));
    for (const [, href] of draw(one.canonical).matchAll(/href="([^"]*)"/g)) expect(href).toMatch(allowed);
  });

  // The server checks hostile inputs for their mentions and faults alone; names in them are typed.
  it.each(cases.filter((one) => one.repeat !== undefined))("$name, repeated", (one) => {
    const blocks = readText(one.input.repeat(one.repeat ?? 1));
    expect(blocks === undefined).toBe(one.error === "too_deep");
  });
});

function draw(text: string): string {
  return renderToStaticMarkup(createElement(Markdown, { text, renderMention: ({ id }) => id }));
}
