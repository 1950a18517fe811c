// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Message, Principal } from "../src/api/types";
import { changed, trigger } from "./echo";
import { type Mock, type MockSession, problem } from "./mock-server";

/** A request with everything a handler needs. */
export interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly url: URL;
  readonly body: Record<string, unknown>;
  readonly session: MockSession | undefined;
  readonly key: string;
}

type Handler = (mock: Mock, call: Call, me: Principal, id: string) => void;

/** Finds the handler of a request. */
export async function route(mock: Mock, call: Call): Promise<void> {
  const { method } = call.request;
  for (const [verb, pattern, handler] of table) {
    const match = verb === method ? pattern.exec(call.path) : null;
    if (match === null) continue;
    handler(mock, call, call.session?.principal as Principal, match[1] ?? "");
    return;
  }
  problem(call.response, 404, "not_found");
}

function json(call: Call, status: number, value: unknown, seq?: number): void {
  call.response.writeHead(status, {
    "Content-Type": "application/json",
    ...(seq === undefined ? {} : { "Sync-Seq": String(seq) }),
  });
  call.response.end(JSON.stringify(value));
}

const list = (items: readonly unknown[]) => ({ items, next_cursor: null });
const branding = {
  product_name: "Bothy",
  accent: "spruce",
  login_message: "",
  support_url: null,
  imprint_url: null,
  privacy_url: null,
  logo: null,
  version: 1,
};
const limits = {
  max_json_body_bytes: 1e6,
  max_frame_bytes: 262_144,
  max_message_bytes: 40_000,
  max_attachments: 10,
  max_upload_bytes: null,
  page_size_default: 50,
  page_size_max: 200,
};
const manage = { level: "manage", capabilities: ["messages.moderate", "threads.create"] };
const write = { level: "trigger", capabilities: ["threads.create"] };

function grant(mock: Mock, call: Call, principal: Principal): void {
  const session: MockSession = {
    id: randomUUID(),
    principal,
    key: call.key,
    token: randomUUID(),
    refresh: randomUUID(),
    device: randomUUID(),
  };
  mock.sessions.set(session.id, session);
  json(call, 200, loginResult(session));
}

function loginResult(session: MockSession): object {
  const later = new Date(Date.now() + 3e9).toISOString();
  return {
    status: "ok",
    access_token: session.token,
    token_type: "DPoP",
    expires_in_ms: 600_000,
    refresh_token: session.refresh,
    refresh_expires_at: later,
    session: { id: session.id, expires_at: later, idle_expires_at: later },
    device: { id: session.device, name: "Chrome on Linux", state: "active" },
    principal: session.principal,
  };
}

const discovery: Handler = (mock, call) =>
  json(call, 200, {
    instance_id: mock.world.instanceId,
    name: "Fell & Hollow",
    product_name: "Bothy",
    server_version: "0.1.0",
    min_client_version: "0.1.0",
    api_base: `${mock.origin}/api/v1`,
    gateway_url: `${mock.origin.replace("http", "ws")}/api/v1/gateway`,
    jwks_url: `${mock.origin}/api/v1/jwks`,
    setup_complete: true,
    login_options: [{ driver: "local", label: "Password" }],
    password_policy: { min_length: 12, max_length: 256 },
    branding,
    limits,
    api_version: "1",
    maintenance: "off",
  });

const beginLogin: Handler = (mock, call) => {
  const id = randomUUID();
  const code = call.body.code as string | undefined;
  mock.flows.set(id, { driver: String(call.body.driver), ...(code === undefined ? {} : { code }) });
  const holder = code === undefined ? undefined : mock.world.principals.get(mock.world.codes.get(code) ?? "");
  if (code !== undefined && holder === undefined) return problem(call.response, 401, "unauthenticated", "login_failed");
  json(call, 201, {
    flow_id: id,
    expires_at: new Date(Date.now() + 6e5).toISOString(),
    ...(holder === undefined ? {} : { principal: holder, purpose: "invite", methods: ["password"] }),
  });
};

