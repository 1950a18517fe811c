// SPDX-License-Identifier: Apache-2.0
//
// The requests of the engine, on the typed client.
import type { EngineApi } from "../engine/ports";
import type { SnapshotPage } from "../store/snapshot";
import { type ApiClient, body, stamped } from "./client";
import type { Snapshot } from "./types";

/** Sections the client keeps; the others need features it does not have yet. */
const sections = ["instance", "self", "spaces", "channels", "threads", "read_states", "principals", "agents", "runs"];

/** Requests of the engine with the session of the person. */
export function engineApi(client: ApiClient): EngineApi {
  return {
    async snapshot({ cursor, targets }) {
      const query = {
        ...(cursor === undefined ? { sections } : { cursor }),
        ...(targets === undefined || cursor !== undefined ? {} : { targets: [...targets] }),
      };
      return snapshotPage(body(await client.GET("/sync/snapshot", { params: { query } })));
    },
    async messages(threadId, position, limit) {
      const { around, ...rest } = position;
      const query = { ...rest, limit, ...(around === undefined ? {} : { around: String(around) }) };
      return stamped(
        await client.GET("/threads/{thread_id}/messages", { params: { path: { thread_id: threadId }, query } }),
      );
    },
    async message(messageId) {
      return stamped(await client.GET("/messages/{message_id}", { params: { path: { message_id: messageId } } }));
    },
    async run(runId) {
      return stamped(await client.GET("/runs/{run_id}", { params: { path: { run_id: runId } } }));
    },
    async createMessage(threadId, key, content) {
      return stamped(
        await client.POST("/threads/{thread_id}/messages", {
          params: { path: { thread_id: threadId } },
          body: { client_msg_id: key, content },
        }),
      );
    },
    async updateMessage(messageId, key, version, content) {
      return stamped(
        await client.PATCH("/messages/{message_id}", {
          params: {
            path: { message_id: messageId },
            header: { "If-Match": `"${version}"`, "Idempotency-Key": key },
          },
          body: { content },
        }),
      );
    },
    async deleteMessage(messageId, key) {
      await client.DELETE("/messages/{message_id}", {
        params: { path: { message_id: messageId }, header: { "Idempotency-Key": key } },
      });
    },
    async updateReadState(threadId, lastRead, clearManual) {
      await client.PUT("/threads/{thread_id}/read-state", {
        params: { path: { thread_id: threadId } },
        body: { last_read_thread_seq: lastRead, ...(clearManual ? { clear_manual: true } : {}) },
      });
    },
  };
}

function snapshotPage(page: Snapshot): SnapshotPage {
  const { sections: s } = page;
  return {
    syncEpoch: page.sync_epoch,
    headSeq: page.head_seq,
    pageSeq: page.page_seq,
    nextCursor: page.next_cursor,
    instance:
      s.instance === undefined
        ? undefined
        : { name: s.instance.instance.name, maxMessageBytes: s.instance.instance.limits.max_message_bytes },
    self:
      s.self === undefined
        ? undefined
        : { id: s.self.id, handle: s.self.handle, displayName: s.self.display_name, owner: s.self.owner === true },
    spaces: (s.spaces ?? []).map((item) => item.space),
    channels: (s.channels ?? []).map((item) => item.channel),
    threads: s.threads ?? [],
    readStates: s.read_states ?? [],
    principals: s.principals ?? [],
    agents: s.agents ?? [],
    runs: s.runs ?? [],
    access: [
      ...(s.spaces ?? []).map((item) => [item.space.id, item.access] as const),
      ...(s.channels ?? []).map((item) => [item.channel.id, item.access] as const),
    ],
  };
}
