-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- Who acts and how they prove it: principals, people, credentials, devices, sessions and
-- API tokens. Tables of passkeys, providers and pairings come with their features; columns
-- that will point to them carry no foreign key yet.

-- +goose Up

-- Every member: a person, an agent or an app. A row is never deleted, because authorship
-- refers to it for ever.
CREATE TABLE principals (
    id                uuid        PRIMARY KEY,
    kind              text        NOT NULL CHECK (kind IN ('person', 'agent', 'app')),
    status            text        NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled', 'erased')),
    handle            text        NOT NULL CONSTRAINT principals_handle_key UNIQUE,
    display_name      text        NOT NULL CHECK (char_length(display_name) BETWEEN 1 AND 80),
    avatar_file_id    uuid,
    -- [{"handle": ..., "until": ...}]: names that still lead here and are held back.
    former_handles    jsonb       NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(former_handles) = 'array'),
    handle_changed_at timestamptz,
    disabled_at       timestamptz,
    disabled_by       uuid,
    disabled_reason   text        CHECK (disabled_reason ~ '^[a-z0-9][a-z0-9_.:-]{0,63}$'),
    -- Case-folded handle and display name.
    search_text       text        NOT NULL,
    version           bigint      NOT NULL DEFAULT 1,
    created_by        uuid,
    created_at        timestamptz NOT NULL,
    CHECK ((status = 'active') = (disabled_at IS NULL))
);

CREATE INDEX principals_former_handles ON principals USING gin (former_handles jsonb_path_ops);
CREATE INDEX principals_directory ON principals (kind, status, handle);

CREATE TABLE users (
    principal_id   uuid        PRIMARY KEY REFERENCES principals (id),
    email          text        CHECK (char_length(email) BETWEEN 3 AND 254),
    email_verified boolean     NOT NULL DEFAULT false,
    guest          boolean     NOT NULL DEFAULT false,
    locale         text        NOT NULL,
    time_zone      text        NOT NULL,
    title          text        NOT NULL DEFAULT '' CHECK (char_length(title) <= 80),
    pronouns       text        NOT NULL DEFAULT '' CHECK (char_length(pronouns) <= 40),
    bio            text        NOT NULL DEFAULT '' CHECK (char_length(bio) <= 500),
    status_emoji   text,
    status_text    text        CHECK (char_length(status_text) <= 100),
    status_until   timestamptz,
    last_login_at  timestamptz,
    CHECK (email IS NOT NULL OR NOT email_verified)
);

CREATE UNIQUE INDEX users_email_key ON users (lower(email)) WHERE email IS NOT NULL;

CREATE TABLE owners (
    principal_id uuid        PRIMARY KEY REFERENCES users (principal_id),
    added_by     uuid,
    added_at     timestamptz NOT NULL
);

-- The password of a person, as a PHC string, and the failures that lead to a lock.
CREATE TABLE local_credentials (
    principal_id   uuid        PRIMARY KEY REFERENCES users (principal_id),
    password_hash  text        NOT NULL CHECK (password_hash LIKE '$argon2id$%'),
    changed_at     timestamptz NOT NULL,
    must_change    boolean     NOT NULL DEFAULT false,
    failed_count   int         NOT NULL DEFAULT 0,
    failed_since   timestamptz,
    failed_last_at timestamptz,
    version        bigint      NOT NULL DEFAULT 1
);

CREATE TABLE enrollment_codes (
    id           uuid        PRIMARY KEY,
    principal_id uuid        NOT NULL REFERENCES users (principal_id),
    purpose      text        NOT NULL CHECK (purpose IN ('first_owner', 'invite', 'recovery')),
    code_hash    bytea       NOT NULL UNIQUE CHECK (octet_length(code_hash) = 32),
    expires_at   timestamptz NOT NULL,
    issued_by    uuid,
    issued_at    timestamptz NOT NULL,
    redeemed_at  timestamptz,
    revoked_at   timestamptz,
    CHECK (redeemed_at IS NULL OR revoked_at IS NULL)
);

-- One open code per person; a new one revokes the old in the same unit.
CREATE UNIQUE INDEX enrollment_codes_open ON enrollment_codes (principal_id) WHERE redeemed_at IS NULL AND revoked_at IS NULL;

CREATE TABLE auth_login_flows (
    id                 uuid        PRIMARY KEY,
    driver             text        NOT NULL CHECK (driver IN ('local', 'passkey', 'oidc', 'trusted_header', 'enrollment', 'pairing')),
    purpose            text        NOT NULL CHECK (purpose IN ('login', 'link', 'step_up')),
    provider_id        uuid,
    principal_id       uuid        REFERENCES principals (id),
    session_id         uuid,
    -- Thumbprint of the key that began; only the same key may complete.
    jkt                bytea       NOT NULL CHECK (octet_length(jkt) = 32),
    state_hash         bytea       UNIQUE,
    nonce_hash         bytea,
    pkce_wrapped       bytea,
    browser_hash       bytea,
    return_to          text,
    result_hash        bytea,
    external           jsonb,
    enrollment_code_id uuid        REFERENCES enrollment_codes (id),
    device_id          uuid,
    -- How the client introduced itself: name, platform, client, client_version.
    device             jsonb       NOT NULL DEFAULT '{}',
    state              text        NOT NULL CHECK (state IN ('open', 'external_done', 'device_pending', 'consumed', 'failed')),
    attempts           int         NOT NULL DEFAULT 0,
    created_at         timestamptz NOT NULL,
    expires_at         timestamptz NOT NULL
);

CREATE INDEX auth_login_flows_expiry ON auth_login_flows (expires_at);

