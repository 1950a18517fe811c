// SPDX-License-Identifier: Apache-2.0
//
// Turns the token sources of this folder into what the products read:
//   apps/web/src/ui/tokens.css         custom properties for both themes
//   apps/web/src/ui/tokens.ts          the names and the numbers that script needs
//   design/build/tokens.resolved.json  the same values as data
//
// `node design/tokens/build.mjs` writes, `--check` fails when a written file is out of date.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const read = (name) => JSON.parse(readFileSync(join(here, name), "utf8"));
const color = read("color.json");
const category = read("category.json");
const scale = read("scale.json");

const rem = (px) => `${Number((px / 16).toFixed(4))}rem`;
const banner = "Generated from design/tokens by design/tokens/build.mjs. Do not edit.";

/** Custom properties whose value depends on the theme. */
function themeLines(theme) {
  const lines = Object.entries(color).map(([name, value]) => `--${name}: ${value[theme]};`);
  for (const [name, value] of Object.entries(category)) lines.push(`--cat-${name}: ${value[theme]};`);
  lines.push(`--on-category: ${theme === "light" ? "#FFFFFF" : color.paper.dark};`);
  lines.push(`--shadow: ${scale.shadow[theme]};`);
  lines.push(`color-scheme: ${theme};`);
  return lines;
}

/** Custom properties that are the same in every theme. Type is in rem, so text size settings of the browser work. */
function fixedLines() {
  const lines = [];
  for (const [name, { size, line }] of Object.entries(scale.type)) {
    lines.push(`--text-${name}: ${rem(size)};`, `--line-${name}: ${rem(line)};`);
  }
  for (const [name, value] of Object.entries(scale.weight)) lines.push(`--weight-${name}: ${value};`);
  for (const value of scale.space) lines.push(`--space-${value}: ${rem(value)};`);
  for (const [name, value] of Object.entries(scale.radius)) lines.push(`--radius-${name}: ${value}px;`);
  for (const [name, value] of Object.entries(scale.rule)) lines.push(`--rule-${name}: ${value}px;`);
  for (const name of ["press", "appear", "panel", "breath"]) lines.push(`--motion-${name}: ${scale.motion[name]}ms;`);
  lines.push(`--ease: ${scale.motion.ease};`, `--measure: ${scale.measure};`);
  for (const [name, value] of Object.entries(scale.layer)) lines.push(`--layer-${name}: ${value};`);
  for (const [name, value] of Object.entries(scale.width)) lines.push(`--width-${name}: ${value}px;`);
  return lines;
}

const block = (selector, lines, indent = "  ") =>
  `${indent}${selector} {\n${lines.map((line) => `${indent}  ${line}`).join("\n")}\n${indent}}\n`;

const contrast = ["--ink-soft: var(--ink);", "--ink-faint: var(--ink);", "--rule: var(--rule-strong);"];
const still = ["press", "appear", "panel", "breath"].map((name) => `--motion-${name}: 0ms;`);

const css = [
  "/* SPDX-License-Identifier: Apache-2.0 */",
  `/* ${banner} */`,
  "@layer tokens {",
  block(":root", fixedLines()),
  block(":root", themeLines("light")),
  "  @media (prefers-color-scheme: dark) {",
  block(':root:not([data-theme="light"])', themeLines("dark"), "    ").trimEnd(),
  "  }",
  block(':root[data-theme="dark"]', themeLines("dark")),
  "  @media (prefers-contrast: more) {",
  block(":root:root", contrast, "    ").trimEnd(),
  "  }",
  "  @media (prefers-reduced-motion: reduce) {",
  block(":root", still, "    ").trimEnd(),
  "  }",
  "}",
  "",
].join("\n");

const list = (name, values) =>
  `export const ${name} = [\n${values.map((value) => `  ${JSON.stringify(value)},\n`).join("")}] as const;\n`;

const ts = [
  "// SPDX-License-Identifier: Apache-2.0",
  `// ${banner}`,
  "",
  "/** Category colours: the custom property of one is `--cat-<name>`. */",
  list("categories", Object.keys(category)),
  "/** Names of the theme-dependent colours, without the leading dashes. */",
  list("colors", Object.keys(color)),
  "/** Widths in CSS pixels at which the layout changes. */",
  `export const breakpoint = { narrow: ${scale.breakpoint.narrow}, wide: ${scale.breakpoint.wide} } as const;`,
  "",
].join("\n");

const resolved = `${JSON.stringify({ color, category, scale }, null, 2)}\n`;

const outputs = [
  [join(root, "apps", "web", "src", "ui", "tokens.css"), css],
  [join(root, "apps", "web", "src", "ui", "tokens.ts"), ts],
  [join(root, "design", "build", "tokens.resolved.json"), resolved],
];

let stale = 0;
for (const [path, text] of outputs) {
  if (process.argv.includes("--check")) {
    let current = "";
    try {
      current = readFileSync(path, "utf8");
    } catch {
      // A missing file is out of date like a changed one.
    }
    if (current !== text) {
      stale += 1;
      console.error(`out of date: ${path}`);
    }
    continue;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
process.exit(stale > 0 ? 1 : 0);
