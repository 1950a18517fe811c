// SPDX-License-Identifier: Apache-2.0
//
// The last step of a build: says in dist/build.json what the build is, keeps the bundler's manifest out of what is
// served, and puts a compressed form beside every text file. Nothing depends on the time of building, so the same commit
// gives the same bytes.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const dist = path("../dist");
const { version } = JSON.parse(readFileSync(path("../package.json"), "utf8"));

mkdirSync(path("../.build"), { recursive: true });
renameSync(join(dist, ".vite", "manifest.json"), path("../.build/manifest.json"));
rmSync(join(dist, ".vite"), { recursive: true });

const build = { build: process.env.BOTHY_BUILD ?? "dev", version, api_version: "v1" };
writeFileSync(join(dist, "build.json"), `${JSON.stringify(build, null, 2)}\n`);

const text = /\.(?:html|js|css|svg|json)$/;
for (const name of readdirSync(dist, { recursive: true }).filter((each) => text.test(each))) {
  const content = readFileSync(join(dist, name));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(join(dist, `${name}.br`), brotliCompressSync(content, { params }));
  writeFileSync(join(dist, `${name}.gz`), gzipSync(content, { level: 9 }));
}