const completeLogin: Handler = (mock, call, _me, id) => {
  const flow = mock.flows.get(id);
  const { world } = mock;
  if (flow?.code !== undefined) {
    const holder = world.principals.get(world.codes.get(flow.code) ?? "");
    if (holder === undefined) return problem(call.response, 410, "flow_expired");
    world.codes.delete(flow.code);
    world.passwords.set(holder.id, (call.body.credential as { password: string }).password);
    return grant(mock, call, holder);
  }
  const person = [...world.principals.values()].find((one) => one.handle === call.body.login);
  if (person === undefined || world.passwords.get(person.id) !== call.body.password) {
    return problem(call.response, 401, "unauthenticated", "login_failed");
  }
  grant(mock, call, person);
};

const refresh: Handler = (mock, call) => {
  const session = [...mock.sessions.values()].find((one) => one.refresh === call.body.refresh_token);
  if (session === undefined) return problem(call.response, 401, "unauthenticated", "session_ended");
  session.token = randomUUID();
  session.refresh = randomUUID();
  json(call, 200, loginResult(session));
};

const snapshot: Handler = ({ world }, call, me) => {
  const access = me.owner === true ? manage : write;
  const threads = [...world.threads.values()];
  json(call, 200, {
    sync_epoch: world.epoch,
    head_seq: world.head,
    page_seq: world.head,
    permission_version: 1,
    next_cursor: null,
    sections: {
      instance: {
        instance: { id: world.instanceId, name: "Fell & Hollow", branding, limits, sync_epoch: world.epoch },
        maintenance: "off",
        web: { client_metrics: false, install_hint: false },
      },
      self: { ...me, email_verified: false, locale: "en", login: null, session: null },
      spaces: [...world.spaces.values()].map((space) => ({ space, access })),
      channels: [...world.channels.values()].map((channel) => ({ channel, access })),
      threads,
      read_states: threads.map((thread) => world.readState(me.id, thread.id)),
      principals: [...world.principals.values()],
      agents: [...world.agents.values()],
      runs: [...world.runs.values()].filter((run) => run.ended_at === null),
    },
  });
};

const listMessages: Handler = ({ world }, call, _me, id) => {
  const all = world.messages.get(id);
  const thread = world.threads.get(id);
  if (all === undefined || thread === undefined) return problem(call.response, 404, "not_found");
  const query = call.url.searchParams;
  const limit = Number(query.get("limit") ?? 50);
  const before = query.get("before");
  const after = query.get("after");
  const around = query.get("around");
  let from = Math.max(0, all.length - limit);
  if (before !== null) from = Math.max(0, Number(before) - 1 - limit);
  if (after !== null) from = Number(after);
  if (around !== null) {
    const at = all.find((message) => message.id === around)?.thread_seq ?? Number(around);
    from = Math.max(0, at - Math.floor(limit / 2));
  }
  const to = before === null ? Math.min(all.length, from + limit) : Number(before) - 1;
  const items = all.slice(from, to);
  json(
    call,
    200,
    {
      items,
      next_cursor: null,
      has_before: from > 0,
      has_after: to < all.length,
      counters: thread.counters,
      referenced: [],
    },
    world.head,
  );
};

const createMessage: Handler = (mock, call, me, id) => {
  const { world } = mock;
  const known = world.messages.get(id)?.find((message) => message.client_msg_id === call.body.client_msg_id);
  if (known !== undefined) return json(call, 200, { ...known, warnings: [] }, world.head);
  const message = write1(mock, id, me, call.body);
  json(call, 201, { ...(world.find(message.id) ?? message), warnings: [] }, world.head);
};

function write1(mock: Mock, threadId: string, me: Principal, body: Record<string, unknown>): Message {
  const { world } = mock;
  const message = world.post(threadId, me, String(body.content), { client_msg_id: String(body.client_msg_id) });
  for (const mention of message.mentions) {
    const agent = world.principals.get(mention.id ?? "");
    if (agent?.kind === "agent") trigger(world, message, agent);
  }
  return message;
}

const updateMessage: Handler = ({ world }, call, _me, id) => {
  const message = world.find(id);
  if (message === undefined) return problem(call.response, 404, "not_found");
  if (call.request.headers["if-match"] !== `"${message.version}"`)
    return problem(call.response, 412, "version_conflict");
  const edited = {
    ...message,
    content: String(call.body.content),
    version: message.version + 1,
    revision: message.revision + 1,
    edited_at: new Date().toISOString(),
  };
  json(call, 200, { ...edited, warnings: [] }, world.replace(edited, "message.updated", "edit"));
};

