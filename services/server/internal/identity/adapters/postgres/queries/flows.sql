-- SPDX-License-Identifier: Apache-2.0

-- name: FlowInsert :exec
INSERT INTO auth_login_flows (id, driver, purpose, principal_id, session_id, jkt, enrollment_code_id, device, state, created_at, expires_at,
    provider_id, state_hash, nonce_hash, pkce_wrapped, browser_hash, return_to)
VALUES (@id, @driver, @purpose, sqlc.narg('principal_id'), sqlc.narg('session_id'), @jkt, sqlc.narg('enrollment_code_id'), @device, 'open', @created_at, @expires_at,
    sqlc.narg('provider_id'), sqlc.narg('state_hash'), sqlc.narg('nonce_hash'), sqlc.narg('pkce_wrapped'), sqlc.narg('browser_hash'), sqlc.narg('return_to'));

-- name: FlowByID :one
SELECT id, driver, purpose, principal_id, session_id, jkt, enrollment_code_id, device_id, amr, proved_at, device, state, attempts, expires_at,
       provider_id, nonce_hash, pkce_wrapped, browser_hash, return_to, result_hash, external
FROM auth_login_flows
WHERE id = @id;

-- name: FlowByState :one
-- The flow that a browser comes back to. auth_login_flows_state_hash_key.
SELECT id, driver, purpose, principal_id, session_id, jkt, enrollment_code_id, device_id, amr, proved_at, device, state, attempts, expires_at,
       provider_id, nonce_hash, pkce_wrapped, browser_hash, return_to, result_hash, external
FROM auth_login_flows
WHERE state_hash = @state_hash;

-- name: FlowClaimState :execrows
-- Compare and swap: a state brings a browser back once.
UPDATE auth_login_flows SET state_hash = NULL
WHERE id = @id AND state = 'open' AND state_hash IS NOT NULL;

-- name: FlowExternalDone :execrows
-- What the provider said waits for the client, for as long as the result code lives.
UPDATE auth_login_flows
SET state = 'external_done', external = @external, result_hash = @result_hash, expires_at = @expires_at, pkce_wrapped = NULL, nonce_hash = NULL
WHERE id = @id AND state = 'open' AND state_hash IS NULL;

-- name: FlowFail :exec
UPDATE auth_login_flows SET state = 'failed', external = NULL, pkce_wrapped = NULL
WHERE id = @id AND state IN ('open', 'external_done');

-- name: FlowConsume :execrows
-- Compare and swap: of two completions one touches the row.
UPDATE auth_login_flows SET state = 'consumed', external = NULL
WHERE id = @id AND state IN ('open', 'external_done');

-- name: FlowHold :exec
-- Keeps a flow, which the running unit has consumed, for the device that waits.
UPDATE auth_login_flows
SET state = 'device_pending', principal_id = @principal_id, device_id = @device_id, amr = @amr, proved_at = @proved_at, expires_at = @expires_at
WHERE id = @id AND state = 'consumed';

-- name: FlowExtend :exec
UPDATE auth_login_flows SET expires_at = @expires_at WHERE id = @id AND state = 'device_pending';

-- name: FlowCollect :execrows
-- Compare and swap, as FlowConsume.
UPDATE auth_login_flows SET state = 'consumed'
WHERE id = @id AND state = 'device_pending';

-- name: FlowAttempt :exec
-- Counts a wrong attempt and ends the flow with the last one allowed.
UPDATE auth_login_flows
SET attempts = attempts + 1, state = CASE WHEN attempts + 1 >= @max_attempts::int THEN 'failed' ELSE state END
WHERE id = @id AND state IN ('open', 'external_done');

-- name: FlowsDeleteExpired :execrows
-- A batch of flows that are over. auth_login_flows_expiry.
DELETE FROM auth_login_flows
WHERE id IN (SELECT f.id FROM auth_login_flows f WHERE f.expires_at < @before ORDER BY f.expires_at LIMIT @batch::int);
