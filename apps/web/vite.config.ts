// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const api = process.env.BOTHY_API ?? "http://localhost:8080";

const page = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Entry documents: the chat at `/` and the console at `/console/`. Both share chunks. */
const inputs = { main: page("./index.html"), console: page("./console/index.html") };

/**
 * Says the order of the cascade layers at the top of every style sheet. Which chunk a browser reads first follows from
 * how the bundler cuts, and the first one to name a layer would decide.
 */
const layerOrder: Plugin = {
  name: "layer-order",
  enforce: "pre",
  transform(code, id) {
    if (!/\/src\/.*\.css$/.test(id)) return null;
    return { code: `@layer tokens, base, components, features;\n${code}`, map: null };
  },
};

export default defineConfig({
  plugins: [layerOrder, react()],
  define: { __BUILD__: JSON.stringify(process.env.BOTHY_BUILD ?? "dev") },
  build: {
    target: "es2023",
    // A data: address would need a wider img-src and font-src than the policy of the page grants.
    assetsInlineLimit: 0,
    // The polyfill is an inline script in effect; browsers of the supported range do not need it.
    modulePreload: { polyfill: false },
    manifest: true,
    sourcemap: false,
    rolldownOptions: { input: inputs },
  },
  server: {
    proxy: {
      "/api": { target: api, ws: true },
      "/.well-known": { target: api },
    },
  },
});
