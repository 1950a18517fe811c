-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- The record that nobody can rewrite unseen: a chain of hashes and signed checkpoints of it.

-- +goose Up

-- Keys under which addresses become pseudonyms. Destroying one leaves its pseudonyms equal
-- among themselves and no longer computable from an address.
CREATE TABLE audit_ip_keys (
    id           uuid        PRIMARY KEY,
    valid_from   timestamptz NOT NULL CONSTRAINT audit_ip_keys_valid_from_key UNIQUE,
    valid_until  timestamptz NOT NULL,
    key_wrapped  bytea,
    destroyed_at timestamptz,
    CHECK ((key_wrapped IS NULL) = (destroyed_at IS NOT NULL)),
    CHECK (valid_until > valid_from)
);

-- One row for each audited decision. seq is gapless and orders; occurred_at is for display.
CREATE TABLE audit_events (
    seq            bigint      PRIMARY KEY,
    id             uuid        NOT NULL CONSTRAINT audit_events_id_key UNIQUE,
    occurred_at    timestamptz NOT NULL,
    action         text        NOT NULL,
    outcome        text        NOT NULL CHECK (outcome IN ('allow', 'deny')),
    reason         text,
    actor_kind     text        NOT NULL
        CHECK (actor_kind IN ('person', 'agent', 'app', 'anonymous', 'webhook', 'host', 'system')),
    actor_id       uuid,
    session_id     uuid,
    device_id      uuid,
    token_id       uuid,
    acting_for_id  uuid,
    view_as_id     uuid,
    resource_kind  text,
    resource_id    uuid,
    space_id       uuid,
    channel_id     uuid,
    details        jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(details) = 'object'),
    correlation_id uuid,
    ip_key_id      uuid        REFERENCES audit_ip_keys (id),
    ip_pseudonym   text,
    prev_hash      bytea       NOT NULL CHECK (octet_length(prev_hash) = 32),
    hash           bytea       NOT NULL CHECK (octet_length(hash) = 32)
);
CREATE INDEX audit_events_actor ON audit_events (actor_id, seq DESC);
CREATE INDEX audit_events_action ON audit_events (action, seq DESC);
CREATE INDEX audit_events_resource ON audit_events (resource_id, seq DESC);
CREATE INDEX audit_events_channel ON audit_events (channel_id, seq DESC);
CREATE INDEX audit_events_occurred ON audit_events USING brin (occurred_at);

-- Rows may be added and read. Retention alone deletes, under a role of its own.
-- +goose StatementBegin
CREATE FUNCTION audit_events_refuse_change() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_user = 'bothy_maint' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'audit_events does not allow %', TG_OP USING ERRCODE = 'insufficient_privilege';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_events_refuse_row_change BEFORE UPDATE OR DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_events_refuse_change();
CREATE TRIGGER audit_events_refuse_truncate BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION audit_events_refuse_change();

-- Signed statements about the chain up to a row.
CREATE TABLE audit_checkpoints (
    id                   uuid        PRIMARY KEY,
    seq                  bigint      NOT NULL CONSTRAINT audit_checkpoints_seq_key UNIQUE,
    first_seq            bigint      NOT NULL CHECK (first_seq <= seq),
    hash                 bytea       NOT NULL CHECK (octet_length(hash) = 32),
    prev_checkpoint_hash bytea       NOT NULL CHECK (octet_length(prev_checkpoint_hash) = 32),
    kid                  text        NOT NULL,
    jws                  text        NOT NULL,
    created_at           timestamptz NOT NULL,
    sink_state           text        NOT NULL CHECK (sink_state IN ('none', 'pending', 'deposited')),
    sink_attempts        int         NOT NULL DEFAULT 0,
    sink_error           text,
    deposited_at         timestamptz,
    CHECK ((sink_state = 'deposited') = (deposited_at IS NOT NULL))
);
CREATE INDEX audit_checkpoints_pending ON audit_checkpoints (seq) WHERE sink_state = 'pending';

-- The trigger holds against everybody; the missing right also hides the attempt from the role
-- of the server. A cluster without the role, as in development, needs nothing.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'bothy_app') THEN
        REVOKE UPDATE, DELETE, TRUNCATE ON audit_events FROM bothy_app;
    END IF;
END
$$;
-- +goose StatementEnd
