// SPDX-License-Identifier: Apache-2.0
//
// Holds what a visit loads to its budget: compresses what the manifest says the chat loads before the first message can
// be read, what opens over it, the settings, and the console with its pages, and fails when a part is above its limit.
// Sizes are KB of 1,024 bytes after Brotli 11.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

const dist = process.argv[2] ?? fileURLToPath(new URL("../dist", import.meta.url));
const budget = JSON.parse(readFileSync(fileURLToPath(new URL("size-budget.json", import.meta.url)), "utf8"));
const manifest = JSON.parse(readFileSync(fileURLToPath(new URL("../.build/manifest.json", import.meta.url)), "utf8"));

const brotli = (file) =>
  brotliCompressSync(readFileSync(join(dist, file)), { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length /
  1024;

/** Chunks an entry loads at once, without those behind a dynamic import. */
function closure(key, seen = new Set()) {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) closure(next, seen);
  return seen;
}

const chat = closure("index.html");
const first = [...chat].map((key) => manifest[key]);
/** Scripts that come on top of what is loaded already. */
const beyond = (key, loaded) =>
  [...closure(key)].filter((each) => !loaded.has(each)).map((each) => manifest[each].file);
const consoleStart = closure("console/index.html");
const pages = [...consoleStart].flatMap((key) => manifest[key].dynamicImports ?? []);
const sum = (files) => files.reduce((total, file) => total + brotli(file), 0);
const unique = (lists) => [...new Set(lists.flat())];
// Of the fonts only the Latin text face is needed before the first message; others load by what the text holds.
const fonts = unique(first.map((chunk) => chunk.assets ?? [])).filter((file) =>
  budget.firstFonts.some((name) => file.includes(name)),
);

const parts = {
  "first load, JavaScript": [sum(first.map((chunk) => chunk.file)), budget.firstScript],
  "first load, CSS": [sum(unique(first.map((chunk) => chunk.css ?? []))), budget.firstStyle],
  "first load, fonts": [
    fonts.reduce((total, file) => total + readFileSync(join(dist, file)).length / 1024, 0),
    budget.firstFont,
  ],
  "overlays, JavaScript": [sum(beyond("src/app/Overlays.tsx", chat)), budget.overlays],
  "settings, JavaScript": [sum(beyond("src/features/settings/Settings.tsx", chat)), budget.settings],
  "console, JavaScript": [sum([...consoleStart].map((key) => manifest[key].file)), budget.console],
  "all pages of the console": [sum(unique(pages.map((key) => beyond(key, consoleStart)))), budget.consolePages],
};

let failed = false;
for (const [name, [size, limit]] of Object.entries(parts)) {
  const over = size > limit || size === 0;
  failed ||= over;
  console.log(`${over ? "OVER" : "ok  "} ${name.padEnd(26)} ${size.toFixed(1).padStart(7)} KB of ${limit}`);
}
process.exit(failed ? 1 : 0);
