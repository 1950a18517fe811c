// SPDX-License-Identifier: Apache-2.0
//
// Texts made to be slow. The bounds are those of the server's parser, so both show such a text alike.
import { describe, expect, it } from "vitest";
import { maxFailedLinks } from "../src/text/links";
import { maxMarks } from "../src/text/marks";
import { type Block, type Inline, maxNesting, readText } from "../src/text/tree";

function inlines(text: string): readonly Inline[] {
  const [block] = readText(text) ?? [];
  return block !== undefined && "children" in block ? block.children : [];
}

function count(text: string, kind: string): number {
  return inlines(text).filter((part) => typeof part === "object" && part.kind === kind).length;
}

describe("bounds of a block", () => {
  it("takes marks beyond the limit as text", () => {
    expect(count("*a* ".repeat(maxMarks / 2), "emphasis")).toBe(maxMarks / 2);
    expect(count("*a* ".repeat(maxMarks), "emphasis")).toBe(maxMarks / 2);
    expect(inlines("*a* ".repeat(maxMarks)).at(-1)).toMatch(/\*a\*$/);
  });

  it.each(["~~", "||"])("takes pairs of %s beyond the limit as text", (mark) => {
    const kind = mark === "~~" ? "struck" : "spoiler";
    expect(count(`${mark}a${mark} `.repeat(maxMarks), kind)).toBe(maxMarks / 2);
    expect(count(`${"*a* ".repeat(maxMarks)}${mark}a${mark}`, kind)).toBe(1);
  });

  it("counts marks anew in each block and cell", () => {
    const blocks = readText(`${"a* ".repeat(maxMarks)}x\n\n*a*`) ?? [];
    expect(blocks.at(-1)).toMatchObject({ children: [{ kind: "emphasis", children: ["a"] }] });
    const table = readText(`| ${"a* ".repeat(maxMarks)} | *b* |\n|---|---|`)?.[0];
    expect(table).toMatchObject({ rows: [{ cells: [{}, { children: [{ kind: "emphasis" }] }] }] });
  });

  it("takes brackets beyond the limit of failures as text", () => {
    expect(count(`${"[a] ".repeat(maxFailedLinks - 1)}[b](/c)`, "link")).toBe(1);
    expect(count(`${"[a] ".repeat(maxFailedLinks)}[b](/c)`, "link")).toBe(0);
    expect(count(`${"] ".repeat(maxFailedLinks)}![b](/c)`, "link")).toBe(0);
    expect(count("[b](/c) ".repeat(maxFailedLinks * 2), "link")).toBe(maxFailedLinks * 2);
  });
});

describe("nesting", () => {
  const nested: Readonly<Record<string, (depth: number) => string>> = {
    quotes: (depth) => `${"> ".repeat(depth)}a`,
    "lists on one line": (depth) => `${"- ".repeat(depth)}a`,
    "lists over lines": (depth) => Array.from({ length: depth }, (_, at) => `${"  ".repeat(at)}- a`).join("\n"),
    pictures: (depth) => `${"![".repeat(depth)}a${"](/b)".repeat(depth)}`,
    marks: (depth) =>
      Array.from({ length: depth }, (_, at) => (at % 2 ? "_" : "*")).reduceRight(
        (inner, mark) => `${mark}a ${inner} a${mark}`,
        "b",
      ),
  };

  it.each(Object.keys(nested))("of %s is read down to the limit", (name) => {
    expect(readText(nested[name]?.(maxNesting) ?? "")).toBeDefined();
    expect(readText(nested[name]?.(maxNesting + 1) ?? "")).toBeUndefined();
    expect(readText(nested[name]?.(maxNesting * 10) ?? "")).toBeUndefined();
  });

  it("is not seen in a rule of many marks", () => {
    expect(readText("* ".repeat(200))).toMatchObject([{ kind: "rule" } satisfies Partial<Block>]);
  });
});

/** The quickest of some runs counts, because the machine may be busy. */
function quickest(text: string, runs: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run++) {
    const start = performance.now();
    readText(text);
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

const parts = [
  "[",
  "]",
  "*",
  "_",
  ">",
  "|",
  "||",
  "`",
  "~",
  "<",
  "&",
  "\\",
  "@",
  "<@",
  "![",
  "](",
  "[](",
  "[a](",
  "[a",
  "a]",
  "![[]()",
  "`a``b```c",
  "(http://a",
  "http://-",
  "@a.",
  "&amp;",
  "#",
  "[a](b)",
  "*a*",
  "[*a",
  "a**b",
  "x<@here>",
  "e`",
  "**",
  "***",
  "_*",
  "é",
  "👍🏽",
  "||a||",
  "![a](b)",
  "[a](<b",
  '[a](b"',
  "[a](b(",
  "<a:",
  "<a@",
  "\\*",
  "[\\]",
  "~~a||b",
  ":http://a!",
  "|a",
  "> ",
  "*a ",
  "a* ",
  "*a_ ",
  "**a *a ",
  "_a__b ",
  "||a ",
  "a|| ",
  "~~a ",
  "a~~ ",
  "- ",
  "1. ",
  "* *",
  "***a ",
  "[ ] ",
  "http://a ",
  "<a@b ",
  "  ",
  "\t",
  "a\n",
  ">\n",
  "> a\n",
  "- a\n",
  "- [ ] a\n",
  "`\n",
  "\n\n",
  "# a\n",
  "|a|b\n",
  "|a|b|\n|-|-|\n",
  "&#0;",
  "(http://a",
  "http://-",
];

// Four times the length may take about four times the time; work that grows with the square takes sixteen.
describe("64 KiB take time in proportion to their length", () => {
  const size = 65_536;
  const texts = [
    ...parts.map((part) => [JSON.stringify(part), (length: number) => part.repeat(length / part.length)] as const),
    ["blanks", (length: number) => `a${" ".repeat(length)}b`] as const,
    ["blanks below a bar", (length: number) => `|\n${" ".repeat(length)}:`] as const,
    ["a rule with a fault", (length: number) => `${"- ".repeat(length / 2)}a`] as const,
    [
      "a wide table of many rows",
      (length: number) => `${"a|".repeat(length / 8)}\n${"-|".repeat(length / 8)}\n${"a\n".repeat(length / 4)}`,
    ] as const,
    ["openings, then closings", (length: number) => "||a ".repeat(length / 8) + "a~~ ".repeat(length / 8)] as const,
    [
      "openings, then other closings",
      (length: number) => `~~b ${"||a ".repeat(length / 8)}${"a~~ ".repeat(length / 8)}`,
    ] as const,
  ];

  it.each(texts)("%s", { retry: 2 }, (_, make) => {
    if (quickest(make(size), 1) < 150) return;
    const large = quickest(make(size), 3);
    const small = quickest(make(size / 4), 3);
    expect(large < 150 || large < 13 * small, `${small} ms and then ${large} ms`).toBe(true);
  });
});
