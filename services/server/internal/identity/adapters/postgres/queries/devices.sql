-- SPDX-License-Identifier: Apache-2.0

-- name: DeviceByKey :one
-- The living device of a key. device_keys_thumbprint, auth_login_flows_device.
SELECT d.id, d.principal_id, d.name, d.platform, d.client, d.client_version, d.state, d.pending_until, d.approved_via, d.revoke_reason,
       d.last_seen_at, COALESCE(d.ip_pseudonym, '') AS ip_pseudonym, d.created_at, d.version, f.id AS flow_id, f.jkt AS flow_jkt
FROM device_keys k
JOIN devices d ON d.id = k.device_id
LEFT JOIN auth_login_flows f ON f.device_id = d.id AND f.state = 'device_pending'
WHERE k.thumbprint = @thumbprint AND k.purpose = 'auth' AND k.retired_at IS NULL;

-- name: DeviceByID :one
-- Primary key, auth_login_flows_device.
SELECT d.id, d.principal_id, d.name, d.platform, d.client, d.client_version, d.state, d.pending_until, d.approved_via, d.revoke_reason,
       d.last_seen_at, COALESCE(d.ip_pseudonym, '') AS ip_pseudonym, d.created_at, d.version, f.id AS flow_id, f.jkt AS flow_jkt
FROM devices d
LEFT JOIN auth_login_flows f ON f.device_id = d.id AND f.state = 'device_pending'
WHERE d.id = @id;

-- name: DevicesOfPrincipal :many
-- Devices of a person that are not revoked, newest first, behind the ID of the page before.
-- devices_principal.
SELECT d.id, d.principal_id, d.name, d.platform, d.client, d.client_version, d.state, d.pending_until, d.approved_via, d.revoke_reason,
       d.last_seen_at, COALESCE(d.ip_pseudonym, '') AS ip_pseudonym, d.created_at, d.version, f.id AS flow_id, f.jkt AS flow_jkt
FROM devices d
LEFT JOIN auth_login_flows f ON f.device_id = d.id AND f.state = 'device_pending'
WHERE d.principal_id = @principal_id AND d.state <> 'revoked'
  AND (@state::text = '' OR d.state = @state::text)
  AND (sqlc.narg('before')::uuid IS NULL OR d.id < sqlc.narg('before')::uuid)
ORDER BY d.id DESC
LIMIT @limit_rows::int;

-- name: DevicesRevokedOfPrincipal :many
-- The revoked ones in the same order. devices_revoked.
SELECT d.id, d.principal_id, d.name, d.platform, d.client, d.client_version, d.state, d.pending_until, d.approved_via, d.revoke_reason,
       d.last_seen_at, COALESCE(d.ip_pseudonym, '') AS ip_pseudonym, d.created_at, d.version, f.id AS flow_id, f.jkt AS flow_jkt
FROM devices d
LEFT JOIN auth_login_flows f ON f.device_id = d.id AND f.state = 'device_pending'
WHERE d.principal_id = @principal_id AND d.state = 'revoked'
  AND (sqlc.narg('before')::uuid IS NULL OR d.id < sqlc.narg('before')::uuid)
ORDER BY d.id DESC
LIMIT @limit_rows::int;

-- name: DevicesLock :many
-- Locks the living devices of a principal, ascending. devices_principal.
SELECT d.id, d.principal_id, d.name, d.platform, d.client, d.client_version, d.state, d.pending_until, d.approved_via, d.revoke_reason,
       d.last_seen_at, COALESCE(d.ip_pseudonym, '') AS ip_pseudonym, d.created_at, d.version, f.id AS flow_id, f.jkt AS flow_jkt
FROM devices d
LEFT JOIN auth_login_flows f ON f.device_id = d.id AND f.state = 'device_pending'
WHERE d.principal_id = @principal_id AND d.state <> 'revoked'
ORDER BY d.id
FOR UPDATE OF d;

-- name: DeviceInsert :exec
INSERT INTO devices (id, principal_id, name, platform, client, client_version, state, approved_via, approved_by, approved_at, pending_until, picked_up_at, last_seen_at, ip_pseudonym, created_at)
VALUES (@id, @principal_id, @name, @platform, @client, @client_version, @state, sqlc.narg('approved_via'), sqlc.narg('approved_by'), sqlc.narg('approved_at'), sqlc.narg('pending_until'), sqlc.narg('picked_up_at'), @at::timestamptz, sqlc.narg('ip_pseudonym'), @at::timestamptz);

-- name: DeviceRename :exec
UPDATE devices SET name = @name, version = version + 1 WHERE id = @id AND state <> 'revoked';

-- name: DeviceApprove :exec
-- The caller holds the lock.
UPDATE devices
SET state = 'active', approved_via = @via::text, approved_by = @approved_by::uuid, approved_at = @at::timestamptz, pending_until = NULL, version = version + 1
WHERE id = @id AND state = 'pending';

-- name: DevicePickUp :exec
UPDATE devices SET picked_up_at = @at::timestamptz, last_seen_at = GREATEST(last_seen_at, @at::timestamptz)
WHERE id = @id AND state = 'active';

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

-- name: DevicesUndecided :many
-- Devices that have waited too long. devices_cleanup.
SELECT id, principal_id FROM devices
WHERE state = 'pending' AND pending_until <= @before::timestamptz
LIMIT @batch::int;

-- name: DevicesUncollected :many
-- Devices that were let in and never came for their session. devices_uncollected.
SELECT id, principal_id FROM devices
WHERE state = 'active' AND picked_up_at IS NULL AND approved_at < @before::timestamptz
ORDER BY approved_at
LIMIT @batch::int;

-- name: DeviceExpiredLock :one
-- Locks a device that one of the three still finds.
SELECT id FROM devices
WHERE id = @id
  AND (state = 'active' AND last_seen_at < @unused_before
       OR state = 'pending' AND pending_until <= @now::timestamptz
       OR state = 'active' AND picked_up_at IS NULL AND approved_at < @uncollected_before::timestamptz)
FOR UPDATE;

-- name: DevicesTouch :exec
-- Notes the last use of several devices, never backwards.
UPDATE devices d
SET last_seen_at = v.seen, ip_pseudonym = COALESCE(NULLIF(v.pseudonym, ''), d.ip_pseudonym)
FROM (SELECT unnest(@devices::uuid[]) AS id, unnest(@seen::timestamptz[]) AS seen, unnest(@pseudonyms::text[]) AS pseudonym) v
WHERE d.id = v.id AND d.last_seen_at < v.seen;
