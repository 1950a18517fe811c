-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- Reading the record by place, checkpoints outside the database, and the removal of old rows
-- by a role of its own.

-- +goose Up

CREATE INDEX audit_events_space ON audit_events (space_id, seq DESC);

-- What is signed never changes; only what became of its deposit is noted. Retention may add and
-- remove rows and destroy keys, and nothing else. A cluster without the roles, as in
-- development, needs nothing.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'bothy_app') THEN
        REVOKE UPDATE, DELETE ON audit_checkpoints FROM bothy_app;
        GRANT UPDATE (sink_state, sink_attempts, sink_error, deposited_at) ON audit_checkpoints TO bothy_app;
        REVOKE UPDATE, DELETE ON audit_ip_keys FROM bothy_app;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'bothy_maint') THEN
        GRANT SELECT, INSERT, DELETE ON audit_events TO bothy_maint;
        GRANT SELECT ON audit_checkpoints TO bothy_maint;
        GRANT SELECT, UPDATE (key_wrapped, destroyed_at) ON audit_ip_keys TO bothy_maint;
    END IF;
END
$$;
-- +goose StatementEnd
