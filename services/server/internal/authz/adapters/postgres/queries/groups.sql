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

-- GroupInsert leaves an existing group of all members as it is.
-- name: GroupInsert :exec
INSERT INTO groups (id, name, handle, description, kind, mentionable, created_by, created_at, updated_at)
VALUES (sqlc.arg(id), sqlc.arg(name), sqlc.arg(handle), sqlc.arg(description), sqlc.arg(kind), sqlc.arg(mentionable),
        sqlc.narg(created_by), sqlc.arg(created_at), sqlc.arg(created_at));

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
