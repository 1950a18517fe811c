-- SPDX-License-Identifier: Apache-2.0

-- name: RunInsert :exec
INSERT INTO runs (id, agent_id, thread_id, channel_id, space_id, trigger_kind, trigger_message_id, triggered_by, parent_run_id, root_run_id,
                  chain_depth, chain, billing_mode, state, doc_version, agent_doc_version, anchor_message_id, followups_pending, followup_mode,
                  queued_at, last_activity_at)
VALUES (sqlc.arg(id), sqlc.arg(agent_id), sqlc.arg(thread_id), sqlc.arg(channel_id), sqlc.narg(space_id), sqlc.arg(trigger_kind),
        sqlc.narg(trigger_message_id), sqlc.arg(triggered_by), sqlc.narg(parent_run_id), sqlc.arg(root_run_id), sqlc.arg(chain_depth),
        sqlc.arg(chain), sqlc.arg(billing_mode), sqlc.arg(state), sqlc.arg(doc_version), sqlc.arg(agent_doc_version),
        sqlc.narg(anchor_message_id), sqlc.arg(followups_pending), sqlc.arg(followup_mode), sqlc.arg(queued_at), sqlc.arg(queued_at));

-- name: RunByID :one
SELECT * FROM runs WHERE id = sqlc.arg(id);

-- name: RunLock :one
-- The row, held until the unit ends.
SELECT * FROM runs WHERE id = sqlc.arg(id) FOR UPDATE;

-- name: RunSave :exec
-- Everything that changes in the life of a run but its output, under the lock of the row.
UPDATE runs
   SET state = sqlc.arg(state), end_reason = sqlc.narg(end_reason), doc_version = sqlc.arg(doc_version),
       agent_doc_version = sqlc.arg(agent_doc_version), title = sqlc.arg(title), status_line = sqlc.arg(status_line),
       document = sqlc.arg(document), output_message_id = sqlc.narg(output_message_id), model = sqlc.narg(model),
       followups_pending = sqlc.arg(followups_pending), followup_mode = sqlc.arg(followup_mode), delivered_at = sqlc.narg(delivered_at),
       started_at = sqlc.narg(started_at), last_activity_at = sqlc.arg(last_activity_at), stall_warned_at = sqlc.narg(stall_warned_at),
       ended_at = sqlc.narg(ended_at), cancel_requested_at = sqlc.narg(cancel_requested_at),
       cancel_requested_by = sqlc.narg(cancel_requested_by), cancel_reason = sqlc.narg(cancel_reason), error_code = sqlc.narg(error_code),
       error_message = sqlc.narg(error_message)
 WHERE id = sqlc.arg(id);

-- name: RunSaveOutput :exec
UPDATE runs SET output_text = sqlc.arg(output_text), output_length = sqlc.arg(output_length) WHERE id = sqlc.arg(id);

-- name: RunsForTrigger :many
-- What a message meets: active runs of the agents in the thread and runs it has begun before.
-- The two unique keys serve the two halves.
SELECT * FROM runs
 WHERE agent_id = ANY (sqlc.arg(agents)::uuid[])
   AND (thread_id = sqlc.arg(thread_id) AND state IN ('queued', 'running', 'waiting_input')
        OR trigger_message_id = sqlc.arg(message_id) AND trigger_kind IN ('message', 'followup', 'chain'));

-- name: RunsQueuedCount :many
SELECT agent_id, count(*) AS queued FROM runs
 WHERE agent_id = ANY (sqlc.arg(agents)::uuid[]) AND state = 'queued'
 GROUP BY agent_id;

-- name: RunsStartLock :exec
-- One start of an agent at a time. A statement of its own, so that the count behind it sees
-- what the start before has committed.
SELECT pg_advisory_xact_lock(hashtextextended('runs.start:' || sqlc.arg(agent_id)::uuid::text, 0));

-- name: RunsStartedCount :one
SELECT count(*) FROM runs WHERE agent_id = sqlc.arg(agent_id) AND state IN ('running', 'waiting_input');

-- name: RunsChainCount :one
-- Children of one run and all runs of the root.
SELECT count(*) FILTER (WHERE parent_run_id = sqlc.arg(parent_run_id)::uuid) AS children, count(*) AS of_root
  FROM runs WHERE root_run_id = sqlc.arg(root_run_id)::uuid;

-- name: RunsActiveChildren :many
SELECT * FROM runs
 WHERE parent_run_id = sqlc.arg(parent_run_id) AND state IN ('queued', 'running', 'waiting_input')
 ORDER BY thread_id, id;

-- name: RunsByMessage :many
-- One per agent at most.
SELECT * FROM runs
 WHERE trigger_message_id = sqlc.arg(message_id) AND trigger_kind IN ('message', 'followup', 'chain')
 ORDER BY id;

