-- SPDX-License-Identifier: Apache-2.0

-- Every statement removes one batch, oldest first, and passes over rows that somebody holds.

-- name: RefreshTokensPurge :execrows
-- Tokens that were exchanged or ended. The newest of a living family stays. refresh_tokens_issued.
DELETE FROM refresh_tokens
WHERE id IN (
    SELECT t.id FROM refresh_tokens t
    WHERE t.issued_at < @cutoff::timestamptz
      AND (t.used_at IS NOT NULL OR t.superseded_at IS NOT NULL OR t.expires_at < @cutoff::timestamptz)
    ORDER BY t.issued_at LIMIT @batch::int FOR UPDATE SKIP LOCKED
);

-- name: SessionsPurge :execrows
-- Sessions that ended or expired, with what is left of their families. A session stays until
-- its children are gone. auth_sessions_over, auth_sessions_children.
WITH over AS (
    SELECT s.id FROM auth_sessions s
    WHERE COALESCE(s.ended_at, s.expires_at) < @cutoff::timestamptz
      AND NOT EXISTS (SELECT 1 FROM auth_sessions c WHERE c.parent_id = s.id)
    ORDER BY COALESCE(s.ended_at, s.expires_at) LIMIT @batch::int FOR UPDATE OF s SKIP LOCKED
), families AS (
    DELETE FROM refresh_token_families f WHERE f.session_id IN (SELECT id FROM over) RETURNING f.id
), tokens AS (
    DELETE FROM refresh_tokens t WHERE t.family_id IN (SELECT id FROM families)
)
DELETE FROM auth_sessions WHERE id IN (SELECT id FROM over);

-- name: DevicesPurge :execrows
-- Revoked devices with their keys, once no session refers to them. devices_over,
-- auth_sessions_device, device_keys_of.
WITH over AS (
    SELECT d.id FROM devices d
    WHERE d.state = 'revoked' AND d.revoked_at < @cutoff::timestamptz
      AND NOT EXISTS (SELECT 1 FROM auth_sessions s WHERE s.device_id = d.id)
    ORDER BY d.revoked_at LIMIT @batch::int FOR UPDATE OF d SKIP LOCKED
), keys AS (
    DELETE FROM device_keys k WHERE k.device_id IN (SELECT id FROM over)
)
DELETE FROM devices WHERE id IN (SELECT id FROM over);

-- name: TokensPurge :execrows
-- API tokens that were revoked or expired. api_tokens_over.
DELETE FROM api_tokens
WHERE id IN (
    SELECT t.id FROM api_tokens t WHERE COALESCE(t.revoked_at, t.expires_at) < @cutoff::timestamptz
    ORDER BY COALESCE(t.revoked_at, t.expires_at) LIMIT @batch::int FOR UPDATE SKIP LOCKED
);

-- name: PasskeysPurge :execrows
-- Revoked passkeys. passkey_credentials_over.
DELETE FROM passkey_credentials
WHERE id IN (
    SELECT p.id FROM passkey_credentials p WHERE p.revoked_at < @cutoff::timestamptz
    ORDER BY p.revoked_at LIMIT @batch::int FOR UPDATE SKIP LOCKED
);

-- name: EnrollmentCodesPurge :execrows
-- Codes that were redeemed, revoked or expired; the flows that named them are long gone.
-- enrollment_codes_over.
DELETE FROM enrollment_codes
WHERE id IN (
    SELECT c.id FROM enrollment_codes c WHERE COALESCE(c.redeemed_at, c.revoked_at, c.expires_at) < @cutoff::timestamptz
    ORDER BY COALESCE(c.redeemed_at, c.revoked_at, c.expires_at) LIMIT @batch::int FOR UPDATE SKIP LOCKED
);
