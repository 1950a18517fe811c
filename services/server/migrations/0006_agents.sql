-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- The agents of the team and the place each has reached in the events addressed to it.

-- +goose Up

-- One row per principal of kind agent. Everything named reported_ is a claim of the adapter.
CREATE TABLE agents (
    principal_id             uuid        PRIMARY KEY,
    description              text        NOT NULL DEFAULT '' CHECK (char_length(description) <= 500),
    billing_mode             text        NOT NULL CHECK (billing_mode IN ('personal', 'organization', 'local')),
    credential_holder_id     uuid,
    tool_class               text        NOT NULL CHECK (tool_class IN ('chat', 'sandboxed', 'host')),
    max_concurrent_runs      smallint    NOT NULL DEFAULT 4 CHECK (max_concurrent_runs BETWEEN 1 AND 64),
    allowed_models           text[]      NOT NULL DEFAULT '{}',
    untrusted_context        text        NOT NULL DEFAULT 'mark' CHECK (untrusted_context IN ('mark', 'withhold')),
    max_trigger_age_ms       bigint      CHECK (max_trigger_age_ms > 0),
    -- Presence as last published; the time may lag behind the memory of the server.
    presence_state           text        NOT NULL DEFAULT 'unknown'
                             CHECK (presence_state IN ('unknown', 'online', 'degraded', 'offline')),
    last_heartbeat_at        timestamptz,
    reported_billing_mode    text        CHECK (reported_billing_mode IN ('personal', 'organization', 'local')),
    reported_tool_class      text        CHECK (reported_tool_class IN ('chat', 'sandboxed', 'host')),
    reported_evidence        jsonb,
    reported_modes           text[],
    reported_runtime_version text        CHECK (char_length(reported_runtime_version) <= 64),
    reported_details         jsonb       NOT NULL DEFAULT '{}',
    -- Counts configured changes only, never reports.
    version                  bigint      NOT NULL DEFAULT 1,
    created_at               timestamptz NOT NULL,
    created_by               uuid        NOT NULL,
    updated_at               timestamptz NOT NULL,
    CHECK ((billing_mode = 'personal') = (credential_holder_id IS NOT NULL))
);

CREATE INDEX agents_credential_holder ON agents (credential_holder_id) WHERE credential_holder_id IS NOT NULL;
-- The presence tracker starts from the agents that were there.
CREATE INDEX agents_present ON agents (presence_state) WHERE presence_state IN ('online', 'degraded');

-- How far an agent has taken its events over, and which connection may say so.
CREATE TABLE agent_consumer_cursors (
    agent_id          uuid        PRIMARY KEY REFERENCES agents (principal_id),
    acked_seq         bigint      NOT NULL CHECK (acked_seq >= 0),
    holder_session_id uuid,
    holder_kind       text        CHECK (holder_kind IN ('gateway', 'poll')),
    holder_since      timestamptz,
    updated_at        timestamptz NOT NULL
);
