-- SPDX-License-Identifier: Apache-2.0

-- name: ChallengeInsert :exec
INSERT INTO auth_challenges (id, kind, flow_id, session_id, principal_id, challenge, expires_at)
VALUES (@id, @kind, sqlc.narg('flow_id'), sqlc.narg('session_id'), sqlc.narg('principal_id'), @challenge, @expires_at);

-- name: ChallengeByValue :one
-- The unique key of challenge.
SELECT id, kind, flow_id, session_id, principal_id, expires_at, consumed_at
FROM auth_challenges
WHERE challenge = @challenge;

-- name: ChallengeConsume :execrows
-- Compare and swap: of two answers to one challenge one touches the row.
UPDATE auth_challenges SET consumed_at = @at::timestamptz
WHERE id = @id AND consumed_at IS NULL AND expires_at > @at::timestamptz;

-- name: ChallengesDeleteExpired :execrows
DELETE FROM auth_challenges
WHERE id IN (SELECT c.id FROM auth_challenges c WHERE c.expires_at <= @before LIMIT @batch::int);

-- name: PasskeyInsert :exec
INSERT INTO passkey_credentials (id, principal_id, credential_id, public_key, alg, sign_count, aaguid, transports,
                                 backup_eligible, backed_up, name, created_at)
VALUES (@id, @principal_id, @credential_id, @public_key, @alg, @sign_count, @aaguid, @transports::text[],
        @backup_eligible, @backed_up, @name, @created_at);

-- name: PasskeysOfPrincipal :many
-- The living passkeys of a person, newest first; few rows by rule. passkey_credentials_principal.
SELECT id, principal_id, credential_id, public_key, alg, sign_count, transports, backup_eligible, backed_up, name, created_at, last_used_at
FROM passkey_credentials
WHERE principal_id = @principal_id AND revoked_at IS NULL
ORDER BY id DESC
LIMIT @limit_rows::int;

-- name: PasskeyByCredential :one
-- A living passkey, with whether its person may act. passkey_credentials_credential_key.
SELECT c.id, c.principal_id, c.credential_id, c.public_key, c.alg, c.sign_count, c.transports, c.backup_eligible, c.backed_up, c.name,
       c.created_at, c.last_used_at, (p.status = 'active')::boolean AS active
FROM passkey_credentials c
JOIN principals p ON p.id = c.principal_id
WHERE c.credential_id = @credential_id AND c.revoked_at IS NULL;

-- name: PasskeyUse :execrows
-- Compare and swap on the counter: a copy of the authenticator that signs at the same time
-- does not pass beside the original.
UPDATE passkey_credentials
SET sign_count = @sign_count, backed_up = @backed_up, last_used_at = @at::timestamptz
WHERE id = @id AND revoked_at IS NULL AND sign_count = @before_count;

-- name: PasskeyRename :execrows
UPDATE passkey_credentials SET name = @name
WHERE id = @id AND principal_id = @principal_id AND revoked_at IS NULL;

-- name: PasskeyRevoke :execrows
UPDATE passkey_credentials SET revoked_at = @at::timestamptz
WHERE id = @id AND principal_id = @principal_id AND revoked_at IS NULL;

-- name: PasskeysRevoke :exec
UPDATE passkey_credentials SET revoked_at = @at::timestamptz
WHERE principal_id = @principal_id AND revoked_at IS NULL;
