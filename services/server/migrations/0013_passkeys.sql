-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- Passkeys of people, and the challenges that an authenticator answers.

-- +goose Up

CREATE TABLE passkey_credentials (
    id              uuid        PRIMARY KEY,
    principal_id    uuid        NOT NULL REFERENCES users (principal_id),
    credential_id   bytea       NOT NULL CONSTRAINT passkey_credentials_credential_key UNIQUE
                                CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
    -- The public key as the authenticator gave it: COSE.
    public_key      bytea       NOT NULL CHECK (octet_length(public_key) BETWEEN 1 AND 2048),
    alg             int         NOT NULL,
    -- Zero while the authenticator does not count.
    sign_count      bigint      NOT NULL CHECK (sign_count >= 0),
    aaguid          uuid        NOT NULL,
    transports      text[]      NOT NULL,
    backup_eligible boolean     NOT NULL,
    backed_up       boolean     NOT NULL,
    name            text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 60),
    created_at      timestamptz NOT NULL,
    last_used_at    timestamptz,
    revoked_at      timestamptz,
    CHECK (backup_eligible OR NOT backed_up)
);

CREATE INDEX passkey_credentials_principal ON passkey_credentials (principal_id);

-- What an authenticator was asked to sign. A challenge is used up by the one ceremony that
-- succeeds with it.
CREATE TABLE auth_challenges (
    id           uuid        PRIMARY KEY,
    kind         text        NOT NULL CHECK (kind IN ('passkey_login', 'passkey_register', 'step_up')),
    flow_id      uuid,
    session_id   uuid,
    principal_id uuid,
    challenge    bytea       NOT NULL UNIQUE CHECK (octet_length(challenge) = 32),
    expires_at   timestamptz NOT NULL,
    consumed_at  timestamptz,
    CHECK (flow_id IS NOT NULL OR session_id IS NOT NULL)
);

CREATE INDEX auth_challenges_expiry ON auth_challenges (expires_at);
