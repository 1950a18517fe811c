-- SPDX-License-Identifier: Apache-2.0

-- name: AccountsByID :many
-- The named principals with the person's part; unknown IDs are left out. Primary keys.
SELECT p.id, p.kind, p.status, p.handle, p.display_name, p.avatar_file_id, p.former_handles, p.handle_changed_at,
       p.disabled_reason, p.version, p.created_at,
       (o.principal_id IS NOT NULL)::boolean AS owner, (u.principal_id IS NOT NULL)::boolean AS person,
       COALESCE(u.email, '') AS email, COALESCE(u.email_verified, false) AS email_verified, COALESCE(u.guest, false) AS guest,
       COALESCE(u.locale, '') AS locale, COALESCE(u.time_zone, '') AS time_zone, COALESCE(u.title, '') AS title,
       COALESCE(u.pronouns, '') AS pronouns, COALESCE(u.bio, '') AS bio, u.status_emoji, u.status_text, u.status_until,
       u.last_login_at, (lc.principal_id IS NOT NULL)::boolean AS has_password,
       (SELECT count(*) FROM passkey_credentials pk WHERE pk.principal_id = p.id AND pk.revoked_at IS NULL)::int AS passkeys,
       (SELECT count(*) FROM user_identities ui JOIN identity_providers ip ON ip.id = ui.provider_id AND ip.enabled WHERE ui.principal_id = p.id)::int AS identities
FROM principals p
LEFT JOIN users u ON u.principal_id = p.id
LEFT JOIN owners o ON o.principal_id = p.id
LEFT JOIN local_credentials lc ON lc.principal_id = p.id
WHERE p.id = ANY(@principals::uuid[]);

-- name: AccountsByHandle :many
-- The principals that have one of the handles now. principals_handle_key.
SELECT p.id, p.kind, p.status, p.handle, p.display_name, p.avatar_file_id, p.former_handles, p.handle_changed_at,
       p.disabled_reason, p.version, p.created_at,
       (o.principal_id IS NOT NULL)::boolean AS owner, (u.principal_id IS NOT NULL)::boolean AS person,
       COALESCE(u.email, '') AS email, COALESCE(u.email_verified, false) AS email_verified, COALESCE(u.guest, false) AS guest,
       COALESCE(u.locale, '') AS locale, COALESCE(u.time_zone, '') AS time_zone, COALESCE(u.title, '') AS title,
       COALESCE(u.pronouns, '') AS pronouns, COALESCE(u.bio, '') AS bio, u.status_emoji, u.status_text, u.status_until,
       u.last_login_at, (lc.principal_id IS NOT NULL)::boolean AS has_password,
       (SELECT count(*) FROM passkey_credentials pk WHERE pk.principal_id = p.id AND pk.revoked_at IS NULL)::int AS passkeys,
       (SELECT count(*) FROM user_identities ui JOIN identity_providers ip ON ip.id = ui.provider_id AND ip.enabled WHERE ui.principal_id = p.id)::int AS identities
FROM principals p
LEFT JOIN users u ON u.principal_id = p.id
LEFT JOIN owners o ON o.principal_id = p.id
LEFT JOIN local_credentials lc ON lc.principal_id = p.id
WHERE p.handle = ANY(@handles::text[]);

-- name: AccountsList :many
-- The directory by handle, behind the handle of the page before. principals_directory for
-- one kind, principals_handle_key otherwise. Null filters let everything pass.
SELECT p.id, p.kind, p.status, p.handle, p.display_name, p.avatar_file_id, p.former_handles, p.handle_changed_at,
       p.disabled_reason, p.version, p.created_at,
       (o.principal_id IS NOT NULL)::boolean AS owner, (u.principal_id IS NOT NULL)::boolean AS person,
       COALESCE(u.email, '') AS email, COALESCE(u.email_verified, false) AS email_verified, COALESCE(u.guest, false) AS guest,
       COALESCE(u.locale, '') AS locale, COALESCE(u.time_zone, '') AS time_zone, COALESCE(u.title, '') AS title,
       COALESCE(u.pronouns, '') AS pronouns, COALESCE(u.bio, '') AS bio, u.status_emoji, u.status_text, u.status_until,
       u.last_login_at, (lc.principal_id IS NOT NULL)::boolean AS has_password,
       (SELECT count(*) FROM passkey_credentials pk WHERE pk.principal_id = p.id AND pk.revoked_at IS NULL)::int AS passkeys,
       (SELECT count(*) FROM user_identities ui JOIN identity_providers ip ON ip.id = ui.provider_id AND ip.enabled WHERE ui.principal_id = p.id)::int AS identities
