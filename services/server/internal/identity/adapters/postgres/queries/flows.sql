-- SPDX-License-Identifier: Apache-2.0

-- name: FlowInsert :exec
INSERT INTO auth_login_flows (id, driver, purpose, principal_id, session_id, jkt, enrollment_code_id, device, state, created_at, expires_at)
VALUES (@id, @driver, @purpose, sqlc.narg('principal_id'), sqlc.narg('session_id'), @jkt, sqlc.narg('enrollment_code_id'), @device, 'open', @created_at, @expires_at);

-- name: FlowByID :one
SELECT id, driver, purpose, principal_id, session_id, jkt, enrollment_code_id, device_id, amr, proved_at, device, state, attempts, expires_at
FROM auth_login_flows
WHERE id = @id;

-- name: FlowConsume :execrows
-- Compare and swap: of two completions one touches the row.
UPDATE auth_login_flows SET state = 'consumed', external = NULL
WHERE id = @id AND state = 'open';

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
WHERE id = @id AND state = 'open';

-- name: FlowsDeleteExpired :execrows
-- A batch of flows that are over. auth_login_flows_expiry.
DELETE FROM auth_login_flows
WHERE id IN (SELECT f.id FROM auth_login_flows f WHERE f.expires_at < @before ORDER BY f.expires_at LIMIT @batch::int);
