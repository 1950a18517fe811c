-- SPDX-License-Identifier: Apache-2.0

-- name: SessionForAuthentication :one
-- Everything a request with an access token depends on, in one statement. Primary keys.
SELECT s.id, s.principal_id, s.device_id, s.kind, s.token_epoch, s.jkt, s.step_up_at, s.last_seen_at, s.idle_expires_at,
       s.expires_at, s.ended_at, p.kind AS principal_kind, p.status,
       COALESCE(u.guest, false) AS guest, (o.principal_id IS NOT NULL)::boolean AS owner, COALESCE(d.state, '') AS device_state,
       s.view_as_principal_id,
       -- A child lives no longer than its parent, a view no longer than its viewer is an active owner.
       ((s.parent_id IS NULL OR pa.ended_at IS NULL)
        AND (s.view_as_principal_id IS NULL OR vo.principal_id IS NOT NULL AND vp.status = 'active'))::boolean AS bound
FROM auth_sessions s
JOIN principals p ON p.id = s.principal_id
LEFT JOIN auth_sessions pa ON pa.id = s.parent_id
LEFT JOIN owners vo ON vo.principal_id = s.view_as_principal_id
LEFT JOIN principals vp ON vp.id = s.view_as_principal_id
LEFT JOIN users u ON u.principal_id = s.principal_id
LEFT JOIN owners o ON o.principal_id = s.principal_id
LEFT JOIN devices d ON d.id = s.device_id
WHERE s.id = @id;

-- name: SessionAlive :exec
-- One row while session, device and principal are alive. Primary keys.
SELECT 1 FROM auth_sessions s
JOIN principals p ON p.id = s.principal_id AND p.status = 'active'
LEFT JOIN devices d ON d.id = s.device_id
WHERE s.id = @id AND s.principal_id = @principal_id AND s.ended_at IS NULL
  AND s.expires_at > @at::timestamptz AND s.idle_expires_at > @at::timestamptz
  AND (s.device_id IS NULL OR d.state = 'active');

-- name: SessionInsert :exec
INSERT INTO auth_sessions (id, principal_id, device_id, kind, driver, provider_id, amr, auth_time, step_up_at, step_up_method, jkt, created_at, last_seen_at, idle_expires_at, expires_at)
VALUES (@id, @principal_id, @device_id, @kind, @driver, sqlc.narg('provider_id'), @amr, @auth_time, sqlc.narg('step_up_at'), sqlc.narg('step_up_method'), @jkt, @at::timestamptz, @at::timestamptz, @idle_expires_at, @expires_at);

-- name: SessionInsertView :exec
-- A session in which an owner, view_as_principal_id, looks at the instance as the person.
INSERT INTO auth_sessions (id, principal_id, device_id, parent_id, kind, driver, amr, auth_time, view_as_principal_id, jkt, created_at, last_seen_at, idle_expires_at, expires_at)
VALUES (@id, @principal_id, @device_id, @parent_id, 'view_as', @driver, @amr, @auth_time, @viewer::uuid, @jkt, @at::timestamptz, @at::timestamptz, @expires_at::timestamptz, @expires_at::timestamptz);

-- name: SessionViews :one
-- Whether a session has a living view. auth_sessions_parent.
SELECT EXISTS (SELECT FROM auth_sessions
               WHERE parent_id = @parent::uuid AND kind = 'view_as' AND ended_at IS NULL AND expires_at > @at::timestamptz);

-- name: SessionViewer :one
-- The owner behind a living view. Primary key.
SELECT view_as_principal_id::uuid AS viewer
FROM auth_sessions
WHERE id = @id AND kind = 'view_as' AND ended_at IS NULL AND expires_at > @at::timestamptz;

-- name: SessionByID :one
SELECT id, principal_id, device_id, parent_id, kind, driver, amr, auth_time, step_up_at, token_epoch, jkt, idle_expires_at, expires_at, ended_at
FROM auth_sessions
WHERE id = @id;

-- name: SessionLock :one
SELECT id, principal_id, device_id, parent_id, kind, driver, amr, auth_time, step_up_at, token_epoch, jkt, idle_expires_at, expires_at, ended_at
FROM auth_sessions
WHERE id = @id
FOR UPDATE;

-- name: SessionsLockLive :many
-- Locks the living sessions of a principal, ascending. auth_sessions_principal.
SELECT id, principal_id, device_id, parent_id, kind
FROM auth_sessions
WHERE principal_id = @principal_id AND ended_at IS NULL
ORDER BY id
FOR UPDATE;

-- name: SessionsEnd :exec
-- The caller holds the locks.
UPDATE auth_sessions SET ended_at = @at::timestamptz, end_reason = @reason::text
WHERE id = ANY(@sessions::uuid[]) AND ended_at IS NULL;

