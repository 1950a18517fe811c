-- SPDX-License-Identifier: Apache-2.0

-- name: DeviceByKey :one
-- The living device of a key. device_keys_thumbprint.
SELECT d.id, d.principal_id, d.name, d.state
FROM device_keys k
JOIN devices d ON d.id = k.device_id
WHERE k.thumbprint = @thumbprint AND k.purpose = 'auth' AND k.retired_at IS NULL;

-- name: DevicesLock :many
-- Locks the living devices of a principal, ascending. devices_principal.
SELECT id FROM devices WHERE principal_id = @principal_id AND state <> 'revoked' ORDER BY id FOR UPDATE;

-- name: DeviceInsert :exec
INSERT INTO devices (id, principal_id, name, platform, client, client_version, state, approved_via, approved_at, picked_up_at, last_seen_at, ip_pseudonym, created_at)
VALUES (@id, @principal_id, @name, @platform, @client, @client_version, 'active', @approved_via::text, @at::timestamptz, @at::timestamptz, @at::timestamptz, sqlc.narg('ip_pseudonym'), @at::timestamptz);

-- name: DeviceKeyInsert :exec
INSERT INTO device_keys (id, device_id, purpose, jwk, thumbprint, created_at)
VALUES (@id, @device_id, 'auth', @jwk, @thumbprint, @created_at);

-- name: DeviceIntroduce :exec
-- What a known device says about itself at a further login.
UPDATE devices
SET client_version = @client_version, last_seen_at = @at::timestamptz, ip_pseudonym = sqlc.narg('ip_pseudonym')
WHERE id = @id AND state = 'active';

-- name: DevicesRevoke :exec
-- The caller holds the locks.
UPDATE devices
SET state = 'revoked', revoked_at = @at::timestamptz, revoke_reason = @reason::text, version = version + 1
WHERE id = ANY(@devices::uuid[]) AND state <> 'revoked';

-- name: DeviceKeysRetire :exec
UPDATE device_keys SET retired_at = @at::timestamptz
WHERE device_id = ANY(@devices::uuid[]) AND retired_at IS NULL;

-- name: DevicesUnused :many
-- Active devices nobody has used since, oldest first. devices_cleanup.
SELECT id, principal_id FROM devices
WHERE state = 'active' AND last_seen_at < @before
ORDER BY last_seen_at
LIMIT @batch::int;

-- name: DeviceUnusedLock :one
-- Locks a device that is still active and unused.
SELECT id FROM devices WHERE id = @id AND state = 'active' AND last_seen_at < @before FOR UPDATE;

-- name: DevicesTouch :exec
-- Notes the last use of several devices, never backwards.
UPDATE devices d
SET last_seen_at = v.seen, ip_pseudonym = COALESCE(NULLIF(v.pseudonym, ''), d.ip_pseudonym)
FROM (SELECT unnest(@devices::uuid[]) AS id, unnest(@seen::timestamptz[]) AS seen, unnest(@pseudonyms::text[]) AS pseudonym) v
WHERE d.id = v.id AND d.last_seen_at < v.seen;