FROM principals p
LEFT JOIN users u ON u.principal_id = p.id
LEFT JOIN owners o ON o.principal_id = p.id
LEFT JOIN local_credentials lc ON lc.principal_id = p.id
WHERE p.handle > @after::text
  AND p.kind = ANY(@kinds::text[])
  AND p.status = @status::text
  AND (sqlc.narg('owner')::boolean IS NULL OR (o.principal_id IS NOT NULL) = sqlc.narg('owner')::boolean)
  AND (sqlc.narg('guest')::boolean IS NULL OR u.guest = sqlc.narg('guest')::boolean)
  AND (@query::text = '' OR p.search_text LIKE '%' || @query::text || '%')
ORDER BY p.handle
LIMIT @limit_rows::int;

-- name: AccountsSearch :many
-- Active principals whose handle or name holds the text, best first: the exact handle, the
-- beginning of a handle, the beginning of a word of the name, anything else. The pattern is
-- escaped by the caller. Reads the active part of the directory.
SELECT p.id, p.kind, p.status, p.handle, p.display_name, p.avatar_file_id, p.former_handles, p.handle_changed_at,
       p.disabled_reason, p.version, p.created_at,
       (o.principal_id IS NOT NULL)::boolean AS owner, (u.principal_id IS NOT NULL)::boolean AS person,
       COALESCE(u.email, '') AS email, COALESCE(u.email_verified, false) AS email_verified, COALESCE(u.guest, false) AS guest,
       COALESCE(u.locale, '') AS locale, COALESCE(u.time_zone, '') AS time_zone, COALESCE(u.title, '') AS title,
       COALESCE(u.pronouns, '') AS pronouns, COALESCE(u.bio, '') AS bio, u.status_emoji, u.status_text, u.status_until,
       u.last_login_at, (lc.principal_id IS NOT NULL)::boolean AS has_password,
       (SELECT count(*) FROM passkey_credentials pk WHERE pk.principal_id = p.id AND pk.revoked_at IS NULL)::int AS passkeys,
       (SELECT count(*) FROM user_identities ui JOIN identity_providers ip ON ip.id = ui.provider_id AND ip.enabled WHERE ui.principal_id = p.id)::int AS identities
FROM principals p
LEFT JOIN users u ON u.principal_id = p.id
LEFT JOIN owners o ON o.principal_id = p.id
LEFT JOIN local_credentials lc ON lc.principal_id = p.id
WHERE p.status = 'active'
  AND p.kind = ANY(@kinds::text[])
  AND p.search_text LIKE '%' || @pattern::text || '%'
ORDER BY CASE WHEN p.handle = @query::text THEN 0
              WHEN p.handle LIKE @pattern::text || '%' THEN 1
              WHEN p.search_text LIKE '% ' || @pattern::text || '%' THEN 2
              ELSE 3 END, p.handle
LIMIT @limit_rows::int;

-- name: PrincipalLock :one
-- Locks the principal until the unit ends. A writer that comes later waits.
SELECT id FROM principals WHERE id = @id FOR UPDATE;

-- name: PrincipalShare :one
-- Keeps the principal from being changed or disabled until the unit ends.
SELECT status FROM principals WHERE id = @id FOR SHARE;

-- name: PrincipalInsert :exec
INSERT INTO principals (id, kind, handle, display_name, search_text, created_by, created_at)
VALUES (@id, @kind, @handle, @display_name, @search_text, sqlc.narg('created_by'), @created_at);

-- name: PrincipalUpdateNames :exec
-- The caller holds the row lock.
UPDATE principals
SET handle = @handle, display_name = @display_name, search_text = @search_text, former_handles = @former_handles,
    handle_changed_at = sqlc.narg('handle_changed_at'), version = version + 1
WHERE id = @id;

-- name: PrincipalDisable :exec
UPDATE principals
SET status = 'disabled', disabled_at = @at::timestamptz, disabled_by = sqlc.narg('disabled_by'), disabled_reason = @reason::text, version = version + 1
WHERE id = @id;

-- name: PrincipalEnable :exec
UPDATE principals
SET status = 'active', disabled_at = NULL, disabled_by = NULL, disabled_reason = NULL, version = version + 1
WHERE id = @id;

-- name: HandleLock :exec
-- Makes decisions about one handle serial. Callers that take several ascend.
SELECT pg_advisory_xact_lock(hashtextextended('handle:' || @handle::text, 0));

-- name: HandleHolder :one
-- The principal that has the handle, or gave it up and still holds it. principals_handle_key
-- and principals_former_handles. A principal that has it comes first.
SELECT p.id, (p.handle = @handle::text)::boolean AS present
FROM principals p
WHERE p.handle = @handle::text
   OR (p.former_handles @> jsonb_build_array(jsonb_build_object('handle', @handle::text))
       AND EXISTS (SELECT 1 FROM jsonb_array_elements(p.former_handles) f
                   WHERE f ->> 'handle' = @handle::text AND (f ->> 'until')::timestamptz > @at::timestamptz))
ORDER BY present DESC
LIMIT 1;

