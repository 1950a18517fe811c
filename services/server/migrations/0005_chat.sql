-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- Where talk happens: spaces, channels and threads. Forums and direct messages have their
-- kinds and checks here; their own tables come with them.

-- +goose Up

CREATE TABLE spaces (
    id                uuid        PRIMARY KEY,
    name              text        NOT NULL CHECK (name <> ''),
    description       text        NOT NULL DEFAULT '',
    icon              text,
    color             text,
    ck                text        COLLATE "C" NOT NULL CHECK (ck ~ '^[0-9A-Za-z]{1,64}$'),
    operator_agent_id uuid,
    archived_at       timestamptz,
    archived_by       uuid,
    created_by        uuid        NOT NULL,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    version           bigint      NOT NULL DEFAULT 1,
    CHECK ((archived_at IS NULL) = (archived_by IS NULL))
);

CREATE UNIQUE INDEX spaces_name_key ON spaces (lower(name)) WHERE archived_at IS NULL;
CREATE INDEX spaces_order ON spaces (ck, id);
CREATE INDEX spaces_operator ON spaces (operator_agent_id) WHERE operator_agent_id IS NOT NULL;

-- The kind of a channel never changes. How its operator is set to work stands in the same
-- row, because every message that is sent asks for it.
CREATE TABLE channels (
    id                uuid        PRIMARY KEY,
    space_id          uuid        REFERENCES spaces (id),
    kind              text        NOT NULL CHECK (kind IN ('text', 'forum', 'dm')),
    name              text        CHECK (name <> ''),
    topic             text        NOT NULL DEFAULT '',
    icon              text,
    ck                text        COLLATE "C" NOT NULL CHECK (ck ~ '^[0-9A-Za-z]{1,64}$'),
    inherits          boolean     NOT NULL DEFAULT true,
    main_thread_id    uuid,
    read_only         boolean     NOT NULL DEFAULT false,
    read_only_source  text        CHECK (read_only_source IN ('manual', 'mirror')),
    archived_at       timestamptz,
    archived_by       uuid,
    operator_mode     text        NOT NULL DEFAULT 'inherit' CHECK (operator_mode IN ('inherit', 'own', 'none')),
    operator_agent_id uuid,
    trigger_rule      text        NOT NULL DEFAULT 'mention' CHECK (trigger_rule IN ('mention', 'all', 'off')),
    agent_chaining    boolean     NOT NULL DEFAULT false,
    agent_sources     text        NOT NULL DEFAULT 'any' CHECK (agent_sources IN ('any', 'channel_only')),
    transcription     text        NOT NULL DEFAULT 'inherit' CHECK (transcription IN ('inherit', 'off', 'service', 'agent')),
    prompt            text        NOT NULL DEFAULT '',
    slow_mode_seconds integer     NOT NULL DEFAULT 0 CHECK (slow_mode_seconds BETWEEN 0 AND 21600),
    require_tag       boolean     NOT NULL DEFAULT false,
    default_sort      text        NOT NULL DEFAULT 'activity' CHECK (default_sort IN ('activity', 'created')),
    guidelines        text        NOT NULL DEFAULT '',
    default_reaction  text,
    template_id       uuid,
    dm_key            bytea       CHECK (octet_length(dm_key) = 32),
    config_version    bigint      NOT NULL DEFAULT 1,
    behavior_version  bigint      NOT NULL DEFAULT 1,
    version           bigint      NOT NULL DEFAULT 1,
    created_by        uuid        NOT NULL,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    CHECK ((kind = 'dm') = (space_id IS NULL)),
    CHECK (kind = 'dm' OR name IS NOT NULL),
    CHECK (kind <> 'dm' OR NOT inherits AND archived_at IS NULL AND operator_mode <> 'inherit'),
    CHECK ((kind = 'forum') = (main_thread_id IS NULL)),
    CHECK ((archived_at IS NULL) = (archived_by IS NULL)),
    CHECK (read_only = (read_only_source IS NOT NULL)),
    CHECK ((operator_mode = 'own') = (operator_agent_id IS NOT NULL)),
    CHECK (dm_key IS NULL OR kind = 'dm')
);

CREATE UNIQUE INDEX channels_name_key ON channels (space_id, lower(name)) WHERE archived_at IS NULL;
CREATE UNIQUE INDEX channels_dm_key ON channels (dm_key) WHERE dm_key IS NOT NULL;
CREATE INDEX channels_order ON channels (ck, id);
CREATE INDEX channels_space ON channels (space_id, ck, id);
CREATE INDEX channels_operator ON channels (operator_agent_id) WHERE operator_agent_id IS NOT NULL;

CREATE TABLE channel_skill_bindings (
    id         uuid    PRIMARY KEY,
    channel_id uuid    NOT NULL REFERENCES channels (id),
    name       text    NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,63}$'),
    source     text    CHECK (octet_length(source) <= 512),
    ref        text    CHECK (octet_length(ref) <= 512),
    enabled    boolean NOT NULL,
    position   integer NOT NULL,
    CONSTRAINT channel_skill_bindings_name_key UNIQUE (channel_id, name)
);

-- The counters are the busiest columns of the schema, so no index holds one of them and pages
-- keep room: a message in a main thread then changes its row in place. active_at is the time
-- of the last message where lists are ordered by it; in main threads it stands still.
CREATE TABLE threads (
    id                 uuid        PRIMARY KEY,
    channel_id         uuid        NOT NULL REFERENCES channels (id),
    kind               text        NOT NULL CHECK (kind IN ('main', 'post', 'side')),
    parent_message_id  uuid,
    title              text        CHECK (title <> ''),
    title_source       text        NOT NULL DEFAULT 'none' CHECK (title_source IN ('none', 'auto', 'person', 'agent', 'app')),
    state              text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed')),
    closed_at          timestamptz,
    closed_by          uuid,
    close_reason       text        CHECK (close_reason IN ('resolved', 'duplicate', 'outdated', 'other')),
    first_thread_seq   bigint      NOT NULL DEFAULT 1,
    last_thread_seq    bigint      NOT NULL DEFAULT 0,
    last_countable_seq bigint      NOT NULL DEFAULT 0,
    message_count      integer     NOT NULL DEFAULT 0 CHECK (message_count >= 0),
    counters_rev       bigint      NOT NULL DEFAULT 0,
    last_message_at    timestamptz NOT NULL,
    active_at          timestamptz NOT NULL,
    created_by         uuid,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    version            bigint      NOT NULL DEFAULT 1,
    CHECK ((kind = 'main') = (title IS NULL)),
    CHECK ((kind = 'main') = (created_by IS NULL)),
    CHECK (kind = 'side' OR parent_message_id IS NULL),
    CHECK ((state = 'closed') = (closed_at IS NOT NULL)),
    CHECK (kind <> 'main' OR state = 'open'),
    CHECK (last_countable_seq <= last_thread_seq)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX threads_main_key ON threads (channel_id) WHERE kind = 'main';
CREATE UNIQUE INDEX threads_parent_key ON threads (parent_message_id) WHERE parent_message_id IS NOT NULL;
CREATE INDEX threads_activity ON threads (channel_id, active_at DESC, id DESC) WHERE kind <> 'main';
CREATE INDEX threads_created ON threads (channel_id, created_at DESC, id DESC) WHERE kind <> 'main';
CREATE INDEX threads_channel ON threads (channel_id, id);

-- A channel and its main thread need each other, so one of the two is checked at the commit.
ALTER TABLE channels ADD CONSTRAINT channels_main_thread_fkey
    FOREIGN KEY (main_thread_id) REFERENCES threads (id) DEFERRABLE INITIALLY DEFERRED;
