-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- Changes of rights ask who can set agents to work.

-- +goose Up

CREATE INDEX grants_trigger ON grants (target_kind, target_id) WHERE level IN ('trigger', 'manage');