-- name: UserInsert :exec
INSERT INTO users (principal_id, email, guest, locale, time_zone)
VALUES (@principal_id, sqlc.narg('email'), @guest, @locale, @time_zone);

-- name: UserUpdateProfile :exec
-- The caller holds the lock of the principal's row.
UPDATE users
SET locale = @locale, time_zone = @time_zone, title = @title, pronouns = @pronouns, bio = @bio,
    status_emoji = sqlc.narg('status_emoji'), status_text = sqlc.narg('status_text'), status_until = sqlc.narg('status_until')
WHERE principal_id = @principal_id;

-- name: UserUpdateAdministered :exec
-- The caller holds the lock of the principal's row.
UPDATE users
SET email = sqlc.narg('email'), email_verified = @email_verified, guest = @guest, title = @title
WHERE principal_id = @principal_id;

-- name: UserSetVerifiedEmail :exec
-- The caller holds the lock of the principal's row.
UPDATE users SET email = sqlc.narg('email'), email_verified = @email_verified WHERE principal_id = @principal_id;

-- name: UserSetEmail :exec
UPDATE users SET email = sqlc.narg('email'), email_verified = false WHERE principal_id = @principal_id;

-- name: UserLoggedIn :exec
UPDATE users SET last_login_at = @at::timestamptz WHERE principal_id = @principal_id;

-- name: OwnersLock :many
-- Locks all owners in ascending order, so two changes of owners follow each other.
SELECT principal_id FROM owners ORDER BY principal_id FOR UPDATE;

-- name: OwnersActive :many
-- The owners who can act, ascending.
SELECT o.principal_id
FROM owners o
JOIN principals p ON p.id = o.principal_id AND p.status = 'active'
ORDER BY o.principal_id;

-- name: OwnersAbleToLogin :one
-- Whether an active owner has a way to sign in.
SELECT EXISTS (
    SELECT 1 FROM owners o
    JOIN principals p ON p.id = o.principal_id AND p.status = 'active'
    WHERE EXISTS (SELECT 1 FROM local_credentials lc WHERE lc.principal_id = o.principal_id)
       OR EXISTS (SELECT 1 FROM passkey_credentials pk WHERE pk.principal_id = o.principal_id AND pk.revoked_at IS NULL)
       OR EXISTS (SELECT 1 FROM user_identities ui JOIN identity_providers ip ON ip.id = ui.provider_id AND ip.enabled WHERE ui.principal_id = o.principal_id)
) AS able;

-- name: OwnersShutOut :one
-- Whether an active owner has no way in that is switched on.
SELECT EXISTS (
    SELECT 1 FROM owners o
    JOIN principals p ON p.id = o.principal_id AND p.status = 'active'
    WHERE NOT (@local::boolean AND EXISTS (SELECT 1 FROM local_credentials lc WHERE lc.principal_id = o.principal_id))
      AND NOT (@passkey::boolean AND EXISTS (SELECT 1 FROM passkey_credentials pk
                                             WHERE pk.principal_id = o.principal_id AND pk.revoked_at IS NULL))
      AND NOT EXISTS (SELECT 1 FROM user_identities ui
                      JOIN identity_providers ip ON ip.id = ui.provider_id AND ip.enabled
                      WHERE ui.principal_id = o.principal_id)
) AS shut_out;

-- name: OwnerInsert :exec
INSERT INTO owners (principal_id, added_by, added_at)
VALUES (@principal_id, sqlc.narg('added_by'), @added_at)
ON CONFLICT (principal_id) DO NOTHING;

-- name: OwnerDelete :exec
DELETE FROM owners WHERE principal_id = @principal_id;

-- name: OwnersDeleteOthers :exec
DELETE FROM owners WHERE principal_id <> @principal_id;

-- name: OwnerNames :many
-- The display names of active owners, for the check against look-alikes. Few rows.
SELECT p.id, p.display_name
FROM owners o
JOIN principals p ON p.id = o.principal_id AND p.status = 'active'
ORDER BY p.id;

-- name: PrincipalStates :many
-- What decisions need of the named principals. Primary keys.
SELECT p.id, p.kind, p.status, (o.principal_id IS NOT NULL)::boolean AS owner, COALESCE(u.guest, false) AS guest
FROM principals p
LEFT JOIN users u ON u.principal_id = p.id
LEFT JOIN owners o ON o.principal_id = p.id
WHERE p.id = ANY(@principals::uuid[]);

-- name: PeopleActive :many
-- All active people, by ID; read when rights of everybody are computed.
SELECT p.id, (o.principal_id IS NOT NULL)::boolean AS owner, u.guest
FROM principals p
JOIN users u ON u.principal_id = p.id
LEFT JOIN owners o ON o.principal_id = p.id
WHERE p.kind = 'person' AND p.status = 'active'
ORDER BY p.id;
