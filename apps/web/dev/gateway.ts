// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import type { WebSocket, WebSocketServer } from "ws";
import type { Mock, MockSession } from "./mock-server";
import { checkProof } from "./proof";

interface Connection {
  readonly socket: WebSocket;
  session: MockSession | undefined;
  focus: readonly string[];
}

interface Frame {
  readonly op: string;
  readonly d: Record<string, unknown>;
}

/** The WebSocket side of the mock. */
export function openGateway(mock: Mock, sockets: WebSocketServer): void {
  const connections = new Set<Connection>();
  const { world } = mock;
  const send = (connection: Connection, op: string, d: unknown) => connection.socket.send(JSON.stringify({ op, d }));

  world.listener = ({ envelope, only }) => {
    for (const connection of connections) {
      if (connection.session === undefined) continue;
      if (only === undefined || only === connection.session.principal.id) send(connection, "dispatch", envelope);
    }
  };
  world.ephemeral = (event, thread, except) => {
    for (const connection of connections) {
      if (connection.session === undefined || connection.session.principal.id === except) continue;
      if (thread === undefined || connection.focus.includes(thread)) send(connection, "ephemeral", event);
    }
  };

  sockets.on("connection", (socket) => {
    const connection: Connection = { socket, session: undefined, focus: [] };
    connections.add(connection);
    socket.on("close", () => connections.delete(connection));
    socket.on("message", (data) => void onFrame(connection, JSON.parse(String(data)) as Frame));
    send(connection, "hello", {
      protocol_version: 1,
      server_version: "0.1.0",
      instance_id: world.instanceId,
      sync_epoch: world.epoch,
      heartbeat_interval_ms: 20_000,
      identify_timeout_ms: 10_000,
      max_frame_bytes: 262_144,
      dpop_nonce: mock.nonce,
      server_time: new Date().toISOString(),
    });
  });

  async function onFrame(connection: Connection, { op, d }: Frame): Promise<void> {
    switch (op) {
      case "identify":
        await identify(connection, d);
        break;
      case "heartbeat":
        send(connection, "heartbeat_ack", {
          server_time: new Date().toISOString(),
          interval_ms: 20_000,
          cursor: world.head,
          credentials_expire_at: null,
        });
        break;
      case "focus":
        connection.focus = d.thread_ids as string[];
        break;
      case "typing.start":
      case "typing.stop": {
        const until = Date.now() + (op === "typing.start" ? 6_000 : 0);
        const principal_id = connection.session?.principal.id ?? "";
        const data = { thread_id: d.thread_id, principal_id, expires_at: new Date(until).toISOString() };
        const event = { event_id: randomUUID(), type: "typing.started", occurred_at: new Date().toISOString(), data };
        world.ephemeral(event, String(d.thread_id), principal_id);
        break;
      }
      case "reauth":
        break;
      default:
        connection.socket.close(4002, "unknown_op");
    }
  }

  async function identify(connection: Connection, d: Record<string, unknown>): Promise<void> {
    const token = String(d.token);
    const session = [...mock.sessions.values()].find((one) => one.token === token);
    const proved = await checkProof(String(d.dpop), {
      method: "GET",
      url: `${mock.origin}/api/v1/gateway`,
      token,
      nonce: mock.nonce,
    });
    if (session === undefined || "fault" in proved || proved.key !== session.key) {
      connection.socket.close(4004, "authentication_failed");
      return;
    }
    for (const other of connections) {
      if (other !== connection && other.session?.device === session.device)
        other.socket.close(4017, "device_elsewhere");
    }
    connection.session = session;
    connection.focus = (d.focus as { thread_ids: string[] } | undefined)?.thread_ids ?? [];
    const cursor = d.cursor as number | undefined;
    const { head } = world;
    const missed = cursor !== undefined && cursor < head;
    send(connection, "ready", {
      session_id: randomUUID(),
      principal: session.principal,
      device_id: session.device,
      sync_epoch: world.epoch,
      head_seq: head,
      cursor: cursor ?? head,
      catchup: missed ? { from_seq: cursor + 1, to_seq: head } : null,
      permission_version: 1,
      credentials_expire_at: null,
      resume_window_ms: 60_000,
      limits: { focus_threads: 4, op_rate: 10, op_burst: 20 },
    });
    if (missed) {
      const events = world.log
        .filter(({ only }) => only === undefined || only === session.principal.id)
        .map(({ envelope }) => envelope)
        .filter((event) => (event.seq as number) > cursor);
      send(connection, "catchup.page", { events, from_seq: cursor + 1, through_seq: head, to_seq: head });
    }
    if (cursor !== undefined) send(connection, "catchup.complete", { cursor: head });
  }
}
