-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- What agents do when they are set to work: runs, their steps and the orders that arrive
-- while one is under way.

-- +goose Up

CREATE TABLE runs (
    id                  uuid        PRIMARY KEY,
    agent_id            uuid        NOT NULL,
    thread_id           uuid        NOT NULL,
    -- The place when the run began. Rights are asked for the present place of the thread.
    channel_id          uuid        NOT NULL,
    space_id            uuid,
    trigger_kind        text        NOT NULL
                        CHECK (trigger_kind IN ('message', 'command', 'interaction', 'followup', 'manual', 'chain')),
    trigger_message_id  uuid,
    -- The person at the root of the order.
    triggered_by        uuid        NOT NULL,
    parent_run_id       uuid        REFERENCES runs (id),
    root_run_id         uuid        NOT NULL,
    chain_depth         smallint    NOT NULL DEFAULT 0 CHECK (chain_depth BETWEEN 0 AND 8),
    -- The agents above, nearest last.
    chain               uuid[]      NOT NULL DEFAULT '{}',
    -- Who pays, as the agent was configured when the run began.
    billing_mode        text        NOT NULL CHECK (billing_mode IN ('personal', 'organization', 'local')),
    state               text        NOT NULL
                        CHECK (state IN ('queued', 'running', 'waiting_input', 'completed', 'failed', 'cancelled')),
    end_reason          text        CHECK (char_length(end_reason) <= 64),
    -- doc_version counts every change, agent_doc_version the last one by the agent.
    doc_version         bigint      NOT NULL DEFAULT 1,
    agent_doc_version   bigint      NOT NULL DEFAULT 0,
    title               text        NOT NULL DEFAULT '' CHECK (char_length(title) <= 200),
    status_line         text        NOT NULL DEFAULT '' CHECK (char_length(status_line) <= 200),
    document            jsonb       NOT NULL DEFAULT '{}',
    output_text         text        NOT NULL DEFAULT '',
    -- Code points.
    output_length       int         NOT NULL DEFAULT 0 CHECK (output_length >= 0),
    output_message_id   uuid,
    anchor_message_id   uuid,
    model               text        CHECK (char_length(model) <= 128),
    followups_pending   int         NOT NULL DEFAULT 0 CHECK (followups_pending >= 0),
    followup_mode       text        NOT NULL DEFAULT 'queue' CHECK (followup_mode IN ('queue', 'steer')),
    queued_at           timestamptz NOT NULL,
    delivered_at        timestamptz,
    started_at          timestamptz,
    last_activity_at    timestamptz NOT NULL,
    stall_warned_at     timestamptz,
    ended_at            timestamptz,
    cancel_requested_at timestamptz,
    cancel_requested_by uuid,
    cancel_reason       text        CHECK (char_length(cancel_reason) <= 200),
    error_code          text        CHECK (char_length(error_code) <= 64),
    error_message       text        CHECK (char_length(error_message) <= 1000),
    CHECK ((state IN ('completed', 'failed', 'cancelled')) = (ended_at IS NOT NULL)),
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);

-- One active run per agent and thread.
CREATE UNIQUE INDEX runs_active_key ON runs (agent_id, thread_id) WHERE state IN ('queued', 'running', 'waiting_input');
-- At most one run per message and agent, whatever repeats.
CREATE UNIQUE INDEX runs_message_key ON runs (trigger_message_id, agent_id) WHERE trigger_kind IN ('message', 'followup', 'chain');
CREATE INDEX runs_thread ON runs (thread_id, id DESC);
CREATE INDEX runs_activity ON runs (state, last_activity_at) WHERE state IN ('queued', 'running', 'waiting_input');
CREATE INDEX runs_agent ON runs (agent_id, id DESC);
CREATE INDEX runs_triggered_by ON runs (triggered_by, id DESC);
CREATE INDEX runs_root ON runs (root_run_id);
CREATE INDEX runs_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
-- The snapshot reads the active runs of a channel.
CREATE INDEX runs_channel_active ON runs (channel_id, id) WHERE state IN ('queued', 'running', 'waiting_input');
CREATE INDEX runs_ended ON runs (ended_at);

CREATE TABLE run_steps (
    id            uuid        PRIMARY KEY,
    run_id        uuid        NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    key           text        NOT NULL CHECK (key ~ '^[A-Za-z0-9._:-]{1,64}$'),
    ordinal       int         NOT NULL CHECK (ordinal >= 1),
    parent_key    text,
    kind          text        NOT NULL CHECK (kind IN ('step', 'tool', 'thought', 'subagent')),
    tool_kind     text        CHECK (tool_kind IN ('read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch', 'other')),
    title         text        NOT NULL CHECK (char_length(title) <= 200),
    state         text        NOT NULL CHECK (state IN ('pending', 'running', 'completed', 'failed', 'cancelled')),
    started_at    timestamptz,
    ended_at      timestamptz,
    input         jsonb,
    output        text,
    output_length int         NOT NULL DEFAULT 0 CHECK (output_length >= 0),
    truncated     boolean     NOT NULL DEFAULT false,
    CONSTRAINT run_steps_key UNIQUE (run_id, key),
    CONSTRAINT run_steps_ordinal UNIQUE (run_id, ordinal)
);

CREATE TABLE run_followups (
    id             uuid        PRIMARY KEY,
    run_id         uuid        NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    message_id     uuid        NOT NULL,
    author_id      uuid        NOT NULL,
    mode           text        NOT NULL CHECK (mode IN ('queue', 'steer')),
    state          text        NOT NULL CHECK (state IN ('pending', 'delivered', 'consumed', 'carried', 'dropped')),
    -- The number of the message in its thread, so the order of orders is the order of the thread.
    position       bigint      NOT NULL,
    carried_run_id uuid,
    created_at     timestamptz NOT NULL,
    delivered_at   timestamptz,
    consumed_at    timestamptz,
    CONSTRAINT run_followups_message UNIQUE (run_id, message_id)
);
CREATE INDEX run_followups_open ON run_followups (run_id, position) WHERE state IN ('pending', 'delivered');
-- A deleted or edited message finds the orders it is part of.
CREATE INDEX run_followups_by_message ON run_followups (message_id);
