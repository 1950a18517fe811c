-- SPDX-License-Identifier: Apache-2.0

-- name: MessageGet :one
-- Reads a message with its mentions and the message it answers.
SELECT sqlc.embed(m), r.thread_seq AS reply_seq, r.author_id AS reply_author_id, coalesce(r.deleted_at IS NOT NULL, false)::bool AS reply_deleted,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('kind', n.kind, 'id', coalesce(n.principal_id, n.group_id), 'label', n.label, 'silent', n.silent)
                        ORDER BY n.position), '[]')
          FROM mentions n WHERE n.message_id = m.id AND n.removed_at IS NULL)::jsonb AS mentions
  FROM messages m LEFT JOIN messages r ON r.id = m.reply_to_id
 WHERE m.id = @id;

-- name: MessagesIn :many
-- Reads messages by ID.
SELECT sqlc.embed(m), r.thread_seq AS reply_seq, r.author_id AS reply_author_id, coalesce(r.deleted_at IS NOT NULL, false)::bool AS reply_deleted,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('kind', n.kind, 'id', coalesce(n.principal_id, n.group_id), 'label', n.label, 'silent', n.silent)
                        ORDER BY n.position), '[]')
          FROM mentions n WHERE n.message_id = m.id AND n.removed_at IS NULL)::jsonb AS mentions
  FROM messages m LEFT JOIN messages r ON r.id = m.reply_to_id
 WHERE m.id = ANY(@list::uuid[]);

-- name: MessagesWindow :many
-- Reads a range of numbers of a thread in ascending order, by messages_thread_seq_key.
SELECT sqlc.embed(m), r.thread_seq AS reply_seq, r.author_id AS reply_author_id, coalesce(r.deleted_at IS NOT NULL, false)::bool AS reply_deleted,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('kind', n.kind, 'id', coalesce(n.principal_id, n.group_id), 'label', n.label, 'silent', n.silent)
                        ORDER BY n.position), '[]')
          FROM mentions n WHERE n.message_id = m.id AND n.removed_at IS NULL)::jsonb AS mentions
  FROM messages m LEFT JOIN messages r ON r.id = m.reply_to_id
 WHERE m.thread_id = @thread_id AND m.thread_seq BETWEEN @from_seq AND @to_seq
 ORDER BY m.thread_seq;

-- name: MessageLock :exec
-- Holds a message against every other change of it.
SELECT id FROM messages WHERE id = @id FOR NO KEY UPDATE;

-- name: MessagePlace :one
-- Tells where a message stands. Neither changes except by a move of the thread.
SELECT thread_id, thread_seq FROM messages WHERE id = @id;

-- name: MessageInsert :exec
-- Writes a message and, in the same statement, whom it names. It fails on messages_client_key
-- when the author has used the client key before.
WITH message AS (
    INSERT INTO messages (id, thread_id, channel_id, thread_seq, kind, author_kind, author_id, content, dialect, plain_text, has_bits, links,
                          reply_to_id, run_id, notify, client_msg_id, client_hash, created_at)
    VALUES (@id, @thread_id, @channel_id, @thread_seq, @kind, @author_kind, @author_id, @content, @dialect, @plain_text, @has_bits, @links,
            @reply_to_id, @run_id, @notify, @client_msg_id, @client_hash, @created_at)
)
INSERT INTO mentions (message_id, thread_id, channel_id, thread_seq, author_id, position, kind, principal_id, label, silent, created_at)
SELECT @id, @thread_id, @channel_id, @thread_seq, @author_id, n.position, n.kind,
       nullif(n.principal_id, '00000000-0000-0000-0000-000000000000'), n.label, n.silent, @created_at
  FROM ROWS FROM (unnest(@mention_kinds::text[]), unnest(@mention_ids::uuid[]), unnest(@mention_labels::text[]), unnest(@mention_silent::bool[]))
       WITH ORDINALITY AS n (kind, principal_id, label, silent, position);

-- name: MessageEdit :exec
-- Writes the new text. The caller holds the row and has kept the old text.
UPDATE messages
   SET content = @content, plain_text = @plain_text, has_bits = @has_bits, links = @links, revision = @revision, edited_at = @edited_at, version = @version
 WHERE id = @id;

-- name: RevisionInsert :exec
-- Keeps what a revision said.
INSERT INTO message_revisions (message_id, revision, content, edited_by, replaced_at)
VALUES (@message_id, @revision, @content, @edited_by, @replaced_at);

-- name: RevisionsTrim :exec
-- Drops the oldest revisions but the first, so that a bounded number is left.
DELETE FROM message_revisions WHERE message_id = @message_id AND revision > 1 AND revision <= @up_to;

-- name: MentionsEver :many
-- Lists every target a message has ever named, by mentions_target_key.
SELECT kind, coalesce(principal_id, group_id) AS target_id, label, silent FROM mentions WHERE message_id = @message_id;

