-- SPDX-License-Identifier: Apache-2.0

-- EventLast is read after audit_seq has been raised in the same transaction, so no row can
-- come between. Served by the primary key.
-- name: EventLast :one
SELECT seq, hash FROM audit_events ORDER BY seq DESC LIMIT 1;

-- name: EventInsert :exec
INSERT INTO audit_events (seq, id, occurred_at, action, outcome, reason, actor_kind, actor_id, session_id, device_id,
                          token_id, acting_for_id, view_as_id, resource_kind, resource_id, space_id, channel_id, details,
                          correlation_id, ip_key_id, ip_pseudonym, prev_hash, hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23);

-- EventRange gives rows in the order of the chain. Served by the primary key.
-- name: EventRange :many
SELECT seq, id, occurred_at, action, outcome, reason, actor_kind, actor_id, session_id, device_id, token_id,
       acting_for_id, view_as_id, resource_kind, resource_id, space_id, channel_id, details, correlation_id, ip_key_id,
       ip_pseudonym, prev_hash, hash
FROM audit_events
WHERE seq >= sqlc.arg(from_seq)
ORDER BY seq
LIMIT sqlc.arg(page_limit)::int;

-- EventBounds takes both ends of the primary key.
-- name: EventBounds :one
SELECT coalesce(min(seq), 0)::bigint AS first, coalesce(max(seq), 0)::bigint AS last FROM audit_events;

-- name: CheckpointLast :one
SELECT id, seq, first_seq, hash, prev_checkpoint_hash, kid, jws, created_at, sink_state, sink_attempts, sink_error,
       deposited_at
FROM audit_checkpoints
ORDER BY seq DESC
LIMIT 1;

-- CheckpointRange gives the checkpoints over rows of the range and the one before it, so that
-- their own chain can be followed. Served by audit_checkpoints_seq_key.
-- name: CheckpointRange :many
SELECT id, seq, first_seq, hash, prev_checkpoint_hash, kid, jws, created_at, sink_state, sink_attempts, sink_error,
       deposited_at
FROM audit_checkpoints
WHERE seq BETWEEN coalesce((SELECT max(p.seq) FROM audit_checkpoints p WHERE p.seq < sqlc.arg(from_seq)::bigint), 0)
          AND sqlc.arg(to_seq)::bigint
ORDER BY seq;

-- name: CheckpointInsert :exec
INSERT INTO audit_checkpoints (id, seq, first_seq, hash, prev_checkpoint_hash, kid, jws, created_at, sink_state)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (seq) DO NOTHING;

-- name: IPKeyList :many
SELECT id, valid_from, valid_until, key_wrapped
FROM audit_ip_keys
WHERE valid_until > sqlc.arg(now) AND key_wrapped IS NOT NULL
ORDER BY valid_from;

-- IPKeyInsert leaves the key of another process in place: the loser reads the winner's.
-- name: IPKeyInsert :exec
INSERT INTO audit_ip_keys (id, valid_from, valid_until, key_wrapped)
VALUES ($1, $2, $3, $4)
ON CONFLICT (valid_from) DO NOTHING;

-- The pages of a filtered list differ in what leads: each has the index of its leading column, in the order of the list, and
-- looks at the rest row by row. EventPage is for lists that only a rest narrows; it follows the primary key.
-- name: EventPage :many
SELECT seq, id, occurred_at, action, outcome, reason, actor_kind, actor_id, session_id, device_id, token_id,
       acting_for_id, view_as_id, resource_kind, resource_id, space_id, channel_id, details, correlation_id, ip_key_id,
       ip_pseudonym, prev_hash, hash
FROM audit_events
WHERE (sqlc.narg(resource_id)::uuid IS NULL OR resource_id = sqlc.narg(resource_id))
  AND (sqlc.narg(actor_id)::uuid IS NULL OR actor_id = sqlc.narg(actor_id))
  AND (sqlc.narg(channel_id)::uuid IS NULL OR channel_id = sqlc.narg(channel_id))
  AND (sqlc.narg(space_id)::uuid IS NULL OR space_id = sqlc.narg(space_id))
  AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action))
  AND (sqlc.narg(action_prefix)::text IS NULL OR starts_with(action, sqlc.narg(action_prefix)))
  AND (sqlc.narg(outcome)::text IS NULL OR outcome = sqlc.narg(outcome))
  AND (sqlc.narg(from_time)::timestamptz IS NULL OR occurred_at >= sqlc.narg(from_time))
  AND (sqlc.narg(to_time)::timestamptz IS NULL OR occurred_at < sqlc.narg(to_time))
  AND seq < sqlc.arg(before_seq)::bigint
