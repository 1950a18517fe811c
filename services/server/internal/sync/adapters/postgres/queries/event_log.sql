-- SPDX-License-Identifier: Apache-2.0

-- name: EventsAppend :exec
-- Numbers the entries so that the last one gets the present value of the counter, whose row
-- this transaction has locked. The version of all rights is read by a function in this
-- statement, which begins after the lock: it is the one in force at these positions.
WITH tail AS MATERIALIZED (
    SELECT instance_counter_value('event_seq') - cardinality(sqlc.arg(event_ids)::uuid[]) AS base,
           event_log_permission_version(sqlc.narg(decided)::bigint) AS permission_version
)
INSERT INTO event_log (seq, event_id, type, occurred_at, actor_id, actor_kind, acting_for_id, space_id, channel_id,
                       thread_id, principal_id, resource_type, resource_id, payload, permission_version, correlation_id)
SELECT tail.base + e.ord, e.event_id, e.type, sqlc.arg(occurred_at)::timestamptz, sqlc.narg(actor_id)::uuid,
       sqlc.arg(actor_kind)::text, sqlc.narg(acting_for_id)::uuid,
       nullif(e.space_id, '00000000-0000-0000-0000-000000000000'), nullif(e.channel_id, '00000000-0000-0000-0000-000000000000'),
       nullif(e.thread_id, '00000000-0000-0000-0000-000000000000'), nullif(e.principal_id, '00000000-0000-0000-0000-000000000000'),
       nullif(e.resource_type, ''), nullif(e.resource_id, '00000000-0000-0000-0000-000000000000'),
       e.payload::jsonb, tail.permission_version, sqlc.narg(correlation_id)::uuid
  FROM tail,
       ROWS FROM (
           unnest(sqlc.arg(event_ids)::uuid[]), unnest(sqlc.arg(types)::text[]), unnest(sqlc.arg(space_ids)::uuid[]),
           unnest(sqlc.arg(channel_ids)::uuid[]), unnest(sqlc.arg(thread_ids)::uuid[]), unnest(sqlc.arg(principal_ids)::uuid[]),
           unnest(sqlc.arg(resource_types)::text[]), unnest(sqlc.arg(resource_ids)::uuid[]), unnest(sqlc.arg(payloads)::text[])
       ) WITH ORDINALITY AS e (event_id, type, space_id, channel_id, thread_id, principal_id, resource_type, resource_id, payload, ord);

-- name: EventsNotify :exec
-- Wakes the readers at commit. The payload is the position, never content.
SELECT pg_notify('event_log', instance_counter_value('event_seq')::text);

-- name: EventsRedact :exec
-- Leaves the skeleton of a message in every retained event about it, ascending by position
-- as every writer of several rows does. Served by event_log_resource.
WITH rows AS (
    SELECT l.seq FROM event_log l
     WHERE l.resource_id = sqlc.arg(message_id) AND l.resource_type = 'message' AND l.redacted_at IS NULL
     ORDER BY l.seq FOR UPDATE
)
UPDATE event_log l
   SET redacted_at = sqlc.arg(redacted_at)::timestamptz,
       payload = jsonb_build_object(
           'message', jsonb_build_object(
               'id', l.payload->'message'->'id', 'channel_id', l.payload->'message'->'channel_id',
               'space_id', l.payload->'message'->'space_id', 'thread_id', l.payload->'message'->'thread_id',
               'thread_seq', l.payload->'message'->'thread_seq', 'author', l.payload->'message'->'author',
               'deleted', NOT sqlc.arg(superseded)::bool)
           || CASE WHEN sqlc.arg(superseded)::bool THEN '{"superseded": true}'::jsonb ELSE '{}'::jsonb END)
  FROM rows
 WHERE l.seq = rows.seq;

-- name: EventsFrom :many
-- A stretch of the log in order, by primary key.
SELECT * FROM event_log
 WHERE seq >= sqlc.arg(from_seq) AND seq <= sqlc.arg(through_seq)
 ORDER BY seq
 LIMIT sqlc.arg(max_rows);

-- name: EventsVisible :many
-- The part of a stretch that can concern a recipient: what is addressed to it, what is
-- addressed to nobody and lies in a place it may see, and what has no channel. Every row is
-- decided on again. all_places serves those who see everything but foreign direct channels.
SELECT * FROM event_log
 WHERE seq >= sqlc.arg(from_seq) AND seq <= sqlc.arg(through_seq)
   AND (principal_id = sqlc.arg(recipient)::uuid
        OR principal_id IS NULL
           AND (channel_id IS NULL OR sqlc.arg(all_places)::bool
                OR channel_id = ANY (sqlc.arg(channels)::uuid[]) OR space_id = ANY (sqlc.arg(spaces)::uuid[])))
 ORDER BY seq
 LIMIT sqlc.arg(max_rows);

-- name: EventsCount :one
-- How many positions of a stretch are stored: fewer than its length means that the retention
-- has moved into it.
SELECT count(*) FROM event_log WHERE seq >= sqlc.arg(from_seq) AND seq <= sqlc.arg(through_seq);

-- name: EventsPersonal :many
-- What is addressed to one principal, in order. Served by event_log_principal.
SELECT * FROM event_log
 WHERE principal_id = sqlc.arg(recipient)::uuid AND seq > sqlc.arg(after_seq) AND seq <= sqlc.arg(through_seq)
 ORDER BY seq
 LIMIT sqlc.arg(max_rows);

-- name: EventsBounds :one
-- The smallest stored position (1 for an empty log) and the highest given one, in one
-- snapshot.
SELECT coalesce((SELECT seq FROM event_log ORDER BY seq LIMIT 1), 1)::bigint AS min_seq,
       instance_counter_value('event_seq')::bigint AS head_seq;

-- name: PartitionsCreate :one
SELECT event_log_create_partitions(sqlc.arg(ahead)::int, sqlc.arg(size)::bigint)::int AS made;

-- name: PartitionsDetach :one
SELECT event_log_detach_expired(sqlc.arg(before)::timestamptz)::int AS gone;

-- name: PartitionsDrop :one
SELECT event_log_drop_detached()::int AS gone;

-- name: EventsTrim :execrows
-- Deletes old rows of partitions that cannot go yet, from the oldest on, never the row at
-- the head, which anchors the readers.
DELETE FROM event_log
 WHERE seq IN (SELECT l.seq FROM event_log l
                WHERE l.occurred_at < sqlc.arg(before)::timestamptz AND l.seq < instance_counter_value('event_seq')
                ORDER BY l.seq LIMIT sqlc.arg(max_rows));