const deleteMessage: Handler = ({ world }, call, me, id) => {
  const message = world.find(id);
  if (message === undefined) return problem(call.response, 404, "not_found");
  const deleted = { at: new Date().toISOString(), by: me.id, kind: "author" as const };
  world.replace({ ...message, content: "", mentions: [], version: message.version + 1, deleted }, "message.deleted");
  call.response.writeHead(204).end();
};

const createThread: Handler = (mock, call, me, id) => {
  const { world } = mock;
  const channel = world.channels.get(id);
  const parent = world.find(String(call.body.parent_message_id));
  if (channel === undefined || parent === undefined) return problem(call.response, 404, "not_found");
  const thread = world.thread(channel, "side", randomUUID(), parent.id);
  const message = write1(mock, thread.id, me, call.body.message as Record<string, unknown>);
  const latest = world.find(parent.id) ?? parent;
  world.replace({ ...latest, version: latest.version + 1, started_thread_id: thread.id }, "message.updated", "thread");
  json(call, 201, { thread, message: { ...message, warnings: [] }, created: true });
};

const createUser: Handler = (mock, call) => {
  const { world } = mock;
  const handle = String(call.body.handle);
  if ([...world.principals.values()].some((one) => one.handle === handle)) {
    return problem(call.response, 409, "conflict", "handle_taken");
  }
  const person = world.person(handle, String(call.body.display_name));
  const code = "ABCDEF-GHJKMN-PQRSTV-WXYZ12";
  world.codes.set(code, person.id);
  json(call, 201, {
    ...person,
    enrollment: {
      code,
      url: `${mock.origin}/#/enroll?code=${code}`,
      expires_at: new Date(Date.now() + 2.6e8).toISOString(),
    },
  });
};

const createAgent: Handler = ({ world }, call) => {
  const agent = world.agent(String(call.body.handle), String(call.body.display_name));
  if (agent.runtime !== undefined) agent.runtime.presence_state = "unknown";
  json(call, 201, {
    ...agent,
    token: { id: randomUUID(), secret: "bothy_agent_3qXyZ81mKp0sWvTnRbLcJdHgFaYeUoIi5M2N7B4C6D9E" },
  });
};

const setOperator: Handler = ({ world }, call, _me, id) => {
  const channel = world.channels.get(id);
  if (channel === undefined) return problem(call.response, 404, "not_found");
  const agent = (call.body.agent_id as string | undefined) ?? null;
  const mode = agent === null ? ("none" as const) : ("own" as const);
  const next = { ...channel, operator: { mode, agent_id: agent }, version: channel.version + 1 };
  world.channels.set(id, next);
  json(call, 200, next, world.append("channel.updated", next));
};

const patchBehavior: Handler = ({ world }, call, _me, id) => {
  const channel = world.channels.get(id);
  if (channel === undefined) return problem(call.response, 404, "not_found");
  const next = { ...channel, trigger_rule: call.body.trigger_rule as "all", version: channel.version + 1 };
  world.channels.set(id, next);
  world.append("channel.updated", next);
  json(call, 200, { channel_id: id, trigger_rule: next.trigger_rule, version: 2 });
};

const sessionsOf: Handler = (mock, call, me) => {
  const items = [...mock.sessions.values()]
    .filter((one) => one.principal.id === me.id)
    .map((one) => ({
      id: one.id,
      kind: "login",
      device: { id: one.device, name: "Chrome on Linux", state: "active" },
      driver: "local",
      created_at: new Date().toISOString(),
      last_seen_at: new Date(Date.now() - 9e5).toISOString(),
      current: one.id === call.session?.id,
      network: "current",
    }));
  json(call, 200, list(items));
};

const createGrant: Handler = ({ world }, call) => {
  const made = {
    ...(call.body as object),
    id: randomUUID(),
    note: "",
    created_by: null,
    created_at: "",
    capabilities: [],
  };
  const replaced = call.body.replaces;
  if (typeof replaced === "string") world.grants.delete(replaced);
  world.grants.set(made.id, made as never);
  json(call, 201, { ...made, permission_version: 2 });
};