ORDER BY seq DESC
LIMIT sqlc.arg(page_limit)::int;

-- EventPageByResource is served by audit_events_resource.
-- name: EventPageByResource :many
SELECT seq, id, occurred_at, action, outcome, reason, actor_kind, actor_id, session_id, device_id, token_id,
       acting_for_id, view_as_id, resource_kind, resource_id, space_id, channel_id, details, correlation_id, ip_key_id,
       ip_pseudonym, prev_hash, hash
FROM audit_events
WHERE resource_id = sqlc.narg(resource_id)
  AND (sqlc.narg(actor_id)::uuid IS NULL OR actor_id = sqlc.narg(actor_id))
  AND (sqlc.narg(channel_id)::uuid IS NULL OR channel_id = sqlc.narg(channel_id))
  AND (sqlc.narg(space_id)::uuid IS NULL OR space_id = sqlc.narg(space_id))
  AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action))
  AND (sqlc.narg(action_prefix)::text IS NULL OR starts_with(action, sqlc.narg(action_prefix)))
  AND (sqlc.narg(outcome)::text IS NULL OR outcome = sqlc.narg(outcome))
  AND (sqlc.narg(from_time)::timestamptz IS NULL OR occurred_at >= sqlc.narg(from_time))
  AND (sqlc.narg(to_time)::timestamptz IS NULL OR occurred_at < sqlc.narg(to_time))
  AND seq < sqlc.arg(before_seq)::bigint
ORDER BY seq DESC
LIMIT sqlc.arg(page_limit)::int;

-- EventPageByActor is served by audit_events_actor.
-- name: EventPageByActor :many
SELECT seq, id, occurred_at, action, outcome, reason, actor_kind, actor_id, session_id, device_id, token_id,
       acting_for_id, view_as_id, resource_kind, resource_id, space_id, channel_id, details, correlation_id, ip_key_id,
       ip_pseudonym, prev_hash, hash
FROM audit_events
WHERE (sqlc.narg(resource_id)::uuid IS NULL OR resource_id = sqlc.narg(resource_id))
  AND actor_id = sqlc.narg(actor_id)
  AND (sqlc.narg(channel_id)::uuid IS NULL OR channel_id = sqlc.narg(channel_id))
  AND (sqlc.narg(space_id)::uuid IS NULL OR space_id = sqlc.narg(space_id))
  AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action))
  AND (sqlc.narg(action_prefix)::text IS NULL OR starts_with(action, sqlc.narg(action_prefix)))
  AND (sqlc.narg(outcome)::text IS NULL OR outcome = sqlc.narg(outcome))
  AND (sqlc.narg(from_time)::timestamptz IS NULL OR occurred_at >= sqlc.narg(from_time))
  AND (sqlc.narg(to_time)::timestamptz IS NULL OR occurred_at < sqlc.narg(to_time))
  AND seq < sqlc.arg(before_seq)::bigint
ORDER BY seq DESC
LIMIT sqlc.arg(page_limit)::int;

-- EventPageByChannel is served by audit_events_channel.
-- name: EventPageByChannel :many
SELECT seq, id, occurred_at, action, outcome, reason, actor_kind, actor_id, session_id, device_id, token_id,
       acting_for_id, view_as_id, resource_kind, resource_id, space_id, channel_id, details, correlation_id, ip_key_id,
       ip_pseudonym, prev_hash, hash
