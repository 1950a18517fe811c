-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- Feature flags, and the counter of the record for the role that removes old rows from it.

-- +goose Up

-- A flag that the program knows and that has no row here has its default.
CREATE TABLE feature_flags (
    key        text        PRIMARY KEY CHECK (char_length(key) BETWEEN 1 AND 64),
    state      text        NOT NULL CHECK (state IN ('off', 'on', 'rollout')),
    people     uuid[]      NOT NULL DEFAULT '{}' CHECK (cardinality(people) <= 1000),
    groups     uuid[]      NOT NULL DEFAULT '{}' CHECK (cardinality(groups) <= 100),
    percent    smallint    NOT NULL DEFAULT 0 CHECK (percent BETWEEN 0 AND 100),
    version    bigint      NOT NULL,
    updated_by uuid,
    updated_at timestamptz NOT NULL
);

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'bothy_maint') THEN
        GRANT SELECT, UPDATE ON sequence_counters TO bothy_maint;
        GRANT EXECUTE ON FUNCTION instance_counter_raise(text, bigint) TO bothy_maint;
    END IF;
END
$$;
-- +goose StatementEnd