-- name: MentionsReplace :exec
-- Writes the mentions of an edited text: targets that are gone are marked, those that come
-- back or are new stand as named now.
WITH gone AS (
    UPDATE mentions o SET removed_at = @at
     WHERE o.message_id = @message_id AND o.removed_at IS NULL
       AND NOT EXISTS (
           SELECT FROM ROWS FROM (unnest(@mention_kinds::text[]), unnest(@mention_ids::uuid[])) AS k (kind, principal_id)
            WHERE k.kind = o.kind AND nullif(k.principal_id, '00000000-0000-0000-0000-000000000000') IS NOT DISTINCT FROM o.principal_id)
)
INSERT INTO mentions AS m (message_id, thread_id, channel_id, thread_seq, author_id, position, kind, principal_id, label, silent, created_at)
SELECT @message_id, @thread_id, @channel_id, @thread_seq, @author_id, n.position, n.kind,
       nullif(n.principal_id, '00000000-0000-0000-0000-000000000000'), n.label, n.silent, @at
  FROM ROWS FROM (unnest(@mention_kinds::text[]), unnest(@mention_ids::uuid[]), unnest(@mention_labels::text[]), unnest(@mention_silent::bool[]))
       WITH ORDINALITY AS n (kind, principal_id, label, silent, position)
ON CONFLICT ON CONSTRAINT mentions_target_key DO UPDATE
   SET removed_at = NULL, position = EXCLUDED.position, label = EXCLUDED.label, silent = EXCLUDED.silent;

-- name: MessageDelete :exec
-- Leaves the skeleton of a message and removes whatever holds its content. The caller holds
-- the row.
WITH revisions AS (DELETE FROM message_revisions WHERE message_revisions.message_id = @id),
     named AS (DELETE FROM mentions WHERE mentions.message_id = @id)
UPDATE messages
   SET content = '', plain_text = '', has_bits = 0, links = '{}', reply_to_id = NULL, client_hash = NULL,
       deleted_at = @deleted_at, deleted_by = @deleted_by, delete_kind = @delete_kind, delete_reason = @delete_reason, version = @version
 WHERE id = @id;

-- name: MessageSetTrigger :exec
-- Notes what became of a message for agents.
UPDATE messages SET trigger_state = @trigger_state, triggers = @triggers, version = @version WHERE id = @id;

-- name: MessageSetThread :exec
-- Notes the side thread that begins at a message.
UPDATE messages SET started_thread_id = @started_thread_id, version = @version WHERE id = @id;

-- name: CountableBelow :one
-- Finds the highest number of a thread that can be unread, below a number; it reads backwards
-- on messages_thread_seq_key and stops at the first.
SELECT coalesce((
    SELECT m.thread_seq FROM messages m
     WHERE m.thread_id = @thread_id AND m.thread_seq < @below AND m.kind = 'message' AND m.deleted_at IS NULL AND NOT m.imported
     ORDER BY m.thread_seq DESC LIMIT 1), 0)::bigint AS seq;

-- name: UnreadCounts :many
-- Counts per thread what a reader has not read, up to a cap, and where the reader is named
-- among it; by messages_thread_seq_key and mentions_thread.
SELECT q.thread_id::uuid AS thread_id,
       (SELECT count(*) FROM (
           SELECT FROM messages m
            WHERE m.thread_id = q.thread_id AND m.thread_seq > q.above AND m.kind = 'message' AND m.deleted_at IS NULL AND NOT m.imported
              AND m.author_id IS DISTINCT FROM @reader
            LIMIT @max_count) unread)::bigint AS unread,
       (SELECT count(*) FROM (
           SELECT FROM mentions n
            WHERE n.thread_id = q.thread_id AND n.thread_seq > q.above AND n.removed_at IS NULL AND NOT n.silent
              AND n.principal_id = @reader AND n.author_id IS DISTINCT FROM @reader
            LIMIT @max_count) named)::bigint AS mentions
  FROM ROWS FROM (unnest(@threads::uuid[]), unnest(@positions::bigint[])) AS q (thread_id, above);

-- name: BroadcastsSince :one
-- Counts how often an author has called many people in a channel since a time, by
-- mentions_broadcast.
SELECT count(*) FROM mentions WHERE author_id = @author_id AND channel_id = @channel_id AND created_at > @since AND kind IN ('channel', 'here', 'thread');

-- name: AuthorLock :exec
-- Makes the messages of one author in one channel queue up, so that two devices count as one.
SELECT pg_advisory_xact_lock(1003, uuid_hash(@author_id::uuid) # uuid_hash(@channel_id::uuid));

-- name: LastOfAuthor :one
-- Finds when an author last wrote in a channel, by messages_author. The newest messages of an
-- author are looked at, and there are few within the seconds of slow mode.
SELECT m.created_at FROM messages m
 WHERE m.author_id = @author_id AND m.channel_id = @channel_id AND m.kind = 'message' AND m.id > @since_id
 ORDER BY m.id DESC LIMIT 1;