-- name: RunsActiveByAgent :many
SELECT * FROM runs WHERE agent_id = sqlc.arg(agent_id) AND state IN ('queued', 'running', 'waiting_input') ORDER BY thread_id;

-- name: RunsActiveByPrincipals :many
-- Runs that the people have begun or the agents carry out, in the order of their threads.
SELECT * FROM runs
 WHERE state IN ('queued', 'running', 'waiting_input')
   AND (triggered_by = ANY (sqlc.arg(principals)::uuid[]) OR agent_id = ANY (sqlc.arg(principals)::uuid[]))
 ORDER BY thread_id, id;

-- name: RunsActiveByChannels :many
SELECT * FROM runs
 WHERE channel_id = ANY (sqlc.arg(channels)::uuid[]) AND state IN ('queued', 'running', 'waiting_input') AND id > sqlc.arg(after)
 ORDER BY id
 LIMIT sqlc.arg(max_rows);

-- name: RunsActiveByThread :many
-- One per agent at most.
SELECT * FROM runs WHERE thread_id = sqlc.arg(thread_id) AND state IN ('queued', 'running', 'waiting_input') ORDER BY id;

-- name: RunsByThread :many
-- Newest first, before the given one.
SELECT * FROM runs
 WHERE thread_id = sqlc.arg(thread_id) AND (sqlc.narg(before)::uuid IS NULL OR id < sqlc.narg(before))
 ORDER BY id DESC
 LIMIT sqlc.arg(max_rows);

-- name: RunsStarted :many
-- Longest silent first; runs_activity serves it.
SELECT id FROM runs WHERE state IN ('running', 'waiting_input') ORDER BY last_activity_at LIMIT sqlc.arg(max_rows);

-- name: StepsByKeys :many
SELECT * FROM run_steps WHERE run_id = sqlc.arg(run_id) AND key = ANY (sqlc.arg(keys)::text[]);

-- name: StepsCount :one
SELECT count(*) FROM run_steps WHERE run_id = sqlc.arg(run_id);

-- name: StepsNewest :many
SELECT * FROM run_steps WHERE run_id = sqlc.arg(run_id) ORDER BY ordinal DESC LIMIT sqlc.arg(max_rows);

-- name: StepUpsert :exec
-- The ordinal stays what it was at first.
INSERT INTO run_steps (id, run_id, key, ordinal, parent_key, kind, tool_kind, title, state, started_at, ended_at, input, output,
                       output_length, truncated)
VALUES (sqlc.arg(id), sqlc.arg(run_id), sqlc.arg(key), sqlc.arg(ordinal), sqlc.narg(parent_key), sqlc.arg(kind), sqlc.narg(tool_kind),
        sqlc.arg(title), sqlc.arg(state), sqlc.narg(started_at), sqlc.narg(ended_at), sqlc.narg(input), sqlc.narg(output),
        sqlc.arg(output_length), sqlc.arg(truncated))
ON CONFLICT (run_id, key) DO UPDATE
   SET parent_key = EXCLUDED.parent_key, kind = EXCLUDED.kind, tool_kind = EXCLUDED.tool_kind, title = EXCLUDED.title,
       state = EXCLUDED.state, started_at = EXCLUDED.started_at, ended_at = EXCLUDED.ended_at, input = EXCLUDED.input,
       output = EXCLUDED.output, output_length = EXCLUDED.output_length, truncated = EXCLUDED.truncated;

-- name: FollowupInsert :exec
INSERT INTO run_followups (id, run_id, message_id, author_id, mode, state, position, created_at, delivered_at)
VALUES (sqlc.arg(id), sqlc.arg(run_id), sqlc.arg(message_id), sqlc.arg(author_id), sqlc.arg(mode), sqlc.arg(state), sqlc.arg(position),
        sqlc.arg(created_at), sqlc.narg(delivered_at));

-- name: FollowupsOpen :many
-- In the order of the thread.
SELECT * FROM run_followups WHERE run_id = sqlc.arg(run_id) AND state IN ('pending', 'delivered') ORDER BY position LIMIT 500;

-- name: FollowupByID :one
SELECT * FROM run_followups WHERE id = sqlc.arg(id);

-- name: FollowupsByMessage :many
SELECT * FROM run_followups WHERE message_id = sqlc.arg(message_id) ORDER BY id;

-- name: FollowupSave :exec
UPDATE run_followups
   SET state = sqlc.arg(state), delivered_at = sqlc.narg(delivered_at), consumed_at = sqlc.narg(consumed_at),
       carried_run_id = sqlc.narg(carried_run_id)
 WHERE id = sqlc.arg(id);
