// SPDX-License-Identifier: Apache-2.0
//
// A server for developing the client without the server. It follows docs/api and keeps everything in memory; it is no
// part of what is shipped. `npm run mock` serves dist and the API on http://localhost:8099.
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { type WebSocket, WebSocketServer } from "ws";
import type { Principal } from "../src/api/types";
import { openGateway } from "./gateway";
import { checkProof } from "./proof";
import { route } from "./routes";
import { seed } from "./seed";
import { World } from "./world";

/** A signed-in session of the mock. */
export interface MockSession {
  readonly id: string;
  readonly principal: Principal;
  readonly key: string;
  token: string;
  refresh: string;
  readonly device: string;
}

/** What handlers share. */
export interface Mock {
  readonly world: World;
  readonly origin: string;
  readonly sessions: Map<string, MockSession>;
  readonly flows: Map<string, { driver: string; code?: string }>;
  nonce: string;
}

const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
  ".json": "application/json",
};

function policy(host: string): string {
  return (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; " +
    `font-src 'self'; connect-src 'self' ws://${host}; worker-src 'self'; manifest-src 'self'; form-action 'self'; ` +
    "frame-ancestors 'none'; base-uri 'none'; object-src 'none'; require-trusted-types-for 'script'; trusted-types bothy"
  );
}

/** Starts the server; resolves when it listens. */
export async function start(port: number): Promise<{ close: () => Promise<void>; mock: Mock }> {
  const origin = `http://localhost:${port}`;
  const world = new World();
  seed(world);
  const mock: Mock = { world, origin, sessions: new Map(), flows: new Map(), nonce: randomUUID() };
  const server = createServer((request, response) => {
    handle(mock, request, response).catch((cause: unknown) => {
      console.error(cause);
      problem(response, 500, "internal_error");
    });
  });
  const sockets = new WebSocketServer({ server, path: "/api/v1/gateway", handleProtocols: () => "bothy.v1" });
  openGateway(mock, sockets);
  await new Promise<void>((resolve) => server.listen(port, "localhost", resolve));
  console.log(`mock on ${origin}`);
  return {
    mock,
    close: async () => {
      for (const client of sockets.clients as Set<WebSocket>) client.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Answers with a problem document. */
export function problem(response: ServerResponse, status: number, code: string, reason?: string): void {
  response.writeHead(status, { "Content-Type": "application/problem+json" });
  response.end(
    JSON.stringify({ type: `urn:${code}`, title: code, status, code, correlation_id: randomUUID(), reason }),
  );
}

async function handle(mock: Mock, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", mock.origin);
  if (!url.pathname.startsWith("/api/")) {
    serveStatic(url.pathname, request.headers.host ?? "", response);
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const path = url.pathname.slice("/api/v1".length);
  if (path === "/discovery") {
    await route(mock, { request, response, path, url, body: {}, session: undefined, key: "" });
    return;
  }
  const token = /^DPoP (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  const proved = await checkProof(request.headers.dpop as string | undefined, {
    method: request.method ?? "",
    url: mock.origin + url.pathname,
    token,
    nonce: mock.nonce,
  });
  response.setHeader("DPoP-Nonce", mock.nonce);
  if ("fault" in proved) {
    problem(response, 401, proved.fault);
    return;
  }
  const session = [...mock.sessions.values()].find((one) => one.token === token);
  const open = path.startsWith("/auth/login") || path === "/auth/token";
  if (!open && (session === undefined || session.key !== proved.key)) {
    problem(response, 401, token === undefined ? "unauthenticated" : "token_expired");
    return;
  }
  const body: unknown = text === "" ? {} : JSON.parse(text);
  await route(mock, { request, response, path, url, body: body as Record<string, unknown>, session, key: proved.key });
}

function serveStatic(path: string, host: string, response: ServerResponse): void {
  const dist = join(import.meta.dirname ?? process.cwd(), "..", "dist");
  const asset = path.startsWith("/assets/");
  const file = asset ? join(dist, path) : join(dist, "index.html");
  if (path.includes("..") || !existsSync(file)) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    "Content-Type": types[extname(file)] ?? "application/octet-stream",
    "Cache-Control": asset ? "public, max-age=31536000, immutable" : "no-cache",
    "Content-Security-Policy": policy(host),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
  });
  response.end(readFileSync(file));
}
