// SPDX-License-Identifier: Apache-2.0
// @ts-check
//
// The server the stories run against: one that is already there (BASE_URL), or one of our own in an empty folder
// (BOTHY_BINARY), with its demo team and its demo agent.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * @typedef {object} Server
 * @property {string} address
 * @property {readonly {handle: string, password: string}[]} people two members of one channel
 * @property {() => Promise<void>} stop
 */

const patience = 60_000;

/** @type {Promise<Server> | undefined} */
let shared;

/** Gives a server that answers; all stories share one. @returns {Promise<Server>} */
export function server() {
  shared ??= find();
  return shared;
}

/** @returns {Promise<Server>} */
async function find() {
  const { BASE_URL: address, BOTHY_BINARY: binary, PASSWORD: password = "correct horse battery" } = process.env;
  if (address !== undefined) {
    const handles = (process.env.PEOPLE ?? "ana,ben").split(",");
    return { address, people: handles.map((handle) => ({ handle, password })), stop: async () => {} };
  }
  if (binary === undefined) throw new Error("set BASE_URL to a running server, or BOTHY_BINARY to the program");
  return start(binary);
}

/** @param {string} binary @returns {Promise<Server>} */
async function start(binary) {
  const data = await mkdtemp(join(tmpdir(), "bothy-story-"));
  const listen = `localhost:${await freePort()}`;
  const child = spawn(binary, ["dev", "up", "--data", join(data, "instance"), "--listen", listen], { stdio: "pipe" });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (printed += text));
  const stop = async () => {
    if (child.exitCode === null) {
      child.kill("SIGINT");
      await once(child, "exit");
    }
    await rm(data, { recursive: true, force: true });
  };
  for (const end = Date.now() + patience; Date.now() < end && child.exitCode === null; await pause(100)) {
    const people = /^sign in as\s+(\S+) or (\S+)$/m.exec(printed);
    const password = /^password\s+(\S+)$/m.exec(printed)?.[1];
    if (people === null || password === undefined) continue;
    const handles = people.slice(1, 3);
    return { address: `http://${listen}`, people: handles.map((handle) => ({ handle, password })), stop };
  }
  await stop();
  throw new Error(`the server did not come up:\n${printed}`);
}

/** @returns {Promise<number>} */
async function freePort() {
  const probe = createServer().listen(0, "localhost");
  await once(probe, "listening");
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** @param {number} milliseconds */
function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