-- name: SessionStepUp :one
-- Notes a fresh proof; tokens of earlier epochs end with it.
UPDATE auth_sessions
SET step_up_at = @at::timestamptz, step_up_method = @method::text, token_epoch = token_epoch + 1
WHERE id = @id AND ended_at IS NULL AND kind = 'login'
RETURNING token_epoch;

-- name: SessionsOfPrincipal :many
-- The living sessions of a principal, newest first, behind the ID of the page before.
-- auth_sessions_principal.
SELECT s.id, s.kind, s.driver, s.created_at, s.last_seen_at, s.view_as_principal_id,
       s.device_id, COALESCE(d.name, '') AS device_name, COALESCE(d.state, '') AS device_state, COALESCE(d.ip_pseudonym, '') AS ip_pseudonym
FROM auth_sessions s
LEFT JOIN devices d ON d.id = s.device_id
WHERE s.principal_id = @principal_id AND s.ended_at IS NULL AND s.expires_at > @at::timestamptz AND s.idle_expires_at > @at::timestamptz
  AND (s.parent_id IS NULL OR EXISTS (SELECT FROM auth_sessions pa WHERE pa.id = s.parent_id AND pa.ended_at IS NULL))
  AND (sqlc.narg('before')::uuid IS NULL OR s.id < sqlc.narg('before')::uuid)
ORDER BY s.id DESC
LIMIT @limit_rows::int;

-- name: SessionsTouch :exec
-- Notes the last use of several sessions, never backwards; the idle end moves with it.
UPDATE auth_sessions s
SET last_seen_at = v.seen, idle_expires_at = LEAST(v.seen + make_interval(secs => @idle_seconds::float8), s.expires_at)
FROM (SELECT unnest(@sessions::uuid[]) AS id, unnest(@seen::timestamptz[]) AS seen) v
WHERE s.id = v.id AND s.ended_at IS NULL AND s.last_seen_at < v.seen;

-- name: FamilyInsert :exec
INSERT INTO refresh_token_families (id, session_id, generation, state, created_at)
VALUES (@id, @session_id, 1, 'active', @created_at);

-- name: FamilyByToken :one
-- Which family and session a refresh token belongs to. refresh_tokens_token_hash_key.
SELECT f.id, f.session_id, s.principal_id, s.jkt
FROM refresh_tokens t
JOIN refresh_token_families f ON f.id = t.family_id
JOIN auth_sessions s ON s.id = f.session_id
WHERE t.token_hash = @token_hash;

-- name: FamilyLock :one
-- Makes exchanges of one family serial. What was exchanged is read behind the lock, by
-- RefreshTokenByHash: this statement's snapshot may be older than the lock.
SELECT generation, state FROM refresh_token_families WHERE id = @id FOR UPDATE;

-- name: FamilyByID :one
SELECT generation, state FROM refresh_token_families WHERE id = @id;

-- name: FamilyAdvance :exec
UPDATE refresh_token_families SET generation = @generation WHERE id = @id;

-- name: FamiliesEnd :exec
UPDATE refresh_token_families SET state = 'ended', ended_reason = @reason::text
WHERE session_id = ANY(@sessions::uuid[]) AND state = 'active';

-- name: RefreshTokenByHash :one
-- The presented token, and the highest generation of its family that was exchanged.
-- refresh_tokens_token_hash_key and refresh_tokens_family_id_generation_key.
SELECT t.id, t.generation, t.expires_at, t.used_at, t.superseded_at,
       COALESCE((SELECT u.generation FROM refresh_tokens u WHERE u.family_id = t.family_id AND u.used_at IS NOT NULL
                 ORDER BY u.generation DESC LIMIT 1), 0)::bigint AS last_used
FROM refresh_tokens t
WHERE t.token_hash = @token_hash;

-- name: RefreshTokenInsert :exec
INSERT INTO refresh_tokens (id, family_id, generation, token_hash, issued_at, expires_at)
VALUES (@id, @family_id, @generation, @token_hash, @issued_at, @expires_at);

-- name: RefreshTokenUse :exec
UPDATE refresh_tokens SET used_at = @at::timestamptz WHERE id = @id AND used_at IS NULL;

-- name: RefreshTokenSupersede :exec
UPDATE refresh_tokens SET superseded_at = @at::timestamptz WHERE family_id = @family_id AND generation = @generation;

-- name: SessionConsumeStepUp :execrows
-- Compare and swap: of two acts that need the proof one takes it.
UPDATE auth_sessions SET step_up_at = NULL, step_up_method = NULL
WHERE id = @id AND ended_at IS NULL AND step_up_at > @after::timestamptz;
