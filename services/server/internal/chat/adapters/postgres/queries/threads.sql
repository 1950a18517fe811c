-- SPDX-License-Identifier: Apache-2.0

-- name: ThreadPlaceLockShared :exec
-- Takes the place lock of the channel a thread lies in. The rows must be
-- read in a later statement, which then sees what the lock waited for.
SELECT pg_advisory_xact_lock_shared(1002, uuid_hash(t.channel_id)) FROM threads t WHERE t.id = @id;

-- name: ThreadPlace :one
-- Reads a thread with what a message needs to know of its channel and space; every message
-- that is sent runs it, so the long texts of the channel are left out.
SELECT sqlc.embed(t), c.space_id, c.kind AS channel_kind, c.name, c.main_thread_id, c.inherits, c.read_only,
       c.archived_at, c.operator_mode, c.operator_agent_id, c.trigger_rule, c.agent_chaining, c.agent_sources,
       c.slow_mode_seconds, c.config_version, s.operator_agent_id AS space_operator_id,
       coalesce(s.archived_at IS NOT NULL, false)::bool AS space_archived
  FROM threads t JOIN channels c ON c.id = t.channel_id LEFT JOIN spaces s ON s.id = c.space_id
 WHERE t.id = @id;

-- name: ThreadGet :one
-- Reads a thread with the space it lies in.
SELECT sqlc.embed(t), c.space_id FROM threads t JOIN channels c ON c.id = t.channel_id WHERE t.id = @id;

-- name: ThreadRowLock :exec
-- Holds the row of a thread against every other writer, so that messages of one
-- thread are numbered and changed one after the other.
SELECT id FROM threads WHERE id = @id FOR NO KEY UPDATE;

-- name: ThreadsIn :many
-- Reads threads by ID.
SELECT sqlc.embed(t), c.space_id FROM threads t JOIN channels c ON c.id = t.channel_id WHERE t.id = ANY(@list::uuid[]);

-- name: ThreadChannel :one
-- Tells where a thread lies.
SELECT channel_id FROM threads WHERE id = @id;

-- name: ThreadInsert :exec
-- Fails on threads_parent_key when another thread begins at the message.
INSERT INTO threads (id, channel_id, kind, parent_message_id, title, title_source, last_message_at, active_at, created_by, created_at, updated_at)
VALUES (@id, @channel_id, @kind, @parent_message_id, @title, @title_source, @created_at, @created_at, @created_by, @created_at, @created_at);

-- name: ThreadAppend :one
-- Gives the next number of a thread. The row stays locked until the end of the
-- transaction, so the numbers of a thread are gapless and in the order of commits. A thread
-- that was closed is opened when asked; the answer says what it was before.
WITH held AS (SELECT h.id, h.state FROM threads h WHERE h.id = @id FOR NO KEY UPDATE)
UPDATE threads t
   SET last_thread_seq    = t.last_thread_seq + 1,
       last_countable_seq = CASE WHEN @countable::bool THEN t.last_thread_seq + 1 ELSE t.last_countable_seq END,
       message_count      = t.message_count + CASE WHEN @countable::bool THEN 1 ELSE 0 END,
       counters_rev       = t.counters_rev + 1,
       last_message_at    = @at::timestamptz,
       active_at          = CASE WHEN t.kind = 'main' THEN t.active_at ELSE @at::timestamptz END,
       state              = CASE WHEN @reopen::bool THEN 'open' ELSE t.state END,
       closed_at          = CASE WHEN @reopen::bool THEN NULL ELSE t.closed_at END,
       closed_by          = CASE WHEN @reopen::bool THEN NULL ELSE t.closed_by END,
       close_reason       = CASE WHEN @reopen::bool THEN NULL ELSE t.close_reason END,
       version            = t.version + CASE WHEN @reopen::bool AND held.state = 'closed' THEN 1 ELSE 0 END
  FROM held
 WHERE t.id = held.id
RETURNING sqlc.embed(t), held.state AS state_before;

-- name: ThreadForget :one
-- Takes a message out of the counters. The caller holds the row.
UPDATE threads
   SET last_countable_seq = @last_countable_seq, message_count = message_count - 1, counters_rev = counters_rev + 1
 WHERE id = @id
RETURNING *;

-- name: ThreadsByActivity :many
-- Lists the threads of a channel without its main thread, newest first, by
-- threads_activity.
SELECT sqlc.embed(t), c.space_id FROM threads t JOIN channels c ON c.id = t.channel_id
 WHERE t.channel_id = @channel_id AND t.kind <> 'main'
   AND (sqlc.narg(kind)::text IS NULL OR t.kind = sqlc.narg(kind)::text)
   AND (sqlc.narg(state)::text IS NULL OR t.state = sqlc.narg(state)::text)
   AND (@with_empty::bool OR t.message_count > 0)
   AND (sqlc.narg(before_at)::timestamptz IS NULL OR (t.active_at, t.id) < (sqlc.narg(before_at)::timestamptz, @before_id::uuid))
 ORDER BY t.active_at DESC, t.id DESC
 LIMIT @max_rows;

-- name: ThreadsByCreation :many
-- Lists the same by creation, by threads_created.
SELECT sqlc.embed(t), c.space_id FROM threads t JOIN channels c ON c.id = t.channel_id
 WHERE t.channel_id = @channel_id AND t.kind <> 'main'
   AND (sqlc.narg(kind)::text IS NULL OR t.kind = sqlc.narg(kind)::text)
   AND (sqlc.narg(state)::text IS NULL OR t.state = sqlc.narg(state)::text)
   AND (@with_empty::bool OR t.message_count > 0)
   AND (sqlc.narg(before_at)::timestamptz IS NULL OR (t.created_at, t.id) < (sqlc.narg(before_at)::timestamptz, @before_id::uuid))
 ORDER BY t.created_at DESC, t.id DESC
 LIMIT @max_rows;

-- name: ThreadMain :one
-- Finds the main thread of a channel, by threads_main_key.
SELECT sqlc.embed(t), c.space_id FROM threads t JOIN channels c ON c.id = t.channel_id
 WHERE t.channel_id = @channel_id AND t.kind = 'main';

-- name: ThreadsByID :many
-- Lists visible threads by ID, for the snapshot: every main thread, and others
-- that were active since a time or not.
SELECT sqlc.embed(t), c.space_id
  FROM threads t JOIN channels c ON c.id = t.channel_id
 WHERE (@all_places::bool AND c.space_id IS NOT NULL OR c.id = ANY(@channels::uuid[]) OR c.inherits AND c.space_id = ANY(@spaces::uuid[]))
   AND (NOT @only_targets::bool OR c.id = ANY(@targets::uuid[]) OR c.space_id = ANY(@targets::uuid[]))
   AND (t.kind = 'main' OR t.message_count > 0 AND t.active_at >= @since)
   AND t.id > @after_id
 ORDER BY t.id
 LIMIT @max_rows;

-- name: ThreadsOfChannels :many
-- Lists the threads of channels, by threads_channel.
SELECT sqlc.embed(t), c.space_id FROM threads t JOIN channels c ON c.id = t.channel_id
 WHERE t.channel_id = ANY(@channels::uuid[]) AND t.last_countable_seq > 0
 ORDER BY t.channel_id, t.id
 LIMIT @max_rows;
