-- SPDX-License-Identifier: Apache-2.0

-- name: IdentityBySubject :one
-- Who the subject of a provider is here. user_identities_subject_key.
SELECT id, principal_id FROM user_identities
WHERE provider_id = @provider_id AND issuer = @issuer AND subject = @subject;

-- name: IdentitiesOfPrincipal :many
-- Oldest first. A person has at most fifty. user_identities_principal.
SELECT i.id, i.principal_id, i.provider_id, p.key AS provider_key, p.display_name AS provider_name, p.enabled, i.label, i.linked_at, i.last_login_at
FROM user_identities i
JOIN identity_providers p ON p.id = i.provider_id
WHERE i.principal_id = @principal_id
ORDER BY i.id
LIMIT @limit_rows::int;

-- name: IdentityInsert :exec
-- Of two links of one subject the second fails.
INSERT INTO user_identities (id, principal_id, provider_id, issuer, subject, label, linked_at, linked_by, last_login_at)
VALUES (@id, @principal_id, @provider_id, @issuer, @subject, @label, @linked_at, @linked_by, sqlc.narg('last_login_at'));

-- name: IdentityUsed :exec
UPDATE user_identities SET last_login_at = @at::timestamptz WHERE id = @id;

-- name: IdentityDelete :exec
DELETE FROM user_identities WHERE id = @id AND principal_id = @principal_id;

-- name: PersonByVerifiedEmail :one
-- The person with the verified address, and whether she is known at the provider. users_email_key.
SELECT u.principal_id, p.status, (o.principal_id IS NOT NULL)::boolean AS owner,
       EXISTS (SELECT 1 FROM user_identities i WHERE i.principal_id = u.principal_id AND i.provider_id = @provider_id) AS linked_here
FROM users u
JOIN principals p ON p.id = u.principal_id
LEFT JOIN owners o ON o.principal_id = u.principal_id
WHERE lower(u.email) = lower(@email::text) AND u.email_verified;

-- name: EmailHolder :one
-- Who has the address, verified or not. users_email_key.
SELECT principal_id FROM users WHERE lower(email) = lower(@email::text);
