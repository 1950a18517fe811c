-- SPDX-License-Identifier: Apache-2.0

-- name: TokenForAuthentication :one
-- Everything a request with an API token depends on, in one statement.
-- api_tokens_token_hash_key.
SELECT t.id, t.principal_id, t.scopes, CAST(t.allowed_cidrs AS text[]) AS cidrs, t.expires_at, t.last_used_at, t.revoked_at,
       p.kind AS principal_kind, p.status, COALESCE(u.guest, false) AS guest, (o.principal_id IS NOT NULL)::boolean AS owner
FROM api_tokens t
JOIN principals p ON p.id = t.principal_id
LEFT JOIN users u ON u.principal_id = t.principal_id
LEFT JOIN owners o ON o.principal_id = t.principal_id
WHERE t.token_hash = @token_hash;

-- name: TokenForRevalidation :one
SELECT t.id, t.principal_id, t.scopes, CAST(t.allowed_cidrs AS text[]) AS cidrs, t.expires_at, t.last_used_at, t.revoked_at,
       p.kind AS principal_kind, p.status, COALESCE(u.guest, false) AS guest, (o.principal_id IS NOT NULL)::boolean AS owner
FROM api_tokens t
JOIN principals p ON p.id = t.principal_id
LEFT JOIN users u ON u.principal_id = t.principal_id
LEFT JOIN owners o ON o.principal_id = t.principal_id
WHERE t.id = @id;

-- name: TokenAlive :exec
-- One row while token and principal are alive. Primary keys.
SELECT 1 FROM api_tokens t
JOIN principals p ON p.id = t.principal_id AND p.status = 'active'
WHERE t.id = @id AND t.principal_id = @principal_id AND t.revoked_at IS NULL
  AND (t.expires_at IS NULL OR t.expires_at > @at::timestamptz);

-- name: TokenInsert :exec
INSERT INTO api_tokens (id, principal_id, kind, name, hint, token_hash, scopes, allowed_cidrs, expires_at, created_by, created_at)
VALUES (@id, @principal_id, @kind, @name, @hint, @token_hash, @scopes, CAST(CAST(@cidrs AS text[]) AS cidr[]), sqlc.narg('expires_at'), @created_by, @created_at);

-- name: TokenByID :one
SELECT id, principal_id, kind, name, hint, scopes, CAST(allowed_cidrs AS text[]) AS cidrs, expires_at, created_by, created_at, last_used_at, revoked_at
FROM api_tokens
WHERE id = @id;

-- name: TokensOfPrincipal :many
-- The living tokens of a principal, newest first, behind the ID of the page before.
-- api_tokens_principal.
SELECT id, principal_id, kind, name, hint, scopes, CAST(allowed_cidrs AS text[]) AS cidrs, expires_at, created_by, created_at, last_used_at, revoked_at
FROM api_tokens
WHERE principal_id = @principal_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > @at::timestamptz)
  AND (sqlc.narg('before')::uuid IS NULL OR id < sqlc.narg('before')::uuid)
ORDER BY id DESC
LIMIT @limit_rows::int;

-- name: TokensCountLive :one
-- The caller holds the lock of the principal, so the count stays true until the unit ends.
SELECT count(*) FROM api_tokens
WHERE principal_id = @principal_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > @at::timestamptz);

-- name: TokenShorten :exec
-- Gives a replaced token an earlier end, never a later one.
UPDATE api_tokens SET expires_at = LEAST(COALESCE(expires_at, @expires_at::timestamptz), @expires_at::timestamptz)
WHERE id = @id AND revoked_at IS NULL;

-- name: TokenRevoke :execrows
UPDATE api_tokens SET revoked_at = @at::timestamptz, revoke_reason = @reason::text
WHERE id = @id AND revoked_at IS NULL;

-- name: TokensRevoke :exec
-- Revokes whatever a principal holds. api_tokens_principal.
UPDATE api_tokens SET revoked_at = @at::timestamptz, revoke_reason = @reason::text
WHERE principal_id = @principal_id AND revoked_at IS NULL;

-- name: TokensTouch :exec
-- Notes the last use of several tokens, never backwards.
UPDATE api_tokens t
SET last_used_at = v.seen, ip_pseudonym = COALESCE(NULLIF(v.pseudonym, ''), t.ip_pseudonym)
FROM (SELECT unnest(@tokens::uuid[]) AS id, unnest(@seen::timestamptz[]) AS seen, unnest(@pseudonyms::text[]) AS pseudonym) v
WHERE t.id = v.id AND t.revoked_at IS NULL AND (t.last_used_at IS NULL OR t.last_used_at < v.seen);