FROM audit_events
WHERE (sqlc.narg(resource_id)::uuid IS NULL OR resource_id = sqlc.narg(resource_id))
  AND (sqlc.narg(actor_id)::uuid IS NULL OR actor_id = sqlc.narg(actor_id))
  AND channel_id = sqlc.narg(channel_id)
  AND (sqlc.narg(space_id)::uuid IS NULL OR space_id = sqlc.narg(space_id))
  AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action))
  AND (sqlc.narg(action_prefix)::text IS NULL OR starts_with(action, sqlc.narg(action_prefix)))
  AND (sqlc.narg(outcome)::text IS NULL OR outcome = sqlc.narg(outcome))
  AND (sqlc.narg(from_time)::timestamptz IS NULL OR occurred_at >= sqlc.narg(from_time))
  AND (sqlc.narg(to_time)::timestamptz IS NULL OR occurred_at < sqlc.narg(to_time))
  AND seq < sqlc.arg(before_seq)::bigint
ORDER BY seq DESC
LIMIT sqlc.arg(page_limit)::int;

-- EventPageBySpace is served by audit_events_space.
-- name: EventPageBySpace :many
SELECT seq, id, occurred_at, action, outcome, reason, actor_kind, actor_id, session_id, device_id, token_id,
       acting_for_id, view_as_id, resource_kind, resource_id, space_id, channel_id, details, correlation_id, ip_key_id,
       ip_pseudonym, prev_hash, hash
FROM audit_events
WHERE (sqlc.narg(resource_id)::uuid IS NULL OR resource_id = sqlc.narg(resource_id))
  AND (sqlc.narg(actor_id)::uuid IS NULL OR actor_id = sqlc.narg(actor_id))
  AND (sqlc.narg(channel_id)::uuid IS NULL OR channel_id = sqlc.narg(channel_id))
  AND space_id = sqlc.narg(space_id)
  AND (sqlc.narg(action)::text IS NULL OR action = sqlc.narg(action))
  AND (sqlc.narg(action_prefix)::text IS NULL OR starts_with(action, sqlc.narg(action_prefix)))
  AND (sqlc.narg(outcome)::text IS NULL OR outcome = sqlc.narg(outcome))
  AND (sqlc.narg(from_time)::timestamptz IS NULL OR occurred_at >= sqlc.narg(from_time))
  AND (sqlc.narg(to_time)::timestamptz IS NULL OR occurred_at < sqlc.narg(to_time))
  AND seq < sqlc.arg(before_seq)::bigint
ORDER BY seq DESC
LIMIT sqlc.arg(page_limit)::int;

-- EventPageByAction is served by audit_events_action.
-- name: EventPageByAction :many
SELECT seq, id, occurred_at, action, outcome, reason, actor_kind, actor_id, session_id, device_id, token_id,
       acting_for_id, view_as_id, resource_kind, resource_id, space_id, channel_id, details, correlation_id, ip_key_id,
       ip_pseudonym, prev_hash, hash
FROM audit_events
WHERE (sqlc.narg(resource_id)::uuid IS NULL OR resource_id = sqlc.narg(resource_id))
  AND (sqlc.narg(actor_id)::uuid IS NULL OR actor_id = sqlc.narg(actor_id))
  AND (sqlc.narg(channel_id)::uuid IS NULL OR channel_id = sqlc.narg(channel_id))
  AND (sqlc.narg(space_id)::uuid IS NULL OR space_id = sqlc.narg(space_id))
  AND action = sqlc.narg(action)
  AND (sqlc.narg(action_prefix)::text IS NULL OR starts_with(action, sqlc.narg(action_prefix)))
  AND (sqlc.narg(outcome)::text IS NULL OR outcome = sqlc.narg(outcome))
  AND (sqlc.narg(from_time)::timestamptz IS NULL OR occurred_at >= sqlc.narg(from_time))
  AND (sqlc.narg(to_time)::timestamptz IS NULL OR occurred_at < sqlc.narg(to_time))
  AND seq < sqlc.arg(before_seq)::bigint
ORDER BY seq DESC
LIMIT sqlc.arg(page_limit)::int;

-- EventActions steps through the names of actions in audit_events_action, one look-up each.
-- name: EventActions :many
WITH RECURSIVE names (action) AS (
    (SELECT e.action FROM audit_events e
     WHERE e.action >= sqlc.arg(prefix)::text AND e.action < sqlc.arg(prefix_end)::text
     ORDER BY e.action LIMIT 1)
    UNION ALL
    SELECT (SELECT e.action FROM audit_events e
            WHERE e.action > n.action AND e.action < sqlc.arg(prefix_end)::text
            ORDER BY e.action LIMIT 1)
    FROM names n
    WHERE n.action IS NOT NULL
)
SELECT n.action::text AS action FROM names n WHERE n.action IS NOT NULL;

