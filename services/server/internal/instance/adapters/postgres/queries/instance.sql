-- SPDX-License-Identifier: Apache-2.0

-- name: InstanceGet :one
SELECT id, setup_completed_at, sync_epoch, schema_version, min_server_version, db_system_identifier, db_timeline_id,
       created_at, version
FROM instance;

-- InstanceInsert adds the one row; the second of two concurrent ones changes nothing.
-- name: InstanceInsert :execrows
INSERT INTO instance (id, sync_epoch, schema_version, min_server_version, db_system_identifier, db_timeline_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (singleton) DO NOTHING;

-- InstanceNoteSchema never goes back, and names the database only when none is named.
-- name: InstanceNoteSchema :exec
UPDATE instance
SET schema_version = greatest(schema_version, sqlc.arg(schema_version)),
    min_server_version = CASE WHEN sqlc.arg(schema_version) >= schema_version
                              THEN sqlc.arg(min_server_version) ELSE min_server_version END,
    db_timeline_id = CASE WHEN db_system_identifier = '' THEN sqlc.narg(db_timeline_id)::bigint ELSE db_timeline_id END,
    db_system_identifier = CASE WHEN db_system_identifier = '' THEN sqlc.arg(db_system_identifier)
                                ELSE db_system_identifier END,
    version = version + 1;

-- InstanceStoreIdentity names the database after a restore; a new epoch tells every client that
-- positions it knows may mean something else now.
-- name: InstanceStoreIdentity :exec
UPDATE instance
SET db_system_identifier = sqlc.arg(db_system_identifier), db_timeline_id = sqlc.arg(db_timeline_id)::bigint,
    sync_epoch = coalesce(sqlc.narg(sync_epoch)::uuid, sync_epoch), version = version + 1;

-- name: InstanceCompleteSetup :exec
UPDATE instance SET setup_completed_at = sqlc.arg(at)::timestamptz, version = version + 1 WHERE setup_completed_at IS NULL;

-- name: SectionGet :one
SELECT document, version FROM instance_settings WHERE section = $1;

-- SectionPrepare makes the row that SectionLock locks.
-- name: SectionPrepare :exec
INSERT INTO instance_settings (section, document, version, updated_at)
VALUES (sqlc.arg(section), '{}', 1, now())
ON CONFLICT (section) DO NOTHING;

-- name: SectionLock :one
SELECT document, version FROM instance_settings WHERE section = $1 FOR UPDATE;

-- name: SectionSave :exec
UPDATE instance_settings
SET document = sqlc.arg(document), version = sqlc.arg(version), updated_by = sqlc.narg(updated_by),
    updated_at = sqlc.arg(updated_at)
WHERE section = sqlc.arg(section);

-- CounterRaise keeps the row locked until the transaction ends.
-- name: CounterRaise :one
SELECT instance_counter_raise(sqlc.arg(name), sqlc.arg(amount))::bigint AS value;

-- name: CounterValue :one
SELECT instance_counter_value(sqlc.arg(name))::bigint AS value;

-- KeyList gives all keys, retired ones too: old checkpoints are verified with them.
-- name: KeyList :many
SELECT id, kid, purpose, alg, public_jwk, state, published, created_at, activated_at, retired_at, unpublish_at, retire_reason
FROM server_signing_keys
ORDER BY id;

-- KeyLock keeps every other rotation of the purpose out until the transaction ends.
-- name: KeyLock :many
SELECT id FROM server_signing_keys WHERE purpose = $1 AND state <> 'retired' ORDER BY id FOR UPDATE;

-- name: KeyActivate :exec
UPDATE server_signing_keys SET state = 'active', activated_at = sqlc.arg(at)::timestamptz
WHERE id = sqlc.arg(id) AND state = 'next';

-- KeyUnpublish notes that keys are accepted no more; their time has decided that already.
-- name: KeyUnpublish :exec
UPDATE server_signing_keys SET published = false
WHERE published AND state = 'retired' AND unpublish_at <= sqlc.arg(now)::timestamptz;

-- KeyInsert fails by server_signing_keys_active_key when another process was first.
-- name: KeyInsert :exec
INSERT INTO server_signing_keys (id, kid, purpose, alg, public_jwk, state, published, created_at, activated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: KeyRetire :exec
UPDATE server_signing_keys
SET state = 'retired', retired_at = sqlc.arg(at)::timestamptz, retire_reason = sqlc.arg(reason)::text,
    unpublish_at = sqlc.narg(unpublish_at)::timestamptz, published = sqlc.arg(published)::boolean,
    activated_at = coalesce(activated_at, sqlc.arg(at)::timestamptz)
WHERE id = sqlc.arg(id) AND state <> 'retired';

-- name: FlagList :many
SELECT key, state, people, groups, percent, version, updated_by, updated_at FROM feature_flags ORDER BY key;

-- FlagPrepare makes the row that FlagLock locks.
-- name: FlagPrepare :exec
INSERT INTO feature_flags (key, state, version, updated_at)
VALUES (sqlc.arg(key), sqlc.arg(state), 1, sqlc.arg(at)::timestamptz)
ON CONFLICT (key) DO NOTHING;

-- name: FlagLock :one
SELECT key, state, people, groups, percent, version, updated_by, updated_at FROM feature_flags WHERE key = $1 FOR UPDATE;

-- name: FlagSave :exec
UPDATE feature_flags
SET state = sqlc.arg(state), people = sqlc.arg(people)::uuid[], groups = sqlc.arg(groups)::uuid[],
    percent = sqlc.arg(percent)::smallint, version = sqlc.arg(version), updated_by = sqlc.narg(updated_by),
    updated_at = sqlc.arg(at)::timestamptz
WHERE key = sqlc.arg(key);
