-- SPDX-License-Identifier: Apache-2.0

-- name: LoginCandidate :one
-- Who a login name means: a handle, or the verified e-mail address of a person, with the
-- password, its failures, and whether the key belongs to an active device of that person.
-- principals_handle_key, users_email_key, device_keys_thumbprint.
SELECT p.id, p.status, lc.password_hash, lc.failed_count, lc.failed_since, lc.failed_last_at, lc.must_change,
       EXISTS (
           SELECT 1 FROM device_keys k
           JOIN devices d ON d.id = k.device_id
           WHERE k.thumbprint = @thumbprint::bytea AND k.retired_at IS NULL AND d.principal_id = p.id AND d.state = 'active'
       ) AS known_device
FROM principals p
JOIN users u ON u.principal_id = p.id
LEFT JOIN local_credentials lc ON lc.principal_id = p.id
WHERE p.kind = 'person'
  AND p.id IN (
      SELECT h.id FROM principals h WHERE h.handle = @login::text
      UNION ALL
      SELECT e.principal_id FROM users e WHERE lower(e.email) = @login::text AND e.email_verified
  )
LIMIT 1;

-- name: LocalCredentialByPrincipal :one
SELECT password_hash, failed_count, failed_since, failed_last_at, must_change
FROM local_credentials
WHERE principal_id = @principal_id;

-- name: LocalCredentialSet :exec
INSERT INTO local_credentials (principal_id, password_hash, changed_at, must_change)
VALUES (@principal_id, @password_hash, @changed_at, false)
ON CONFLICT (principal_id) DO UPDATE
SET password_hash = EXCLUDED.password_hash, changed_at = EXCLUDED.changed_at, must_change = false,
    failed_count = 0, failed_since = NULL, failed_last_at = NULL, version = local_credentials.version + 1;

-- name: LocalCredentialRehash :exec
-- The same password under stronger parameters. A change of the password meanwhile wins.
UPDATE local_credentials SET password_hash = @new_hash, version = version + 1
WHERE principal_id = @principal_id AND password_hash = @old_hash;

-- name: LocalCredentialFailures :exec
-- Runs for unknown names too, with an ID that nobody has, so both take the same statements.
UPDATE local_credentials
SET failed_count = @failed_count, failed_since = sqlc.narg('failed_since'), failed_last_at = sqlc.narg('failed_last_at')
WHERE principal_id = @principal_id;

-- name: LocalCredentialDelete :exec
DELETE FROM local_credentials WHERE principal_id = @principal_id;

-- name: EnrollmentCodeByHash :one
-- A code with the state of its person. enrollment_codes_code_hash_key.
SELECT c.id, c.principal_id, c.purpose, c.expires_at, c.redeemed_at, c.revoked_at, p.status, p.handle, p.display_name, COALESCE(u.email, '') AS email
FROM enrollment_codes c
JOIN principals p ON p.id = c.principal_id
JOIN users u ON u.principal_id = c.principal_id
WHERE c.code_hash = @code_hash;

-- name: EnrollmentCodeByID :one
SELECT c.id, c.principal_id, c.purpose, c.expires_at, c.redeemed_at, c.revoked_at, p.status, p.handle, p.display_name, COALESCE(u.email, '') AS email
FROM enrollment_codes c
JOIN principals p ON p.id = c.principal_id
JOIN users u ON u.principal_id = c.principal_id
WHERE c.id = @id;

-- name: EnrollmentCodeInsert :exec
INSERT INTO enrollment_codes (id, principal_id, purpose, code_hash, expires_at, issued_by, issued_at)
VALUES (@id, @principal_id, @purpose, @code_hash, @expires_at, sqlc.narg('issued_by'), @issued_at);

-- name: EnrollmentCodesRevoke :exec
-- Revokes the open code of a person. enrollment_codes_open.
UPDATE enrollment_codes SET revoked_at = @at::timestamptz
WHERE principal_id = @principal_id AND redeemed_at IS NULL AND revoked_at IS NULL;

-- name: EnrollmentCodesRevokePurpose :exec
-- Revokes the open codes of a purpose, whoever they are for. Rare: only before setup.
UPDATE enrollment_codes SET revoked_at = @at::timestamptz
WHERE purpose = @purpose AND redeemed_at IS NULL AND revoked_at IS NULL;

-- name: EnrollmentCodeRedeem :execrows
-- Compare and swap: of two redemptions one touches the row.
UPDATE enrollment_codes SET redeemed_at = @at::timestamptz
WHERE id = @id AND redeemed_at IS NULL AND revoked_at IS NULL AND expires_at > @at::timestamptz;
