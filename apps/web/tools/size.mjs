// SPDX-License-Identifier: Apache-2.0
//
// Holds the first load of the chat route to its budget: compresses what the manifest says the page loads before the
// first message can be read, and fails when a part is above its limit. Sizes are KB of 1,024 bytes after Brotli 11.
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

const first = [...closure("index.html")].map((key) => manifest[key]);
const lazy = Object.values(manifest).filter((chunk) => chunk.isDynamicEntry);
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
  "overlays, JavaScript": [sum(lazy.map((chunk) => chunk.file)), budget.overlays],
};

let failed = false;
for (const [name, [size, limit]] of Object.entries(parts)) {
  const over = size > limit || size === 0;
  failed ||= over;
  console.log(`${over ? "OVER" : "ok  "} ${name.padEnd(24)} ${size.toFixed(1).padStart(7)} KB of ${limit}`);
}
process.exit(failed ? 1 : 0);
