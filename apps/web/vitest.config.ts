// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

export default defineConfig({
  define: { __BUILD__: JSON.stringify("test") },
  test: {
    include: ["src/**/*.test.{ts,tsx}", "test/**/*.test.ts"],
    environment: "node",
    css: false,
    pool: "threads",
    maxWorkers: 2,
  },
});
