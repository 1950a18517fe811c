// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // The test runner uses BASE_URL for a purpose of its own, so the address travels under another name.
    env: { SERVER_URL: process.env.BASE_URL ?? "http://localhost:8080" },
    include: ["e2e/**/*.e2e.ts"],
    environment: "node",
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    sequence: { concurrent: false },
    bail: 1,
  },
});
