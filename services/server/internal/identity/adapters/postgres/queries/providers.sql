-- SPDX-License-Identifier: Apache-2.0

-- name: IdentityProviders :many
-- All of them, by key. The module lets at most twenty in. identity_providers_key_key.
SELECT id, kind, key, display_name, icon, enabled, issuer, client_id, client_auth, client_secret_ref, scopes, claims, provisioning,
       link_by_email, trust_mfa, required_acr, allowed_domains, require_email, claim_ttl_ms, max_auth_age_ms, version, created_at, updated_at
FROM identity_providers
ORDER BY key
LIMIT @limit_rows::int;

-- name: IdentityProviderByID :one
SELECT id, kind, key, display_name, icon, enabled, issuer, client_id, client_auth, client_secret_ref, scopes, claims, provisioning,
       link_by_email, trust_mfa, required_acr, allowed_domains, require_email, claim_ttl_ms, max_auth_age_ms, version, created_at, updated_at
FROM identity_providers
WHERE id = @id;

-- name: IdentityProviderLock :one
-- Keeps the provider until the unit ends.
SELECT id, kind, key, display_name, icon, enabled, issuer, client_id, client_auth, client_secret_ref, scopes, claims, provisioning,
       link_by_email, trust_mfa, required_acr, allowed_domains, require_email, claim_ttl_ms, max_auth_age_ms, version, created_at, updated_at
FROM identity_providers
WHERE id = @id
FOR UPDATE;

-- name: IdentityProvidersLockAll :exec
-- Makes decisions about how many there are serial, until the unit ends.
SELECT pg_advisory_xact_lock(hashtextextended('identity_providers', 0));

-- name: IdentityProviderInsert :exec
INSERT INTO identity_providers (id, kind, key, display_name, icon, enabled, issuer, client_id, client_auth, client_secret_ref, scopes, claims,
    provisioning, link_by_email, trust_mfa, required_acr, allowed_domains, require_email, claim_ttl_ms, max_auth_age_ms, created_at, updated_at)
VALUES (@id, @kind, @key, @display_name, sqlc.narg('icon'), @enabled, sqlc.narg('issuer'), sqlc.narg('client_id'), sqlc.narg('client_auth'),
    sqlc.narg('client_secret_ref'), @scopes, @claims, @provisioning, @link_by_email, @trust_mfa, sqlc.narg('required_acr'), @allowed_domains,
    @require_email, @claim_ttl_ms, sqlc.narg('max_auth_age_ms'), @created_at, @created_at);

-- name: IdentityProviderUpdate :exec
UPDATE identity_providers
SET key = @key, display_name = @display_name, icon = sqlc.narg('icon'), enabled = @enabled, issuer = sqlc.narg('issuer'),
    client_id = sqlc.narg('client_id'), client_auth = sqlc.narg('client_auth'), client_secret_ref = sqlc.narg('client_secret_ref'),
    scopes = @scopes, claims = @claims, provisioning = @provisioning, link_by_email = @link_by_email, trust_mfa = @trust_mfa,
    required_acr = sqlc.narg('required_acr'), allowed_domains = @allowed_domains, require_email = @require_email,
    claim_ttl_ms = @claim_ttl_ms, max_auth_age_ms = sqlc.narg('max_auth_age_ms'), version = version + 1, updated_at = @updated_at
WHERE id = @id;

-- name: IdentityProviderDelete :exec
DELETE FROM identity_providers WHERE id = @id;

-- name: IdentityProviderInUse :one
-- Whether anybody is linked with the provider. user_identities_subject_key.
SELECT EXISTS (SELECT 1 FROM user_identities WHERE provider_id = @provider_id) AS in_use;

-- name: OwnersOnlyBy :one
-- Whether an active owner has no other way in than this provider. user_identities_principal.
SELECT EXISTS (
    SELECT 1 FROM owners o
    JOIN principals p ON p.id = o.principal_id AND p.status = 'active'
    WHERE EXISTS (SELECT 1 FROM user_identities i WHERE i.principal_id = o.principal_id AND i.provider_id = @provider_id)
      AND NOT (@local::boolean AND EXISTS (SELECT 1 FROM local_credentials lc WHERE lc.principal_id = o.principal_id))
      AND NOT (@passkey::boolean AND EXISTS (SELECT 1 FROM passkey_credentials pk WHERE pk.principal_id = o.principal_id AND pk.revoked_at IS NULL))
      AND NOT EXISTS (
          SELECT 1 FROM user_identities i
          JOIN identity_providers ip ON ip.id = i.provider_id AND ip.enabled
          WHERE i.principal_id = o.principal_id AND i.provider_id <> @provider_id
      )
) AS stranded;
