-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- What this installation is: its identity, what its owner has set, its public signing keys,
-- and the counters that order everything.

-- +goose Up

-- One row. The value is raised under the lock of the row by the phase hooks of one unit at a
-- time, which gives the order of commits. Pages are left almost empty so that every update
-- stays on its page and touches no index.
CREATE TABLE sequence_counters (
    name  text   PRIMARY KEY CHECK (name IN ('permission_version', 'event_seq', 'audit_seq')),
    value bigint NOT NULL DEFAULT 0 CHECK (value >= 0)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

INSERT INTO sequence_counters (name) VALUES ('permission_version'), ('event_seq'), ('audit_seq');

-- Adds to a counter, keeps its row locked until the transaction ends and gives the new value.
-- Only the phase hooks of authz, sync and audit call it, each for the counter of its phase.
-- +goose StatementBegin
CREATE FUNCTION instance_counter_raise(counter text, amount bigint) RETURNS bigint
    LANGUAGE sql VOLATILE STRICT
AS $$
    UPDATE sequence_counters SET value = value + amount WHERE name = counter RETURNING value
$$;
-- +goose StatementEnd

-- Reads a counter without a lock, in the snapshot of the calling statement.
-- +goose StatementBegin
CREATE FUNCTION instance_counter_value(counter text) RETURNS bigint
    LANGUAGE sql STABLE STRICT
AS $$
    SELECT value FROM sequence_counters WHERE name = counter
$$;
-- +goose StatementEnd

-- One row, made by the command that migrates.
CREATE TABLE instance (
    id                   uuid        PRIMARY KEY,
    singleton            boolean     NOT NULL DEFAULT true CONSTRAINT instance_singleton_key UNIQUE CHECK (singleton),
    setup_completed_at   timestamptz,
    -- Positions of the log compare within one epoch alone; only a finished restore changes it.
    sync_epoch           uuid        NOT NULL,
    schema_version       bigint      NOT NULL,
    min_server_version   text        NOT NULL,
    db_system_identifier text        NOT NULL DEFAULT '',
    db_timeline_id       bigint,
    created_at           timestamptz NOT NULL,
    version              bigint      NOT NULL DEFAULT 1
);

-- Only values that differ from their default stand in a document.
CREATE TABLE instance_settings (
    section    text        PRIMARY KEY CHECK (section IN ('settings', 'branding')),
    document   jsonb       NOT NULL CHECK (jsonb_typeof(document) = 'object'),
    version    bigint      NOT NULL,
    updated_by uuid,
    updated_at timestamptz NOT NULL
);

-- Public halves; the private ones lie in the key store on disk.
CREATE TABLE server_signing_keys (
    id            uuid        PRIMARY KEY,
    -- The thumbprint of RFC 7638 in base64url.
    kid           text        NOT NULL CONSTRAINT server_signing_keys_kid_key UNIQUE,
    purpose       text        NOT NULL,
    alg           text        NOT NULL CHECK (alg IN ('ES256', 'EdDSA')),
    public_jwk    jsonb       NOT NULL,
    state         text        NOT NULL CHECK (state IN ('next', 'active', 'retired')),
    published     boolean     NOT NULL,
    created_at    timestamptz NOT NULL,
    activated_at  timestamptz,
    retired_at    timestamptz,
    unpublish_at  timestamptz,
    retire_reason text        CHECK (retire_reason IN ('rotation', 'manual', 'compromised', 'lost')),
    CHECK ((state = 'retired') = (retired_at IS NOT NULL)),
    CHECK ((state = 'retired') = (retire_reason IS NOT NULL)),
    CHECK (state = 'next' OR activated_at IS NOT NULL)
);
CREATE UNIQUE INDEX server_signing_keys_active_key ON server_signing_keys (purpose) WHERE state = 'active';
CREATE UNIQUE INDEX server_signing_keys_next_key ON server_signing_keys (purpose) WHERE state = 'next';
