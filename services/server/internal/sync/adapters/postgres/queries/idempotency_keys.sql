-- SPDX-License-Identifier: Apache-2.0

-- name: KeyClaim :one
-- Claims a key. A concurrent twin waits here on the primary key until the first request
-- ends; without a row returned the key existed before.
INSERT INTO idempotency_keys (scope_id, operation_id, key, request_hash, state, created_at, expires_at)
VALUES (sqlc.arg(scope_id), sqlc.arg(operation_id), sqlc.arg(key), sqlc.arg(request_hash), 'in_progress', sqlc.arg(created_at), sqlc.arg(expires_at))
ON CONFLICT (scope_id, operation_id, key) DO UPDATE
   SET request_hash = EXCLUDED.request_hash, state = 'in_progress', status = NULL, headers = NULL, body = NULL,
       secret_shown = false, resource_id = NULL, created_at = EXCLUDED.created_at, expires_at = EXCLUDED.expires_at
 WHERE idempotency_keys.expires_at <= EXCLUDED.created_at
RETURNING scope_id;

-- name: KeyGet :one
SELECT request_hash, state, status, headers, body, secret_shown, resource_id
  FROM idempotency_keys
 WHERE scope_id = sqlc.arg(scope_id) AND operation_id = sqlc.arg(operation_id) AND key = sqlc.arg(key);

-- name: KeyComplete :exec
UPDATE idempotency_keys
   SET state = 'completed', status = sqlc.arg(status), headers = sqlc.arg(headers), body = sqlc.narg(body),
       secret_shown = sqlc.arg(secret_shown), resource_id = sqlc.narg(resource_id)
 WHERE scope_id = sqlc.arg(scope_id) AND operation_id = sqlc.arg(operation_id) AND key = sqlc.arg(key);

-- name: KeyStoreFinal :exec
-- Stores the final error of a request whose unit was rolled back. An answer that a twin has
-- stored meanwhile stays.
INSERT INTO idempotency_keys (scope_id, operation_id, key, request_hash, state, status, headers, body, created_at, expires_at)
VALUES (sqlc.arg(scope_id), sqlc.arg(operation_id), sqlc.arg(key), sqlc.arg(request_hash), 'completed', sqlc.arg(status),
        sqlc.arg(headers), sqlc.arg(body), sqlc.arg(created_at), sqlc.arg(expires_at))
ON CONFLICT (scope_id, operation_id, key) DO NOTHING;

-- name: KeysDeleteExpired :execrows
-- Served by idempotency_keys_expiry; rows a request holds are left for the next round.
DELETE FROM idempotency_keys k
 USING (SELECT e.scope_id, e.operation_id, e.key FROM idempotency_keys e
         WHERE e.expires_at <= sqlc.arg(before) ORDER BY e.expires_at LIMIT sqlc.arg(max_rows) FOR UPDATE SKIP LOCKED) old
 WHERE k.scope_id = old.scope_id AND k.operation_id = old.operation_id AND k.key = old.key;
