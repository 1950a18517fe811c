-- SPDX-License-Identifier: Apache-2.0

-- name: GroupGet :one
SELECT id, name, handle, description, kind, provider_id, claim_value, mentionable, version, created_at
FROM groups
WHERE id = $1;

-- GroupGetEveryone is served by groups_everyone_key.
-- name: GroupGetEveryone :one
SELECT id, name, handle, description, kind, provider_id, claim_value, mentionable, version, created_at
FROM groups
WHERE kind = 'everyone';

-- name: GroupListByID :many
SELECT id, name, handle, description, kind, provider_id, claim_value, mentionable, version, created_at
FROM groups
WHERE id = ANY (sqlc.arg(ids)::uuid[])
ORDER BY id;

-- name: GroupInsert :exec
INSERT INTO groups (id, name, handle, description, kind, provider_id, claim_value, mentionable, created_by, created_at,
                    updated_at)
VALUES (sqlc.arg(id), sqlc.arg(name), sqlc.arg(handle), sqlc.arg(description), sqlc.arg(kind), sqlc.narg(provider_id),
        sqlc.narg(claim_value), sqlc.arg(mentionable), sqlc.narg(created_by), sqlc.arg(created_at), sqlc.arg(created_at));

-- name: GroupUpdate :exec
UPDATE groups
SET name = sqlc.arg(name), handle = sqlc.arg(handle), description = sqlc.arg(description),
    mentionable = sqlc.arg(mentionable), version = sqlc.arg(version), updated_at = sqlc.arg(now)
WHERE id = sqlc.arg(id);

-- GroupDelete takes the memberships with it; the grants are deleted before, because others hear of each.
-- name: GroupDelete :execrows
DELETE FROM groups WHERE id = $1;

-- name: GroupCount :one
SELECT count(*) FROM groups;

-- GroupCounts is served by group_memberships_member_key and grants_group.
-- name: GroupCounts :one
SELECT (SELECT count(*)
        FROM group_memberships m
        WHERE m.group_id = sqlc.arg(group_id)::uuid
          AND (m.expires_at IS NULL OR m.expires_at > sqlc.arg(now)::timestamptz))::bigint AS members,
       (SELECT count(*) FROM grants g WHERE g.group_id = sqlc.arg(group_id)::uuid)::bigint AS grants;

-- GroupGrants gives what the grants of a group are worth. Served by grants_group.
-- name: GroupGrants :many
SELECT id, target_kind, target_id, level, capabilities::text[] AS capabilities, expires_at
FROM grants
WHERE group_id = $1
  AND (expires_at IS NULL OR expires_at > sqlc.arg(now)::timestamptz);

-- GroupListClaimed is served by groups_claim_key.
-- name: GroupListClaimed :many
SELECT id, name, handle, description, kind, provider_id, claim_value, mentionable, version, created_at
FROM groups
WHERE provider_id = sqlc.arg(provider_id)::uuid
  AND claim_value = ANY (sqlc.arg(values)::text[])
ORDER BY id;

-- GroupList gives groups by handle with the viewer's role. Served by groups_handle_key; there
-- are at most a thousand groups.
-- name: GroupList :many
SELECT g.id, g.name, g.handle, g.description, g.kind, g.provider_id, g.claim_value, g.mentionable, g.version,
       g.created_at, coalesce(m.role, '')::text AS my_role
FROM groups g
LEFT JOIN group_memberships m
    ON m.group_id = g.id
   AND m.principal_id = sqlc.arg(viewer)::uuid
   AND (m.expires_at IS NULL OR m.expires_at > sqlc.arg(now)::timestamptz)
WHERE g.handle > sqlc.arg(after)::text
  AND (sqlc.arg(kind)::text = '' OR g.kind = sqlc.arg(kind)::text)
  AND (sqlc.arg(query)::text = ''
       OR starts_with(g.handle, sqlc.arg(query)::text)
       OR starts_with(lower(g.name), sqlc.arg(query)::text))
  AND (NOT sqlc.arg(own_only)::boolean OR m.id IS NOT NULL)
ORDER BY g.handle
LIMIT sqlc.arg(page_limit)::int;

