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

-- GrantListOf gives the grants of a subject on everything or on the places, by ID. Served by
-- grants_principal and grants_group.
-- name: GrantListOf :many
SELECT id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
       created_by, created_at
FROM grants
WHERE (principal_id = sqlc.arg(subject)::uuid OR group_id = sqlc.arg(subject)::uuid)
  AND (sqlc.arg(everywhere)::boolean OR target_id = ANY (sqlc.arg(places)::uuid[])
       OR sqlc.arg(with_instance)::boolean AND target_kind = 'instance')
  AND id > sqlc.arg(after)::uuid
ORDER BY id
LIMIT sqlc.arg(page_limit)::int;

-- name: GrantCountOn :one
SELECT count(*)
FROM grants
WHERE target_kind = sqlc.arg(target_kind) AND target_id IS NOT DISTINCT FROM sqlc.narg(target_id)::uuid;

-- name: GrantInsert :exec
INSERT INTO grants (id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at,
                    reminded_for, reminder_stage, note, created_by, created_at)
VALUES (sqlc.arg(id), sqlc.arg(subject_kind), sqlc.narg(principal_id), sqlc.narg(group_id), sqlc.arg(target_kind),
        sqlc.narg(target_id), sqlc.arg(level), sqlc.arg(capabilities), sqlc.narg(expires_at), sqlc.narg(expires_at),
        sqlc.arg(reminder_stage), sqlc.arg(note), sqlc.narg(created_by), sqlc.arg(created_at));

-- name: GrantDelete :execrows
DELETE FROM grants WHERE id = $1;

-- name: GrantDeleteOf :many
DELETE FROM grants
WHERE principal_id = $1
RETURNING id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
          created_by, created_at;

-- name: GrantDeleteOfGroup :many
DELETE FROM grants
WHERE group_id = $1
RETURNING id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
          created_by, created_at;

-- Expired tells whether grants and memberships have ended. Served by grants_expiry and
-- group_memberships_expiry.
-- name: Expired :one
SELECT EXISTS (SELECT FROM grants g WHERE g.expires_at <= sqlc.arg(now)::timestamptz)::boolean AS grants,
       EXISTS (SELECT FROM group_memberships m WHERE m.expires_at <= sqlc.arg(now)::timestamptz)::boolean AS members;

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

-- GrantLockExpiring takes grants that will end and are due for a reminder. Served by
-- grants_expiry.
-- name: GrantLockExpiring :many
SELECT id, subject_kind, principal_id, group_id, target_kind, target_id, level, capabilities, expires_at, note,
       created_by, created_at
FROM grants
WHERE expires_at > sqlc.arg(now)::timestamptz
  AND expires_at <= sqlc.arg(last)::timestamptz
  AND (SELECT count(*) FROM unnest(sqlc.arg(due_by)::timestamptz[]) AS d (at) WHERE d.at >= expires_at)
      > CASE WHEN reminded_for = expires_at THEN reminder_stage ELSE 0 END
ORDER BY id
LIMIT sqlc.arg(page_limit)::int
FOR UPDATE SKIP LOCKED;

-- name: GrantReminded :exec
UPDATE grants
SET reminded_for = expires_at, reminder_stage = sqlc.arg(stage)
WHERE id = sqlc.arg(id);
