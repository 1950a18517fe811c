-- SPDX-License-Identifier: Apache-2.0

-- HeldRead gives, in one snapshot, the version of all rights and every grant that has come to
-- the principals: direct, through a membership, and those of the group of all members with no
-- principal. The version is asked for once, as a query of its own: asked for with every row it
-- costs more than the rows. Rows without a level are the memberships themselves, and the one without a
-- principal carries the version when there is nothing else. Served by grants_principal,
-- group_memberships_principal and grants_group.
-- name: HeldRead :many
SELECT (SELECT instance_counter_value('permission_version'))::bigint AS version, r.principal_id, r.everyone::boolean AS everyone,
       r.target_kind, r.target_id, r.level, r.capabilities::text[] AS capabilities, r.expires_at, r.group_id
FROM (
    SELECT NULL::uuid AS principal_id, false AS everyone, ''::text AS target_kind, NULL::uuid AS target_id,
           ''::text AS level, '{}'::text[] AS capabilities, NULL::timestamptz AS expires_at, NULL::uuid AS group_id
    UNION ALL
    SELECT m.principal_id, false, '', NULL, '', '{}', m.expires_at, m.group_id
    FROM group_memberships m
    WHERE m.principal_id = ANY (sqlc.arg(principals)::uuid[])
    UNION ALL
    SELECT g.principal_id, false, g.target_kind, g.target_id, g.level, g.capabilities, g.expires_at, NULL
    FROM grants g
    WHERE g.principal_id = ANY (sqlc.arg(principals)::uuid[])
    UNION ALL
    SELECT m.principal_id, false, g.target_kind, g.target_id, g.level, g.capabilities,
           LEAST(g.expires_at, m.expires_at), NULL
    FROM group_memberships m
    JOIN grants g ON g.group_id = m.group_id
    WHERE m.principal_id = ANY (sqlc.arg(principals)::uuid[])
    UNION ALL
    SELECT NULL::uuid, true, g.target_kind, g.target_id, g.level, g.capabilities, g.expires_at, NULL
    FROM groups e
    JOIN grants g ON g.group_id = e.id
    WHERE e.kind = 'everyone'
) r;

-- SubjectsOn lists who has a grant on one of the targets; the row of the group of all members
-- has no principal. Served by grants_target.
-- name: SubjectsOn :many
SELECT DISTINCT coalesce(g.principal_id, m.principal_id)::uuid AS principal_id
FROM grants g
LEFT JOIN group_memberships m ON m.group_id = g.group_id
WHERE (g.target_kind IN ('space', 'channel') AND g.target_id = ANY (sqlc.arg(targets)::uuid[])
       OR sqlc.arg(with_instance)::boolean AND g.target_kind = 'instance')
  AND coalesce(g.principal_id, m.principal_id) IS NOT NULL;

-- EveryoneHasGrantOn tells whether the group of all members has a grant on one of the targets.
-- name: EveryoneHasGrantOn :one
SELECT EXISTS (
    SELECT
    FROM groups e
    JOIN grants g ON g.group_id = e.id
    WHERE e.kind = 'everyone'
      AND (g.target_kind IN ('space', 'channel') AND g.target_id = ANY (sqlc.arg(targets)::uuid[])
       OR sqlc.arg(with_instance)::boolean AND g.target_kind = 'instance'));

-- SubjectsAll lists every principal that a grant or a membership names.
-- name: SubjectsAll :many
SELECT principal_id::uuid AS principal_id FROM grants WHERE principal_id IS NOT NULL
UNION
SELECT principal_id FROM group_memberships;

-- SourcesRead gives the grants that have come to principals and the way they came: direct,
-- through a membership, and those of the group of all members with no principal. With targets
-- only those on them. Served like HeldRead.
-- name: SourcesRead :many
SELECT r.principal_id, r.everyone::boolean AS everyone, r.grant_id::uuid AS grant_id, r.group_id, r.target_kind,
       r.target_id, r.level, r.capabilities::text[] AS capabilities, r.grant_until, r.member_until
FROM (
    SELECT g.principal_id, false AS everyone, g.id AS grant_id, NULL::uuid AS group_id, g.target_kind, g.target_id,
           g.level, g.capabilities, g.expires_at AS grant_until, NULL::timestamptz AS member_until
    FROM grants g
    WHERE g.principal_id = ANY (sqlc.arg(principals)::uuid[])
    UNION ALL
    SELECT m.principal_id, false, g.id, g.group_id, g.target_kind, g.target_id, g.level, g.capabilities, g.expires_at,
           m.expires_at
    FROM group_memberships m
    JOIN grants g ON g.group_id = m.group_id
    WHERE m.principal_id = ANY (sqlc.arg(principals)::uuid[])
    UNION ALL
    SELECT NULL::uuid, true, g.id, g.group_id, g.target_kind, g.target_id, g.level, g.capabilities, g.expires_at, NULL
    FROM groups e
    JOIN grants g ON g.group_id = e.id
    WHERE e.kind = 'everyone'
) r
WHERE sqlc.arg(everywhere)::boolean OR r.target_kind = 'instance' OR r.target_id = ANY (sqlc.arg(targets)::uuid[]);