const table: readonly (readonly [string, RegExp, Handler])[] = [
  ["GET", /^\/discovery$/, discovery],
  ["POST", /^\/auth\/login$/, beginLogin],
  ["POST", /^\/auth\/login\/([^/]+)\/complete$/, completeLogin],
  ["POST", /^\/auth\/token$/, refresh],
  [
    "POST",
    /^\/auth\/logout$/,
    (mock, call) => {
      mock.sessions.delete(call.session?.id ?? "");
      call.response.writeHead(204).end();
    },
  ],
  ["GET", /^\/sync\/snapshot$/, snapshot],
  ["GET", /^\/threads\/([^/]+)\/messages$/, listMessages],
  ["POST", /^\/threads\/([^/]+)\/messages$/, createMessage],
  [
    "GET",
    /^\/threads\/([^/]+)$/,
    ({ world }, call, _me, id) => {
      const thread = world.threads.get(id);
      return thread === undefined ? problem(call.response, 404, "not_found") : json(call, 200, thread);
    },
  ],
  [
    "PUT",
    /^\/threads\/([^/]+)\/read-state$/,
    ({ world }, call, me, id) => json(call, 200, world.read(me.id, id, Number(call.body.last_read_thread_seq))),
  ],
  [
    "POST",
    /^\/threads\/([^/]+)\/read-state\/unread$/,
    ({ world }, call, me, id) => json(call, 200, world.read(me.id, id, 0, Number(call.body.from_thread_seq))),
  ],
  ["GET", /^\/messages\/([^/]+)$/, ({ world }, call, _me, id) => json(call, 200, world.find(id), world.head)],
  ["PATCH", /^\/messages\/([^/]+)$/, updateMessage],
  ["DELETE", /^\/messages\/([^/]+)$/, deleteMessage],
  ["POST", /^\/channels\/([^/]+)\/threads$/, createThread],
  ["POST", /^\/spaces$/, ({ world }, call) => json(call, 201, world.space(String(call.body.name)))],
  [
    "POST",
    /^\/spaces\/([^/]+)\/channels$/,
    ({ world }, call, _me, id) => {
      const space = world.spaces.get(id);
      if (space === undefined) return problem(call.response, 404, "not_found");
      json(call, 201, world.channel(space, String(call.body.name), String(call.body.topic ?? "")));
    },
  ],
  ["PUT", /^\/channels\/([^/]+)\/operator$/, setOperator],
  [
    "GET",
    /^\/channels\/([^/]+)\/behavior$/,
    ({ world }, call, _me, id) =>
      json(call, 200, { channel_id: id, trigger_rule: world.channels.get(id)?.trigger_rule, version: 1 }),
  ],
  ["PATCH", /^\/channels\/([^/]+)\/behavior$/, patchBehavior],
  [
    "GET",
    /^\/groups$/,
    ({ world }, call) => json(call, 200, list([{ id: world.everyone, kind: "everyone", name: "Everyone" }])),
  ],
  ["GET", /^\/grants$/, ({ world }, call) => json(call, 200, list([...world.grants.values()]))],
  ["POST", /^\/grants$/, createGrant],
  [
    "DELETE",
    /^\/grants\/([^/]+)$/,
    ({ world }, call, _me, id) => {
      world.grants.delete(id);
      call.response.writeHead(204).end();
    },
  ],
  ["POST", /^\/users$/, createUser],
  ["POST", /^\/agents$/, createAgent],
  ["GET", /^\/runs\/([^/]+)$/, ({ world }, call, _me, id) => json(call, 200, world.runs.get(id), world.head)],
  [
    "POST",
    /^\/runs\/([^/]+)\/cancel$/,
    ({ world }, call, me, id) => {
      const run = world.runs.get(id);
      if (run === undefined) return problem(call.response, 404, "not_found");
      Object.assign(run, { cancel_requested_at: new Date().toISOString(), cancel_requested_by: me.id });
      changed(world, run, run.state);
      json(call, 200, run, world.head);
    },
  ],
  ["GET", /^\/me\/sessions$/, sessionsOf],
  [
    "DELETE",
    /^\/sessions\/([^/]+)$/,
    (mock, call, _me, id) => {
      mock.sessions.delete(id);
      call.response.writeHead(204).end();
    },
  ],
];
