-- SPDX-License-Identifier: Apache-2.0

-- name: PairingInsert :exec
INSERT INTO device_pairings (id, client_kind, device_code_hash, user_code_hash, device_name, platform, client, client_version, jwk, jkt, state, poll_interval_ms, ip_pseudonym, created_at, expires_at)
VALUES (@id, @client_kind, @device_code_hash, @user_code_hash, @device_name, @platform, @client, @client_version, @jwk, @jkt, 'pending', @poll_interval_ms, sqlc.narg('ip_pseudonym'), @created_at, @expires_at);

-- name: PairingByDeviceCode :one
-- device_pairings_device_code_hash_key.
SELECT id, client_kind, user_code_hash, device_name, platform, client, client_version, jwk, jkt, state, principal_id, decided_session_id,
       decided_at, poll_interval_ms, last_polled_at, ip_pseudonym, created_at, expires_at
FROM device_pairings
WHERE device_code_hash = @device_code_hash;

-- name: PairingByUserCode :one
-- The pairing that waits under a typed code. device_pairings_user_code.
SELECT id, client_kind, user_code_hash, device_name, platform, client, client_version, jwk, jkt, state, principal_id, decided_session_id,
       decided_at, poll_interval_ms, last_polled_at, ip_pseudonym, created_at, expires_at
FROM device_pairings
WHERE user_code_hash = @user_code_hash AND state = 'pending';

-- name: PairingLock :one
SELECT id, client_kind, user_code_hash, device_name, platform, client, client_version, jwk, jkt, state, principal_id, decided_session_id,
       decided_at, poll_interval_ms, last_polled_at, ip_pseudonym, created_at, expires_at
FROM device_pairings
WHERE id = @id
FOR UPDATE;

-- name: PairingPolled :exec
-- The caller holds the lock.
UPDATE device_pairings SET last_polled_at = @at::timestamptz, poll_interval_ms = @poll_interval_ms WHERE id = @id;

-- name: PairingDecide :exec
-- The caller holds the lock.
UPDATE device_pairings
SET state = @state, principal_id = @principal_id, decided_session_id = sqlc.narg('decided_session_id'), decided_at = @decided_at, expires_at = @expires_at
WHERE id = @id AND state = 'pending';

-- name: PairingConsume :exec
-- The caller holds the lock.
UPDATE device_pairings SET state = 'consumed' WHERE id = @id AND state = 'approved';

-- name: PairingsEnd :exec
-- What a person has let in and that has not come yet. device_pairings_approved.
UPDATE device_pairings SET state = 'expired' WHERE principal_id = @principal_id AND state = 'approved';

-- name: PairingsDeleteExpired :execrows
-- A batch of pairings that are over. device_pairings_expiry.
DELETE FROM device_pairings
WHERE id IN (SELECT p.id FROM device_pairings p WHERE p.expires_at < @before ORDER BY p.expires_at LIMIT @batch::int);
