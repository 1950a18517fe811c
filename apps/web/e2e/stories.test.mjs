// SPDX-License-Identifier: Apache-2.0
// @ts-check
//
// All stories, one after the other on one server: two browsers at a time are enough for a small machine.
import { after } from "node:test";
import { server } from "./server.mjs";
import "./thread.mjs";
import "./owner.mjs";
import "./passkey.mjs";
import "./settings.mjs";
import "./devices.mjs";
import "./console.mjs";

after(async () => (await server()).stop());
