-- SPDX-License-Identifier: Apache-2.0

-- name: GrantGet :one
SELECT id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
       created_by, created_at
FROM grants
WHERE id = $1;

-- GrantGetOf finds the one grant of a subject on a target. Served by grants_principal or
-- grants_group; a concurrent insert of the pair fails by the unique key.
-- name: GrantGetOf :one
SELECT id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
       created_by, created_at
FROM grants
WHERE (principal_id = sqlc.narg(principal_id)::uuid OR group_id = sqlc.narg(group_id)::uuid)
  AND target_kind = sqlc.arg(target_kind)
  AND target_id IS NOT DISTINCT FROM sqlc.narg(target_id)::uuid;

-- GrantListOn gives the grants on targets, by ID. Served by grants_target.
-- name: GrantListOn :many
SELECT id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
       created_by, created_at
FROM grants
WHERE (target_kind IN ('space', 'channel') AND target_id = ANY (sqlc.arg(targets)::uuid[])
       OR sqlc.arg(with_instance)::boolean AND target_kind = 'instance')
  AND id > sqlc.arg(after)::uuid
ORDER BY id
LIMIT sqlc.arg(page_limit)::int;

-- GrantListOf gives the grants of a subject, by ID. Served by grants_principal and grants_group.
-- name: GrantListOf :many
SELECT id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
       created_by, created_at
FROM grants
WHERE (principal_id = sqlc.arg(subject)::uuid OR group_id = sqlc.arg(subject)::uuid)
  AND id > sqlc.arg(after)::uuid
ORDER BY id
LIMIT sqlc.arg(page_limit)::int;

-- name: GrantCountOn :one
SELECT count(*)
FROM grants
WHERE target_kind = sqlc.arg(target_kind) AND target_id IS NOT DISTINCT FROM sqlc.narg(target_id)::uuid;

-- name: GrantInsert :exec
INSERT INTO grants (id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at,
                    note, created_by, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: GrantDelete :execrows
DELETE FROM grants WHERE id = $1;

-- name: GrantDeleteOf :many
DELETE FROM grants
WHERE principal_id = $1
RETURNING id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
          created_by, created_at;

-- GrantExpired tells whether any grant has ended. Served by grants_expiry.
-- name: GrantExpired :one
SELECT EXISTS (SELECT FROM grants WHERE expires_at <= sqlc.arg(now)::timestamptz);

-- GrantLockExpired takes ended grants, by ID, and leaves those that another worker holds.
-- Served by grants_expiry.
-- name: GrantLockExpired :many
SELECT id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
       created_by, created_at
FROM grants
WHERE expires_at <= sqlc.arg(now)::timestamptz
ORDER BY id
LIMIT sqlc.arg(page_limit)::int
FOR UPDATE SKIP LOCKED;
