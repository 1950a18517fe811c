-- SPDX-License-Identifier: Apache-2.0

-- name: SpaceOrderLock :exec
-- Makes changes of the order of spaces queue up; it ends with the transaction.
SELECT pg_advisory_xact_lock(1001, 0);

-- name: SpaceGet :one
-- Finds a space by its key.
SELECT * FROM spaces WHERE id = @id;

-- name: SpaceLock :one
-- Finds a space and holds it against every other writer of the row, and with it the
-- order and the number of its channels.
SELECT * FROM spaces WHERE id = @id FOR UPDATE;

-- name: SpaceSiblings :many
-- Gives the order of all spaces, by spaces_order. Space.max bounds the rows.
SELECT id, ck, (archived_at IS NOT NULL)::bool AS archived FROM spaces ORDER BY ck, id;

-- name: SpaceInsert :exec
-- Fails on spaces_name_key when the name is taken.
INSERT INTO spaces (id, name, description, icon, color, ck, operator_agent_id, created_by, created_at, updated_at, version)
VALUES (@id, @name, @description, @icon, @color, @ck, @operator_agent_id, @created_by, @created_at, @created_at, 1);

-- name: SpaceUpdate :exec
-- Writes what may change. The caller holds the row.
UPDATE spaces
   SET name = @name, description = @description, icon = @icon, color = @color, ck = @ck, operator_agent_id = @operator_agent_id,
       archived_at = @archived_at, archived_by = @archived_by, updated_at = @updated_at, version = @version
 WHERE id = @id;

-- name: SpacesPage :many
-- Lists visible spaces in their order, behind a position, by spaces_order.
SELECT * FROM spaces
 WHERE (@all_places::bool OR id = ANY(@spaces::uuid[]))
   AND (@archived::bool OR archived_at IS NULL)
   AND (ck, id) > (@after_ck::text, @after_id::uuid)
 ORDER BY ck, id
 LIMIT @max_rows;

-- name: SpacesByID :many
-- Lists visible spaces by ID, for the snapshot.
SELECT s.* FROM spaces s
 WHERE (@all_places::bool OR s.id = ANY(@spaces::uuid[]))
   AND (NOT @only_targets::bool OR s.id = ANY(@targets::uuid[])
        OR s.id IN (SELECT c.space_id FROM channels c WHERE c.id = ANY(@targets::uuid[])))
   AND s.id > @after_id
 ORDER BY s.id
 LIMIT @max_rows;

-- name: SpacesAll :many
-- Reads every space, for the index of rights.
SELECT id, (archived_at IS NOT NULL)::bool AS archived FROM spaces ORDER BY id;