-- EventGet is served by audit_events_id_key.
-- name: EventGet :one
SELECT seq, id, occurred_at, action, outcome, reason, actor_kind, actor_id, session_id, device_id, token_id,
       acting_for_id, view_as_id, resource_kind, resource_id, space_id, channel_id, details, correlation_id, ip_key_id,
       ip_pseudonym, prev_hash, hash
FROM audit_events
WHERE id = $1;

-- CheckpointPage is served by audit_checkpoints_seq_key.
-- name: CheckpointPage :many
SELECT id, seq, first_seq, hash, prev_checkpoint_hash, kid, jws, created_at, sink_state, sink_attempts, sink_error,
       deposited_at
FROM audit_checkpoints
WHERE seq < sqlc.arg(before_seq)::bigint
ORDER BY seq DESC
LIMIT sqlc.arg(page_limit)::int;

-- CheckpointPending is served by audit_checkpoints_pending.
-- name: CheckpointPending :many
SELECT id, seq, first_seq, hash, prev_checkpoint_hash, kid, jws, created_at, sink_state, sink_attempts, sink_error,
       deposited_at
FROM audit_checkpoints
WHERE sink_state = 'pending'
ORDER BY seq
LIMIT sqlc.arg(page_limit)::int;

-- name: CheckpointDeposited :exec
UPDATE audit_checkpoints
SET sink_state = 'deposited', sink_attempts = sink_attempts + 1, sink_error = NULL, deposited_at = sqlc.arg(at)::timestamptz
WHERE id = sqlc.arg(id) AND sink_state = 'pending';

-- name: CheckpointSinkFailed :exec
UPDATE audit_checkpoints
SET sink_attempts = sink_attempts + 1, sink_error = sqlc.arg(code)::text
WHERE id = sqlc.arg(id) AND sink_state = 'pending';

-- TrimPoint is the newest checkpoint that is old enough and need not be deposited any more, as long as the oldest row is
-- both covered by it and old. Checkpoints are few; the oldest row is the beginning of the primary key.
-- name: TrimPoint :one
SELECT c.id, c.seq
FROM audit_checkpoints c
WHERE c.created_at < sqlc.arg(cutoff)::timestamptz AND c.sink_state <> 'pending'
  AND EXISTS (SELECT FROM (SELECT e.seq, e.occurred_at FROM audit_events e ORDER BY e.seq LIMIT 1) f
              WHERE f.seq <= c.seq AND f.occurred_at < sqlc.arg(cutoff)::timestamptz)
ORDER BY c.seq DESC
LIMIT 1;

-- TrimLast is the last of the rows from the beginning on that are all older than the cutoff. Times may go backwards against
-- the numbers, and only a beginning may go. The last row of all stays, because the anchor is chained to it.
-- name: TrimLast :one
SELECT p.seq, p.hash
FROM (SELECT b.seq, b.hash, bool_and(b.occurred_at < sqlc.arg(cutoff)::timestamptz) OVER (ORDER BY b.seq) AS old
      FROM (SELECT e.seq, e.hash, e.occurred_at
            FROM audit_events e
            WHERE e.seq <= sqlc.arg(up_to)::bigint AND e.seq < (SELECT max(h.seq) FROM audit_events h)
            ORDER BY e.seq
            LIMIT sqlc.arg(batch)::int) b) p
WHERE p.old
ORDER BY p.seq DESC
LIMIT 1;

-- TrimRows works for the role of retention alone.
-- name: TrimRows :execrows
DELETE FROM audit_events WHERE seq <= sqlc.arg(through)::bigint;

-- name: IPKeyExpired :one
SELECT count(*)::bigint FROM audit_ip_keys WHERE destroyed_at IS NULL AND valid_until < sqlc.arg(before)::timestamptz;

-- IPKeyDestroy works for the role of retention alone.
-- name: IPKeyDestroy :exec
UPDATE audit_ip_keys SET key_wrapped = NULL, destroyed_at = sqlc.arg(at)::timestamptz
WHERE destroyed_at IS NULL AND valid_until < sqlc.arg(before)::timestamptz;
