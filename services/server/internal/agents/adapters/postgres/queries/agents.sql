-- SPDX-License-Identifier: Apache-2.0

-- name: AgentInsert :exec
INSERT INTO agents (principal_id, description, billing_mode, credential_holder_id, tool_class, max_concurrent_runs, allowed_models,
                    untrusted_context, max_trigger_age_ms, version, created_at, created_by, updated_at)
VALUES (sqlc.arg(principal_id), sqlc.arg(description), sqlc.arg(billing_mode), sqlc.narg(credential_holder_id), sqlc.arg(tool_class),
        sqlc.arg(max_concurrent_runs), sqlc.arg(allowed_models), sqlc.arg(untrusted_context), sqlc.narg(max_trigger_age_ms), 1,
        sqlc.arg(created_at), sqlc.arg(created_by), sqlc.arg(created_at));

-- name: AgentLock :one
-- The row, held until the unit ends.
SELECT * FROM agents WHERE principal_id = sqlc.arg(principal_id) FOR UPDATE;

-- name: AgentsByID :many
SELECT * FROM agents WHERE principal_id = ANY (sqlc.arg(agents)::uuid[]);

-- name: AgentsAfter :many
-- By principal_id, which is the key; the filters are optional.
SELECT * FROM agents
 WHERE principal_id > sqlc.arg(after)
   AND (sqlc.narg(presence_state)::text IS NULL OR presence_state = sqlc.narg(presence_state))
   AND (sqlc.narg(billing_mode)::text IS NULL OR billing_mode = sqlc.narg(billing_mode))
 ORDER BY principal_id
 LIMIT sqlc.arg(max_rows);

-- name: AgentsPresent :many
-- Those that were there when the server last wrote; the index agents_present serves it.
SELECT * FROM agents WHERE presence_state IN ('online', 'degraded') ORDER BY principal_id;

-- name: AgentsPersonal :many
-- Those that spend one person's own plan; the index agents_credential_holder serves it.
SELECT * FROM agents WHERE credential_holder_id IS NOT NULL ORDER BY principal_id;

-- name: AgentConfigure :exec
UPDATE agents
   SET description = sqlc.arg(description), billing_mode = sqlc.arg(billing_mode), credential_holder_id = sqlc.narg(credential_holder_id),
       tool_class = sqlc.arg(tool_class), max_concurrent_runs = sqlc.arg(max_concurrent_runs), allowed_models = sqlc.arg(allowed_models),
       untrusted_context = sqlc.arg(untrusted_context), max_trigger_age_ms = sqlc.narg(max_trigger_age_ms), version = sqlc.arg(version),
       updated_at = sqlc.arg(updated_at)
 WHERE principal_id = sqlc.arg(principal_id);

-- name: AgentReport :exec
-- An older report never replaces a newer one, whichever process wrote that.
UPDATE agents
   SET presence_state = sqlc.arg(presence_state), last_heartbeat_at = sqlc.arg(last_heartbeat_at),
       reported_billing_mode = sqlc.narg(reported_billing_mode), reported_tool_class = sqlc.narg(reported_tool_class),
       reported_evidence = sqlc.narg(reported_evidence), reported_modes = sqlc.narg(reported_modes)::text[],
       reported_runtime_version = sqlc.narg(reported_runtime_version), reported_details = sqlc.arg(reported_details)
 WHERE principal_id = sqlc.arg(principal_id)
   AND (last_heartbeat_at IS NULL OR last_heartbeat_at <= sqlc.arg(last_heartbeat_at));

-- name: AgentConsumerBegin :exec
-- A new agent hears what is said to it from its creation on.
INSERT INTO agent_consumer_cursors (agent_id, acked_seq, updated_at)
VALUES (sqlc.arg(agent_id), sqlc.arg(head), sqlc.arg(now));

-- name: AgentConsumerTakeOver :one
-- The newest session becomes the holder. Without a place the first one ever begins at the head.
INSERT INTO agent_consumer_cursors (agent_id, acked_seq, holder_session_id, holder_kind, holder_since, updated_at)
VALUES (sqlc.arg(agent_id), sqlc.arg(head), sqlc.arg(holder), 'gateway', sqlc.arg(now), sqlc.arg(now))
ON CONFLICT (agent_id) DO UPDATE
   SET holder_session_id = EXCLUDED.holder_session_id, holder_kind = EXCLUDED.holder_kind, holder_since = EXCLUDED.holder_since,
       updated_at = EXCLUDED.updated_at
RETURNING acked_seq;

-- name: AgentConsumerSave :execrows
-- Only the holder moves the position, and only forward.
UPDATE agent_consumer_cursors
   SET acked_seq = greatest(acked_seq, sqlc.arg(acked)), updated_at = sqlc.arg(now)
 WHERE agent_id = sqlc.arg(agent_id) AND holder_session_id = sqlc.arg(holder);

-- name: AgentConsumersMove :exec
-- After a restore nothing old is handed out again: every agent goes on at the head.
UPDATE agent_consumer_cursors
   SET acked_seq = sqlc.arg(head), holder_session_id = NULL, holder_kind = NULL, holder_since = NULL, updated_at = sqlc.arg(now);