CREATE TABLE devices (
    id             uuid        PRIMARY KEY,
    principal_id   uuid        NOT NULL REFERENCES principals (id),
    name           text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 60),
    platform       text        NOT NULL CHECK (platform IN ('web', 'ios', 'android', 'macos', 'windows', 'linux', 'other')),
    client         text        NOT NULL CHECK (client IN ('app', 'console', 'cli')),
    client_version text        NOT NULL,
    state          text        NOT NULL CHECK (state IN ('pending', 'active', 'revoked')),
    pending_until  timestamptz,
    approved_via   text        CHECK (approved_via IN ('first', 'policy', 'approval', 'pairing', 'enrollment')),
    approved_by    uuid,
    approved_at    timestamptz,
    picked_up_at   timestamptz,
    last_seen_at   timestamptz NOT NULL,
    ip_key_id      uuid,
    ip_pseudonym   text,
    revoked_at     timestamptz,
    revoke_reason  text,
    version        bigint      NOT NULL DEFAULT 1,
    created_at     timestamptz NOT NULL,
    CHECK (state <> 'pending' OR pending_until IS NOT NULL),
    CHECK (state <> 'active' OR approved_via IS NOT NULL),
    CHECK ((state = 'revoked') = (revoked_at IS NOT NULL))
);

CREATE INDEX devices_principal ON devices (principal_id) WHERE state <> 'revoked';
CREATE INDEX devices_cleanup ON devices (state, last_seen_at);

CREATE TABLE device_keys (
    id         uuid        PRIMARY KEY,
    device_id  uuid        NOT NULL REFERENCES devices (id),
    purpose    text        NOT NULL CHECK (purpose IN ('auth', 'terminal')),
    jwk        jsonb       NOT NULL,
    thumbprint bytea       NOT NULL CHECK (octet_length(thumbprint) = 32),
    created_at timestamptz NOT NULL,
    retired_at timestamptz
);

-- A living key belongs to one device, and a device has one living key per purpose.
CREATE UNIQUE INDEX device_keys_thumbprint ON device_keys (thumbprint) WHERE retired_at IS NULL;
CREATE UNIQUE INDEX device_keys_device ON device_keys (device_id, purpose) WHERE retired_at IS NULL;

CREATE TABLE auth_sessions (
    id                   uuid        PRIMARY KEY,
    principal_id         uuid        NOT NULL REFERENCES principals (id),
    device_id            uuid        REFERENCES devices (id),
    parent_id            uuid        REFERENCES auth_sessions (id),
    kind                 text        NOT NULL CHECK (kind IN ('login', 'extension', 'view_as')),
    driver               text        NOT NULL,
    provider_id          uuid,
    amr                  text[]      NOT NULL,
    auth_time            timestamptz NOT NULL,
    step_up_at           timestamptz,
    step_up_method       text,
    -- Access tokens with a lower epoch have ended; a step-up raises it.
    token_epoch          int         NOT NULL DEFAULT 1,
    view_as_principal_id uuid,
    jkt                  bytea       NOT NULL CHECK (octet_length(jkt) = 32),
    created_at           timestamptz NOT NULL,
    last_seen_at         timestamptz NOT NULL,
    idle_expires_at      timestamptz NOT NULL,
    expires_at           timestamptz NOT NULL,
    ended_at             timestamptz,
    end_reason           text,
    CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
    CHECK (kind <> 'login' OR device_id IS NOT NULL)
);

CREATE UNIQUE INDEX auth_sessions_device_login ON auth_sessions (device_id) WHERE kind = 'login' AND ended_at IS NULL;
CREATE INDEX auth_sessions_principal ON auth_sessions (principal_id) WHERE ended_at IS NULL;
CREATE INDEX auth_sessions_parent ON auth_sessions (parent_id) WHERE ended_at IS NULL;

CREATE TABLE refresh_token_families (
    id           uuid        PRIMARY KEY,
    session_id   uuid        NOT NULL UNIQUE REFERENCES auth_sessions (id),
    generation   bigint      NOT NULL,
    state        text        NOT NULL CHECK (state IN ('active', 'ended')),
    ended_reason text,
    created_at   timestamptz NOT NULL,
    CHECK ((state = 'ended') = (ended_reason IS NOT NULL))
);

CREATE TABLE refresh_tokens (
    id            uuid        PRIMARY KEY,
    family_id     uuid        NOT NULL REFERENCES refresh_token_families (id),
    generation    bigint      NOT NULL,
    token_hash    bytea       NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    issued_at     timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    used_at       timestamptz,
    superseded_at timestamptz,
    UNIQUE (family_id, generation)
);

CREATE TABLE api_tokens (
    id            uuid        PRIMARY KEY,
    principal_id  uuid        NOT NULL REFERENCES principals (id),
    kind          text        NOT NULL CHECK (kind IN ('pat', 'agent', 'app')),
    name          text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 60),
    -- The last four characters of the secret, which is stored nowhere.
    hint          text        NOT NULL CHECK (char_length(hint) = 4),
    token_hash    bytea       NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    scopes        text[]      NOT NULL CHECK (cardinality(scopes) >= 1),
    allowed_cidrs cidr[]      NOT NULL DEFAULT '{}',
    expires_at    timestamptz,
    created_by    uuid        NOT NULL,
    created_at    timestamptz NOT NULL,
    last_used_at  timestamptz,
    ip_key_id     uuid,
    ip_pseudonym  text,
    revoked_at    timestamptz,
    revoke_reason text,
    CHECK (kind <> 'pat' OR expires_at IS NOT NULL),
    CHECK ((revoked_at IS NULL) = (revoke_reason IS NULL))
);

CREATE INDEX api_tokens_principal ON api_tokens (principal_id);
