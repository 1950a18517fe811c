-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- Who may do what: groups, their members, and grants.

-- +goose Up

CREATE TABLE groups (
    id          uuid        PRIMARY KEY,
    name        text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 80),
    handle      text        NOT NULL CONSTRAINT groups_handle_key UNIQUE,
    description text        NOT NULL DEFAULT '' CHECK (char_length(description) <= 500),
    kind        text        NOT NULL CHECK (kind IN ('manual', 'claim', 'everyone')),
    provider_id uuid,
    claim_value text        CHECK (char_length(claim_value) <= 256),
    mentionable boolean     NOT NULL DEFAULT true,
    version     bigint      NOT NULL DEFAULT 1,
    created_by  uuid,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    CHECK ((kind = 'claim') = (provider_id IS NOT NULL)),
    CHECK ((kind = 'claim') = (claim_value IS NOT NULL)),
    CONSTRAINT groups_claim_key UNIQUE (provider_id, claim_value)
);
-- The group of all members exists once; its members are computed and have no rows.
CREATE UNIQUE INDEX groups_everyone_key ON groups (kind) WHERE kind = 'everyone';

CREATE TABLE group_memberships (
    id             uuid        PRIMARY KEY,
    group_id       uuid        NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    principal_id   uuid        NOT NULL,
    role           text        NOT NULL DEFAULT 'member' CHECK (role IN ('member', 'manager')),
    source         text        NOT NULL CHECK (source IN ('manual', 'claim')),
    expires_at     timestamptz,
    reminded_for   timestamptz,
    reminder_stage smallint    NOT NULL DEFAULT 0,
    added_by       uuid,
    created_at     timestamptz NOT NULL,
    CONSTRAINT group_memberships_member_key UNIQUE (group_id, principal_id)
);
CREATE INDEX group_memberships_principal ON group_memberships (principal_id);
CREATE INDEX group_memberships_expiry ON group_memberships (expires_at) WHERE expires_at IS NOT NULL;

-- A grant never changes; a change replaces it. One for each subject and target.
CREATE TABLE grants (
    id             uuid        PRIMARY KEY,
    subject_kind   text        NOT NULL CHECK (subject_kind IN ('principal', 'group')),
    principal_id   uuid,
    group_id       uuid        REFERENCES groups (id) ON DELETE CASCADE,
    target_kind    text        NOT NULL CHECK (target_kind IN ('instance', 'space', 'channel', 'host')),
    target_id      uuid,
    level          text        NOT NULL CHECK (level IN ('read', 'write', 'trigger', 'manage')),
    capabilities   text[]      NOT NULL DEFAULT '{}' CHECK (capabilities <@ ARRAY[
        'commands.manage', 'costs.read', 'export', 'files.upload', 'members.manage', 'mentions.broadcast',
        'messages.moderate', 'pins.manage', 'terminal.open', 'threads.create', 'webhooks.manage']),
    expires_at     timestamptz,
    reminded_for   timestamptz,
    reminder_stage smallint    NOT NULL DEFAULT 0,
    note           text        NOT NULL DEFAULT '' CHECK (char_length(note) <= 200),
    created_by     uuid,
    created_at     timestamptz NOT NULL,
    CHECK ((subject_kind = 'principal') = (principal_id IS NOT NULL)),
    CHECK ((subject_kind = 'group') = (group_id IS NOT NULL)),
    CHECK ((target_kind = 'instance') = (target_id IS NULL)),
    CONSTRAINT grants_subject_target_key UNIQUE NULLS NOT DISTINCT
        (subject_kind, principal_id, group_id, target_kind, target_id)
);
CREATE INDEX grants_principal ON grants (principal_id);
CREATE INDEX grants_group ON grants (group_id);
CREATE INDEX grants_target ON grants (target_kind, target_id);
CREATE INDEX grants_expiry ON grants (expires_at) WHERE expires_at IS NOT NULL;
