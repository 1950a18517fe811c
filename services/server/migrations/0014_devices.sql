-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- Devices that wait for approval, and pairing: a new device or a command line is let in from
-- a device that is signed in.

-- +goose Up

-- How and when the person of a flow was proven, for a session that starts when her new
-- device has been approved.
ALTER TABLE auth_login_flows
    ADD COLUMN amr       text[]      NOT NULL DEFAULT '{}',
    ADD COLUMN proved_at timestamptz;

-- The flow of a device that waits.
CREATE INDEX auth_login_flows_device ON auth_login_flows (device_id) WHERE state = 'device_pending';

CREATE INDEX devices_revoked ON devices (principal_id, id) WHERE state = 'revoked';

-- Devices that were let in and never came back for their session.
CREATE INDEX devices_uncollected ON devices (approved_at) WHERE state = 'active' AND picked_up_at IS NULL;

-- A request to be let in: a machine holds the device code, a person types the user code.
CREATE TABLE device_pairings (
    id                 uuid        PRIMARY KEY,
    client_kind        text        NOT NULL CHECK (client_kind IN ('device', 'cli')),
    device_code_hash   bytea       NOT NULL UNIQUE CHECK (octet_length(device_code_hash) = 32),
    user_code_hash     bytea       NOT NULL CHECK (octet_length(user_code_hash) = 32),
    device_name        text        NOT NULL CHECK (char_length(device_name) BETWEEN 1 AND 60),
    platform           text        NOT NULL CHECK (platform IN ('web', 'ios', 'android', 'macos', 'windows', 'linux', 'other')),
    client             text        NOT NULL CHECK (client IN ('app', 'console', 'cli')),
    client_version     text        NOT NULL,
    jwk                jsonb       NOT NULL,
    jkt                bytea       NOT NULL CHECK (octet_length(jkt) = 32),
    state              text        NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'consumed', 'expired')),
    principal_id       uuid        REFERENCES principals (id),
    decided_session_id uuid,
    decided_at         timestamptz,
    poll_interval_ms   int         NOT NULL CHECK (poll_interval_ms > 0),
    last_polled_at     timestamptz,
    ip_key_id          uuid,
    ip_pseudonym       text,
    created_at         timestamptz NOT NULL,
    expires_at         timestamptz NOT NULL,
    CHECK (state NOT IN ('approved', 'denied', 'consumed') OR decided_at IS NOT NULL),
    CHECK (state NOT IN ('approved', 'consumed') OR principal_id IS NOT NULL)
);

-- Of the pairings that wait, a typed code means one.
CREATE UNIQUE INDEX device_pairings_user_code ON device_pairings (user_code_hash) WHERE state = 'pending';
CREATE INDEX device_pairings_expiry ON device_pairings (expires_at);
CREATE INDEX device_pairings_approved ON device_pairings (principal_id) WHERE state = 'approved';

-- What is removed once it has been over for long enough, oldest first.
CREATE INDEX refresh_tokens_issued ON refresh_tokens (issued_at);
CREATE INDEX auth_sessions_over ON auth_sessions ((COALESCE(ended_at, expires_at)));
CREATE INDEX auth_sessions_children ON auth_sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX auth_sessions_device ON auth_sessions (device_id);
CREATE INDEX devices_over ON devices (revoked_at) WHERE state = 'revoked';
CREATE INDEX api_tokens_over ON api_tokens ((COALESCE(revoked_at, expires_at)));
CREATE INDEX passkey_credentials_over ON passkey_credentials (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX enrollment_codes_over ON enrollment_codes ((COALESCE(redeemed_at, revoked_at, expires_at)));
CREATE INDEX device_keys_of ON device_keys (device_id);
