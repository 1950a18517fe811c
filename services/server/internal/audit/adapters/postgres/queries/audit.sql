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
SELECT id, seq, first_seq, hash, prev_checkpoint_hash, kid, jws, created_at
FROM audit_checkpoints
ORDER BY seq DESC
LIMIT 1;

-- CheckpointRange gives the checkpoints over rows of the range and the one before it, so that
-- their own chain can be followed. Served by audit_checkpoints_seq_key.
-- name: CheckpointRange :many
SELECT id, seq, first_seq, hash, prev_checkpoint_hash, kid, jws, created_at
FROM audit_checkpoints
WHERE seq BETWEEN coalesce((SELECT max(p.seq) FROM audit_checkpoints p WHERE p.seq < sqlc.arg(from_seq)::bigint), 0)
          AND sqlc.arg(to_seq)::bigint
ORDER BY seq;

-- name: CheckpointInsert :exec
INSERT INTO audit_checkpoints (id, seq, first_seq, hash, prev_checkpoint_hash, kid, jws, created_at, sink_state)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'none')
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
