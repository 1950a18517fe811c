// SPDX-License-Identifier: Apache-2.0
//
// Runs the development server of dev/mock-server.ts, which the bundler translates on the fly.
import { createServer } from "vite";

const vite = await createServer({
  server: { middlewareMode: true, ws: false, hmr: false },
  appType: "custom",
  logLevel: "error",
});
const { start } = await vite.ssrLoadModule("/dev/mock-server.ts");
await start(Number(process.env.PORT ?? 8099));
