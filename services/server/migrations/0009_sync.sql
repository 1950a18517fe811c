-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- The event log in partitions, the answers of repeatable writes and the read positions.

-- +goose Up

-- The only channel of durable change. Rows are appended in the order of commits under the
-- counter event_seq; nothing but redaction ever changes a row.
CREATE TABLE event_log (
    seq                bigint      NOT NULL,
    event_id           uuid        NOT NULL,
    type               text        NOT NULL CHECK (type ~ '^[a-z_]+(\.[a-z_]+)+$'),
    occurred_at        timestamptz NOT NULL,
    actor_id           uuid,
    actor_kind         text        NOT NULL CHECK (actor_kind IN ('person', 'agent', 'app', 'webhook', 'host', 'system')),
    acting_for_id      uuid,
    space_id           uuid,
    channel_id         uuid,
    thread_id          uuid,
    principal_id       uuid,
    resource_type      text,
    resource_id        uuid,
    payload            jsonb       NOT NULL,
    payload_version    smallint    NOT NULL DEFAULT 1,
    permission_version bigint      NOT NULL,
    correlation_id     uuid,
    redacted_at        timestamptz,
    PRIMARY KEY (seq),
    CHECK (thread_id IS NULL OR channel_id IS NOT NULL)
) PARTITION BY RANGE (seq);

-- Agent runners and the personal events of one principal.
CREATE INDEX event_log_principal ON event_log (principal_id, seq) WHERE principal_id IS NOT NULL;
-- Redaction and the history of one thing.
CREATE INDEX event_log_resource ON event_log (resource_id, seq) WHERE resource_id IS NOT NULL;

-- The answers of writes with an Idempotency-Key.
CREATE TABLE idempotency_keys (
    scope_id     uuid        NOT NULL,
    operation_id text        NOT NULL,
    key          text        NOT NULL CHECK (key ~ '^[\x21-\x7e]{1,128}$'),
    request_hash bytea       NOT NULL CHECK (octet_length(request_hash) = 32),
    state        text        NOT NULL CHECK (state IN ('in_progress', 'completed')),
    status       int,
    headers      jsonb,
    body         bytea,
    secret_shown boolean     NOT NULL DEFAULT false,
    resource_id  uuid,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (scope_id, operation_id, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- How far a person has read a thread.
CREATE TABLE read_states (
    principal_id         uuid        NOT NULL,
    thread_id            uuid        NOT NULL,
    channel_id           uuid        NOT NULL,
    last_read_thread_seq bigint      NOT NULL CHECK (last_read_thread_seq >= 0),
    manually_unread_from bigint CHECK (manually_unread_from >= 1),
    origin               text        NOT NULL CHECK (origin IN ('user', 'post', 'baseline')),
    version              bigint      NOT NULL DEFAULT 1,
    updated_at           timestamptz NOT NULL,
    PRIMARY KEY (principal_id, thread_id)
);
CREATE INDEX read_states_channel ON read_states (principal_id, channel_id);
CREATE INDEX read_states_thread ON read_states (thread_id);

-- Raises the private state BY001 when the rights have changed since the unit decided. It is
-- called in a statement that begins after the counter of events is locked, so the version it
-- reads is exactly the one in force at the position about to be written.
-- +goose StatementBegin
CREATE FUNCTION event_log_permission_version(decided bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, public
AS $$
DECLARE
    present bigint := instance_counter_value('permission_version');
BEGIN
    IF decided IS NOT NULL AND decided <> present THEN
        RAISE EXCEPTION 'rights changed from version % to %', decided, present USING ERRCODE = 'BY001';
    END IF;
    RETURN present;
END
$$;
-- +goose StatementEnd

-- The role of the server owns no table, so partitions come and go through functions of the
-- schema's owner. Every step looks at the catalogue first and can be repeated.
-- +goose StatementBegin
CREATE FUNCTION event_log_create_partitions(ahead int, size bigint) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public
    SET lock_timeout = '200ms'
AS $$
DECLARE
    head  bigint := instance_counter_value('event_seq');
    first bigint;
    made  int := 0;
    name  text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('event_log_partitions', 0));
    -- Partitions may have been made with another size, so the next bound is read, not computed.
    SELECT coalesce(max((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''?(\d+)''?\)'))[1]::bigint), 1)
      INTO first
      FROM pg_inherits i
      JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'public.event_log'::regclass;
    WHILE first <= head + ahead * size LOOP
        name := 'event_log_p' || first;
        EXECUTE format('CREATE TABLE public.%I (LIKE public.event_log INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name);
        EXECUTE format('ALTER TABLE public.%I ADD CONSTRAINT %I CHECK (seq >= %s AND seq < %s)', name, name || '_range', first, first + size);
        EXECUTE format('ALTER TABLE public.event_log ATTACH PARTITION public.%I FOR VALUES FROM (%s) TO (%s)', name, first, first + size);
        EXECUTE format('ALTER TABLE public.%I DROP CONSTRAINT %I', name, name || '_range');
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'bothy_app') THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON public.%I TO bothy_app', name);
        END IF;
        first := first + size;
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;
-- +goose StatementEnd

-- Detaches the partitions whose rows are all older than the given time, never the one that
-- holds the head, and returns how many.
-- +goose StatementBegin
CREATE FUNCTION event_log_detach_expired(before timestamptz) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public
    SET lock_timeout = '200ms'
AS $$
DECLARE
    head    bigint := instance_counter_value('event_seq');
    part    record;
    youngest timestamptz;
    gone    int := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('event_log_partitions', 0));
    FOR part IN
        SELECT c.relname AS name,
               (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''?(\d+)''?\)'))[1]::bigint AS upper
          FROM pg_inherits i
          JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'public.event_log'::regclass
         ORDER BY 2
    LOOP
        EXIT WHEN part.upper > head;
        EXECUTE format('SELECT max(occurred_at) FROM public.%I', part.name) INTO youngest;
        EXIT WHEN youngest IS NOT NULL AND youngest >= before;
        EXECUTE format('ALTER TABLE public.event_log DETACH PARTITION public.%I', part.name);
        gone := gone + 1;
    END LOOP;
    RETURN gone;
END
$$;
-- +goose StatementEnd

-- Drops partitions that have been detached.
-- +goose StatementBegin
CREATE FUNCTION event_log_drop_detached() RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public
    SET lock_timeout = '200ms'
AS $$
DECLARE
    name text;
    gone int := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('event_log_partitions', 0));
    FOR name IN
        SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'public' AND c.relkind = 'r' AND c.relname ~ '^event_log_p\d+$' AND NOT c.relispartition
    LOOP
        EXECUTE format('DROP TABLE public.%I', name);
        gone := gone + 1;
    END LOOP;
    RETURN gone;
END
$$;
-- +goose StatementEnd

REVOKE EXECUTE ON FUNCTION event_log_create_partitions(int, bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION event_log_detach_expired(timestamptz) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION event_log_drop_detached() FROM PUBLIC;

-- The role exists when the database was bootstrapped; a plain test database has none.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'bothy_app') THEN
        GRANT EXECUTE ON FUNCTION event_log_create_partitions(int, bigint) TO bothy_app;
        GRANT EXECUTE ON FUNCTION event_log_detach_expired(timestamptz) TO bothy_app;
        GRANT EXECUTE ON FUNCTION event_log_drop_detached() TO bothy_app;
    END IF;
END
$$;
-- +goose StatementEnd

SELECT event_log_create_partitions(3, 1000000);
