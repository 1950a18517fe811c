-- SPDX-License-Identifier: Apache-2.0

-- TriggerGrants gives every grant that lets somebody set agents to work. Served by
-- grants_trigger.
-- name: TriggerGrants :many
SELECT g.id, g.principal_id, g.group_id, coalesce(e.kind = 'everyone', false)::boolean AS everyone, g.target_kind, g.target_id,
       g.level, g.capabilities, g.expires_at
FROM grants g
LEFT JOIN groups e ON e.id = g.group_id
WHERE g.level IN ('trigger', 'manage')
ORDER BY g.id;

-- TriggerMembers gives the members of groups. Served by group_memberships_member_key.
-- name: TriggerMembers :many
SELECT group_id, principal_id, source, expires_at
FROM group_memberships
WHERE group_id = ANY (sqlc.arg(groups)::uuid[])
ORDER BY group_id, principal_id;
