-- SPDX-License-Identifier: Apache-2.0

-- name: ChannelPlaceLockExclusive :exec
-- Takes the place lock of a channel against everybody who writes in
-- it. The row must be read in a later statement, which then sees what the lock waited for.
SELECT pg_advisory_xact_lock(1002, uuid_hash(@channel_id::uuid));

-- name: ChannelPlaceLockShared :exec
-- Takes the place lock of a channel like everybody who writes in it.
SELECT pg_advisory_xact_lock_shared(1002, uuid_hash(@channel_id::uuid));

-- name: ChannelGet :one
-- Finds a channel with what it takes over from its space.
SELECT sqlc.embed(c), s.operator_agent_id AS space_operator_id, coalesce(s.archived_at IS NOT NULL, false)::bool AS space_archived
  FROM channels c LEFT JOIN spaces s ON s.id = c.space_id
 WHERE c.id = @id;

-- name: ChannelLock :exec
-- Holds the row of a channel against every other writer of it.
SELECT id FROM channels WHERE id = @id FOR NO KEY UPDATE;

-- name: ChannelsIn :many
-- Reads channels by ID.
SELECT sqlc.embed(c), s.operator_agent_id AS space_operator_id, coalesce(s.archived_at IS NOT NULL, false)::bool AS space_archived
  FROM channels c LEFT JOIN spaces s ON s.id = c.space_id
 WHERE c.id = ANY(@list::uuid[]);

-- name: ChannelsNamed :many
-- Finds channels of a space by their lower-cased names, by channels_name_key.
SELECT id, lower(name)::text AS name FROM channels
 WHERE space_id = @space_id AND lower(name) = ANY(@names::text[]) AND archived_at IS NULL;

-- name: ChannelSiblings :many
-- Gives the order of the channels of a space, by channels_space.
SELECT id, ck, (archived_at IS NOT NULL)::bool AS archived FROM channels WHERE space_id = @space_id ORDER BY ck, id;

-- name: ChannelInsert :exec
-- Fails on channels_name_key when the name is taken. The main thread may follow.
INSERT INTO channels (id, space_id, kind, name, topic, icon, ck, inherits, main_thread_id, created_by, created_at, updated_at)
VALUES (@id, @space_id, @kind, @name, @topic, @icon, @ck, @inherits, @main_thread_id, @created_by, @created_at, @created_at);

-- name: ChannelUpdate :exec
-- Writes what may change. The caller holds the place lock or the row.
UPDATE channels
   SET name = @name, topic = @topic, icon = @icon, ck = @ck, inherits = @inherits, archived_at = @archived_at, archived_by = @archived_by,
       operator_mode = @operator_mode, operator_agent_id = @operator_agent_id, trigger_rule = @trigger_rule,
       agent_chaining = @agent_chaining, agent_sources = @agent_sources, prompt = @prompt, slow_mode_seconds = @slow_mode_seconds,
       require_tag = @require_tag, default_sort = @default_sort, guidelines = @guidelines, default_reaction = @default_reaction,
       config_version = @config_version, behavior_version = @behavior_version, version = @version, updated_at = @updated_at
 WHERE id = @id;

-- name: ChannelsPage :many
-- Lists visible channels in their order, behind a position. In a visible space
-- a channel that does not inherit is visible only when it is named by itself.
SELECT sqlc.embed(c), s.operator_agent_id AS space_operator_id, coalesce(s.archived_at IS NOT NULL, false)::bool AS space_archived
  FROM channels c LEFT JOIN spaces s ON s.id = c.space_id
 WHERE (@all_places::bool AND c.space_id IS NOT NULL OR c.id = ANY(@channels::uuid[]) OR c.inherits AND c.space_id = ANY(@spaces::uuid[]))
   AND (sqlc.narg(space_id)::uuid IS NULL OR c.space_id = sqlc.narg(space_id)::uuid)
   AND (sqlc.narg(kind)::text IS NULL OR c.kind = sqlc.narg(kind)::text)
   AND (@archived::bool OR c.archived_at IS NULL AND s.archived_at IS NULL)
   AND (c.ck, c.id) > (@after_ck::text, @after_id::uuid)
 ORDER BY c.ck, c.id
 LIMIT @max_rows;

-- name: ChannelsByID :many
-- Lists visible channels by ID, for the snapshot.
SELECT sqlc.embed(c), s.operator_agent_id AS space_operator_id, coalesce(s.archived_at IS NOT NULL, false)::bool AS space_archived
  FROM channels c LEFT JOIN spaces s ON s.id = c.space_id
 WHERE (@all_places::bool AND c.space_id IS NOT NULL OR c.id = ANY(@channels::uuid[]) OR c.inherits AND c.space_id = ANY(@spaces::uuid[]))
   AND (NOT @only_targets::bool OR c.id = ANY(@targets::uuid[]) OR c.space_id = ANY(@targets::uuid[]))
   AND c.id > @after_id
 ORDER BY c.id
 LIMIT @max_rows;

-- name: ChannelStates :many
-- Reads what rights depend on, of every channel.
SELECT c.id, c.space_id, c.kind, c.inherits, c.read_only, (c.archived_at IS NOT NULL)::bool AS archived,
       (CASE c.operator_mode WHEN 'own' THEN c.operator_agent_id WHEN 'inherit' THEN s.operator_agent_id END)::uuid AS operator_id
  FROM channels c LEFT JOIN spaces s ON s.id = c.space_id
 ORDER BY c.id;

-- name: ChannelsOfOperator :many
-- Lists the channels an agent answers in, by channels_operator and, for
-- those that take it from their space, spaces_operator and channels_space.
SELECT c.id FROM channels c WHERE c.operator_agent_id = @agent AND c.operator_mode = 'own'
UNION
SELECT c.id FROM channels c JOIN spaces s ON s.id = c.space_id
 WHERE s.operator_agent_id = @agent AND c.operator_mode = 'inherit'
ORDER BY 1;

-- name: SkillsOf :many
-- Reads the skills of a channel in their order.
SELECT * FROM channel_skill_bindings WHERE channel_id = @channel_id ORDER BY position;

-- name: SkillsDelete :exec
-- Removes the skills of a channel, before they are written anew.
DELETE FROM channel_skill_bindings WHERE channel_id = @channel_id;

-- name: SkillInsert :exec
-- Writes one skill.
INSERT INTO channel_skill_bindings (id, channel_id, name, source, ref, enabled, position)
VALUES (@id, @channel_id, @name, @source, @ref, @enabled, @position);