-- name: GroupHandleTaken :one
SELECT EXISTS (SELECT FROM groups WHERE handle = $1);

-- GroupMembers lists the members that have rows, expired ones too: their rights may just end.
-- name: GroupMembers :many
SELECT principal_id FROM group_memberships WHERE group_id = $1 ORDER BY principal_id;

-- name: GroupRoleOf :one
SELECT role
FROM group_memberships
WHERE group_id = sqlc.arg(group_id)
  AND principal_id = sqlc.arg(principal_id)
  AND (expires_at IS NULL OR expires_at > sqlc.arg(now)::timestamptz);

-- name: MemberGet :one
SELECT id, group_id, principal_id, role, source, expires_at, added_by, created_at
FROM group_memberships
WHERE group_id = $1 AND principal_id = $2;

-- MemberList gives the members of a group by principal. Served by group_memberships_member_key.
-- name: MemberList :many
SELECT id, group_id, principal_id, role, source, expires_at, added_by, created_at
FROM group_memberships
WHERE group_id = sqlc.arg(group_id)
  AND principal_id > sqlc.arg(after)::uuid
  AND (expires_at IS NULL OR expires_at > sqlc.arg(now)::timestamptz)
ORDER BY principal_id
LIMIT sqlc.arg(page_limit)::int;

-- MemberListClaimed gives what a provider gave a principal, ended memberships too. Served by
-- group_memberships_principal.
-- name: MemberListClaimed :many
SELECT m.id, m.group_id, m.principal_id, m.role, m.source, m.expires_at, m.added_by, m.created_at
FROM group_memberships m
JOIN groups g ON g.id = m.group_id
WHERE m.principal_id = sqlc.arg(principal_id)::uuid
  AND m.source = 'claim'
  AND g.provider_id = sqlc.arg(provider_id)::uuid
ORDER BY m.group_id;

-- name: MemberPut :exec
INSERT INTO group_memberships (id, group_id, principal_id, role, source, expires_at, reminded_for, reminder_stage,
                               added_by, created_at)
VALUES (sqlc.arg(id), sqlc.arg(group_id), sqlc.arg(principal_id), sqlc.arg(role), sqlc.arg(source),
        sqlc.narg(expires_at), sqlc.narg(expires_at), sqlc.arg(reminder_stage), sqlc.narg(added_by),
        sqlc.arg(created_at))
ON CONFLICT (group_id, principal_id) DO UPDATE
SET role = excluded.role, source = excluded.source, expires_at = excluded.expires_at,
    reminded_for = excluded.reminded_for, reminder_stage = excluded.reminder_stage, added_by = excluded.added_by;

-- name: MemberDelete :execrows
DELETE FROM group_memberships WHERE id = $1;

-- MemberLockExpired takes ended memberships, by ID, and leaves those that another worker
-- holds. Served by group_memberships_expiry.
-- name: MemberLockExpired :many
SELECT id, group_id, principal_id, role, source, expires_at, added_by, created_at
FROM group_memberships
WHERE expires_at <= sqlc.arg(now)::timestamptz
ORDER BY id
LIMIT sqlc.arg(page_limit)::int
FOR UPDATE SKIP LOCKED;

-- MemberLockExpiring takes memberships that will end and are due for a reminder. Served by
-- group_memberships_expiry.
-- name: MemberLockExpiring :many
SELECT id, group_id, principal_id, role, source, expires_at, added_by, created_at
FROM group_memberships
WHERE expires_at > sqlc.arg(now)::timestamptz
  AND expires_at <= sqlc.arg(last)::timestamptz
  AND (SELECT count(*) FROM unnest(sqlc.arg(due_by)::timestamptz[]) AS d (at) WHERE d.at >= expires_at)
      > CASE WHEN reminded_for = expires_at THEN reminder_stage ELSE 0 END
ORDER BY id
LIMIT sqlc.arg(page_limit)::int
FOR UPDATE SKIP LOCKED;

-- name: MemberReminded :exec
UPDATE group_memberships
SET reminded_for = expires_at, reminder_stage = sqlc.arg(stage)
WHERE id = sqlc.arg(id);
