// SPDX-License-Identifier: Apache-2.0
//
// The engine's ports on a real browser.
import type { Clock, Frame, OpenSocket } from "./ports";

/** Wall clock and timers. */
export const browserClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  after(milliseconds, call) {
    const timer = setTimeout(call, milliseconds);
    return () => clearTimeout(timer);
  },
};

/** Opens WebSockets to the gateway. A frame that is no JSON object closes the connection. */
export function openWebSocket(url: string): OpenSocket {
  return ({ onFrame, onClose }) => {
    const socket = new WebSocket(url, "bothy.v1");
    socket.onmessage = (event: MessageEvent<unknown>) => {
      const frame = parse(event.data);
      if (frame === undefined) socket.close(1002, "bad frame");
      else onFrame(frame);
    };
    socket.onclose = (event) => onClose(event.code, event.reason);
    return {
      send(frame) {
        if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
      },
      close: () => socket.close(1000),
    };
  };
}

function parse(data: unknown): Frame | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const frame: unknown = JSON.parse(data);
    return typeof frame === "object" && frame !== null && "op" in frame ? (frame as Frame) : undefined;
  } catch {
    return undefined;
  }
}

/** A new identifier that sorts by time, as the server makes them. */
export function newId(now: number = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const time = BigInt(now);
  for (let at = 0; at < 6; at += 1) bytes[at] = Number((time >> BigInt(40 - at * 8)) & 0xffn);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
