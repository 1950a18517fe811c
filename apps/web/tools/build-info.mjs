// SPDX-License-Identifier: Apache-2.0
//
// Writes dist/build.json: what a server needs to know of a build that replaces the embedded one. Nothing in it depends
// on the time of building, so the same commit gives the same bytes.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const { version } = JSON.parse(readFileSync(path("../package.json"), "utf8"));
const build = process.env.BOTHY_BUILD ?? "dev";
writeFileSync(path("../dist/build.json"), `${JSON.stringify({ build, version, api_version: "1" }, null, 2)}\n`);
