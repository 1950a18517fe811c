-- SPDX-License-Identifier: Apache-2.0

-- name: ReadStateLock :one
-- The row of one person and thread, held until the unit ends.
SELECT principal_id, thread_id, channel_id, last_read_thread_seq, manually_unread_from, origin, version, updated_at
  FROM read_states
 WHERE principal_id = sqlc.arg(principal_id) AND thread_id = sqlc.arg(thread_id)
   FOR UPDATE;

-- name: ReadStatesByThreads :many
SELECT principal_id, thread_id, channel_id, last_read_thread_seq, manually_unread_from, origin, version, updated_at
  FROM read_states
 WHERE principal_id = sqlc.arg(principal_id) AND thread_id = ANY (sqlc.arg(threads)::uuid[]);

-- name: ReadStateUpsert :exec
-- Positions never fall, also when two devices write at once without having seen a row.
INSERT INTO read_states (principal_id, thread_id, channel_id, last_read_thread_seq, manually_unread_from, origin, version, updated_at)
VALUES (sqlc.arg(principal_id), sqlc.arg(thread_id), sqlc.arg(channel_id), sqlc.arg(last_read_thread_seq),
        sqlc.narg(manually_unread_from), sqlc.arg(origin), sqlc.arg(version), sqlc.arg(updated_at))
ON CONFLICT (principal_id, thread_id) DO UPDATE
   SET channel_id = EXCLUDED.channel_id,
       last_read_thread_seq = greatest(read_states.last_read_thread_seq, EXCLUDED.last_read_thread_seq),
       manually_unread_from = EXCLUDED.manually_unread_from, origin = EXCLUDED.origin,
       version = greatest(read_states.version + 1, EXCLUDED.version), updated_at = EXCLUDED.updated_at;

-- name: ReadStatePost :exec
-- Writing reads everything up to the message and removes a manual mark.
INSERT INTO read_states (principal_id, thread_id, channel_id, last_read_thread_seq, origin, updated_at)
VALUES (sqlc.arg(principal_id), sqlc.arg(thread_id), sqlc.arg(channel_id), sqlc.arg(last_read_thread_seq), sqlc.arg(origin), sqlc.arg(updated_at))
ON CONFLICT (principal_id, thread_id) DO UPDATE
   SET channel_id = EXCLUDED.channel_id,
       last_read_thread_seq = greatest(read_states.last_read_thread_seq, EXCLUDED.last_read_thread_seq),
       manually_unread_from = NULL, origin = EXCLUDED.origin, version = read_states.version + 1, updated_at = EXCLUDED.updated_at;

-- name: ReadStatesBaseline :exec
-- Threads that were there before the person looked count as read up to now.
INSERT INTO read_states (principal_id, thread_id, channel_id, last_read_thread_seq, origin, updated_at)
SELECT sqlc.arg(principal_id)::uuid, t.thread_id, t.channel_id, t.seq, 'baseline', sqlc.arg(updated_at)::timestamptz
  FROM ROWS FROM (unnest(sqlc.arg(threads)::uuid[]), unnest(sqlc.arg(channels)::uuid[]), unnest(sqlc.arg(seqs)::bigint[]))
       AS t (thread_id, channel_id, seq)
ON CONFLICT (principal_id, thread_id) DO NOTHING;
