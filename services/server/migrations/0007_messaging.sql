-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- What is said: messages, what they said before, and whom they name.

-- +goose Up

-- thread_id and channel_id name rows of another module and carry no foreign key. A row is
-- never removed by a user: a deleted message keeps its number and loses its content.
CREATE TABLE messages (
    id                uuid        PRIMARY KEY,
    thread_id         uuid        NOT NULL,
    channel_id        uuid        NOT NULL,
    thread_seq        bigint      NOT NULL CHECK (thread_seq >= 1),
    kind              text        NOT NULL CHECK (kind IN ('message', 'system', 'run')),
    author_kind       text        NOT NULL CHECK (author_kind IN ('person', 'agent', 'app', 'webhook', 'system')),
    author_id         uuid,
    author_label      text,
    content           text        NOT NULL DEFAULT '' CHECK (octet_length(content) <= 262144),
    dialect           smallint    NOT NULL DEFAULT 1,
    plain_text        text        NOT NULL DEFAULT '',
    has_bits          integer     NOT NULL DEFAULT 0,
    -- {"message_ids": [...], "thread_ids": [...], "channel_ids": [...]}; empty when none.
    links             jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(links) = 'object'),
    reply_to_id       uuid        REFERENCES messages (id),
    run_id            uuid,
    started_thread_id uuid,
    trigger_state     text        NOT NULL DEFAULT 'none' CHECK (trigger_state IN ('none', 'triggered', 'followup', 'held', 'denied')),
    triggers          jsonb       NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(triggers) = 'array'),
    notify            text        NOT NULL DEFAULT 'normal' CHECK (notify IN ('normal', 'silent')),
    client_msg_id     uuid,
    client_hash       bytea       CHECK (octet_length(client_hash) = 32),
    system_code       text,
    system_data       jsonb,
    revision          integer     NOT NULL DEFAULT 1,
    reactions_rev     bigint      NOT NULL DEFAULT 0,
    imported          boolean     NOT NULL DEFAULT false,
    edited_at         timestamptz,
    deleted_at        timestamptz,
    deleted_by        uuid,
    delete_kind       text        CHECK (delete_kind IN ('author', 'moderator', 'erasure')),
    delete_reason     text,
    created_at        timestamptz NOT NULL,
    version           bigint      NOT NULL DEFAULT 1,
    CONSTRAINT messages_thread_seq_key UNIQUE (thread_id, thread_seq),
    CHECK ((author_kind = 'system') = (author_id IS NULL)),
    CHECK ((kind = 'system') = (system_code IS NOT NULL)),
    CHECK (kind <> 'run' OR run_id IS NOT NULL AND content = ''),
    CHECK ((deleted_at IS NULL) = (delete_kind IS NULL)),
    -- What a deleted message must not keep, whoever writes the statement.
    CHECK (deleted_at IS NULL OR content = '' AND plain_text = '' AND has_bits = 0 AND links = '{}' AND client_hash IS NULL)
);

-- The key stands first: it alone finds the row, so that the lookup before every send need not choose between this index
-- and the one of the author's messages.
CREATE UNIQUE INDEX messages_client_key ON messages (client_msg_id, author_id) WHERE client_msg_id IS NOT NULL;
CREATE UNIQUE INDEX messages_anchor_key ON messages (run_id) WHERE kind = 'run';
CREATE INDEX messages_run ON messages (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX messages_author ON messages (author_id, id DESC);
CREATE INDEX messages_created ON messages USING brin (created_at);
CREATE INDEX messages_reply ON messages (reply_to_id) WHERE reply_to_id IS NOT NULL;

-- Row n holds what revision n said. The present text lies only in messages.
CREATE TABLE message_revisions (
    message_id  uuid        NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    revision    integer     NOT NULL,
    content     text        NOT NULL,
    edited_by   uuid        NOT NULL,
    replaced_at timestamptz NOT NULL,
    PRIMARY KEY (message_id, revision)
);

-- A target that an edit removes keeps its row, so that it is never notified a second time.
CREATE TABLE mentions (
    message_id   uuid        NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    thread_id    uuid        NOT NULL,
    channel_id   uuid        NOT NULL,
    thread_seq   bigint      NOT NULL,
    author_id    uuid,
    position     smallint    NOT NULL,
    kind         text        NOT NULL CHECK (kind IN ('principal', 'group', 'channel', 'here', 'thread')),
    principal_id uuid,
    group_id     uuid,
    label        text        NOT NULL,
    silent       boolean     NOT NULL DEFAULT false,
    removed_at   timestamptz,
    created_at   timestamptz NOT NULL,
    CONSTRAINT mentions_target_key UNIQUE NULLS NOT DISTINCT (message_id, kind, principal_id, group_id),
    CHECK ((kind = 'principal') = (principal_id IS NOT NULL)),
    CHECK ((kind = 'group') = (group_id IS NOT NULL))
);

CREATE INDEX mentions_principal ON mentions (principal_id, message_id DESC) WHERE removed_at IS NULL AND NOT silent;
CREATE INDEX mentions_thread ON mentions (thread_id, thread_seq) WHERE removed_at IS NULL AND NOT silent;
CREATE INDEX mentions_broadcast ON mentions (author_id, channel_id, created_at) WHERE kind IN ('channel', 'here', 'thread');
