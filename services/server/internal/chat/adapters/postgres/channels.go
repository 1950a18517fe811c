// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/chat/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Channels implements app.ChannelRepository.
type Channels struct{ db *pg.DB }

// NewChannels makes the repository.
func NewChannels(db *pg.DB) *Channels { return &Channels{db: db} }

var _ app.ChannelRepository = (*Channels)(nil)

func (r *Channels) read(ctx context.Context) *sqlcgen.Queries {
	return sqlcgen.New(r.db.Querier(ctx))
}

// LockExclusive implements app.ChannelRepository.
func (r *Channels) LockExclusive(ctx context.Context, id ids.ID) error {
	return queued(ctx).ChannelPlaceLockExclusive(ctx, id)
}

// LockShared implements app.ChannelRepository.
func (r *Channels) LockShared(ctx context.Context, id ids.ID) error {
	return queued(ctx).ChannelPlaceLockShared(ctx, id)
}

// LockRow implements app.ChannelRepository.
func (r *Channels) LockRow(ctx context.Context, id ids.ID) error {
	return queued(ctx).ChannelLock(ctx, id)
}

// Get implements app.ChannelRepository.
func (r *Channels) Get(ctx context.Context, id ids.ID) (domain.Channel, error) {
	row, err := r.read(ctx).ChannelGet(ctx, id)
	return channel(row), pg.NotFound(err)
}

// In implements app.ChannelRepository.
func (r *Channels) In(ctx context.Context, list []ids.ID) ([]domain.Channel, error) {
	rows, err := r.read(ctx).ChannelsIn(ctx, notNil(list))
	out := make([]domain.Channel, len(rows))
	for i, row := range rows {
		out[i] = channel(sqlcgen.ChannelGetRow(row))
	}
	return out, err
}

// Named implements app.ChannelRepository.
func (r *Channels) Named(ctx context.Context, space ids.ID, names []string) (map[string]ids.ID, error) {
	rows, err := r.read(ctx).ChannelsNamed(ctx, &space, names)
	out := make(map[string]ids.ID, len(rows))
	for _, row := range rows {
		out[row.Name] = row.ID
	}
	return out, err
}

// Siblings implements app.ChannelRepository.
func (r *Channels) Siblings(ctx context.Context, space ids.ID) ([]domain.Sibling, error) {
	rows, err := r.read(ctx).ChannelSiblings(ctx, &space)
	out := make([]domain.Sibling, len(rows))
	for i, row := range rows {
		out[i] = domain.Sibling{ID: row.ID, Key: row.Ck, Archived: row.Archived}
	}
	return out, err
}

// Insert implements app.ChannelRepository.
func (r *Channels) Insert(ctx context.Context, c domain.Channel) error {
	return queued(ctx).ChannelInsert(ctx, sqlcgen.ChannelInsertParams{
		ID: c.ID, SpaceID: c.SpaceID.Ptr(), Kind: c.Kind, Name: optional(c.Name), Topic: c.Topic, Icon: c.Icon, Ck: c.Key, Inherits: c.Inherits,
		MainThreadID: c.MainThreadID.Ptr(), CreatedBy: c.CreatedBy, CreatedAt: c.CreatedAt,
	})
}

// Update implements app.ChannelRepository.
func (r *Channels) Update(ctx context.Context, c domain.Channel) error {
	b, f := c.Behavior, c.Forum
	return queued(ctx).ChannelUpdate(ctx, sqlcgen.ChannelUpdateParams{
		ID: c.ID, Name: optional(c.Name), Topic: c.Topic, Icon: c.Icon, Ck: c.Key, Inherits: c.Inherits,
		ArchivedAt: c.ArchivedAt, ArchivedBy: c.ArchivedBy.Ptr(), OperatorMode: c.OperatorMode, OperatorAgentID: c.OwnOperatorID.Ptr(),
		TriggerRule: b.TriggerRule, AgentChaining: b.AgentChaining, AgentSources: b.AgentSources, Prompt: b.Prompt,
		SlowModeSeconds: int32(c.SlowModeSeconds), RequireTag: f.RequireTag, DefaultSort: f.DefaultSort, Guidelines: f.Guidelines,
		DefaultReaction: f.DefaultReaction, ConfigVersion: c.ConfigVersion, BehaviorVersion: c.BehaviorVersion, Version: c.Version, UpdatedAt: c.UpdatedAt,
	})
}

// Skills implements app.ChannelRepository.
func (r *Channels) Skills(ctx context.Context, id ids.ID) ([]domain.Skill, error) {
	rows, err := r.read(ctx).SkillsOf(ctx, id)
	out := make([]domain.Skill, len(rows))
	for i, row := range rows {
		out[i] = domain.Skill{Name: row.Name, Source: row.Source, Ref: row.Ref, Enabled: row.Enabled}
	}
	return out, err
}

// ReplaceSkills implements app.ChannelRepository.
func (r *Channels) ReplaceSkills(ctx context.Context, id ids.ID, skills []domain.Skill) error {
	q := queued(ctx)
	if err := q.SkillsDelete(ctx, id); err != nil {
		return err
	}
	for i, s := range skills {
		err := q.SkillInsert(ctx, sqlcgen.SkillInsertParams{
			ID: ids.New(), ChannelID: id, Name: s.Name, Source: s.Source, Ref: s.Ref, Enabled: s.Enabled, Position: int32(i),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Page implements app.ChannelRepository.
func (r *Channels) Page(ctx context.Context, q app.ChannelQuery) ([]domain.Channel, error) {
	rows, err := r.read(ctx).ChannelsPage(ctx, sqlcgen.ChannelsPageParams{
		AllPlaces: q.Visible.All, Channels: notNil(q.Visible.Channels), Spaces: notNil(q.Visible.Spaces), SpaceID: q.SpaceID.Ptr(),
		Kind: optional(q.Kind), Archived: q.Archived, AfterCk: q.AfterKey, AfterID: q.AfterID, MaxRows: int32(q.Limit),
	})
	out := make([]domain.Channel, len(rows))
	for i, row := range rows {
		out[i] = channel(sqlcgen.ChannelGetRow(row))
	}
	return out, err
}

// ByID implements app.ChannelRepository.
func (r *Channels) ByID(ctx context.Context, q app.Snapshot) ([]domain.Channel, error) {
	rows, err := r.read(ctx).ChannelsByID(ctx, sqlcgen.ChannelsByIDParams{
		AllPlaces: q.Visible.All, Channels: notNil(q.Visible.Channels), Spaces: notNil(q.Visible.Spaces),
		OnlyTargets: len(q.Targets) > 0, Targets: notNil(q.Targets), AfterID: q.After, MaxRows: int32(q.Limit),
	})
	out := make([]domain.Channel, len(rows))
	for i, row := range rows {
		out[i] = channel(sqlcgen.ChannelGetRow(row))
	}
	return out, err
}

// States implements app.ChannelRepository.
func (r *Channels) States(ctx context.Context) ([]authz.ChannelState, error) {
	rows, err := r.read(ctx).ChannelStates(ctx)
	out := make([]authz.ChannelState, len(rows))
	for i, row := range rows {
		out[i] = authz.ChannelState{
			ID: row.ID, SpaceID: ids.Deref(row.SpaceID), Direct: row.Kind == domain.KindDirect, Inherits: row.Inherits,
			Archived: row.Archived, ReadOnly: row.ReadOnly, OperatorID: row.OperatorID,
		}
	}
	return out, err
}

// OfOperator implements app.ChannelRepository.
func (r *Channels) OfOperator(ctx context.Context, agent ids.ID) ([]ids.ID, error) {
	return r.read(ctx).ChannelsOfOperator(ctx, &agent)
}

func channel(row sqlcgen.ChannelGetRow) domain.Channel {
	c := row.Channel
	return domain.Channel{
		ID: c.ID, SpaceID: ids.Deref(c.SpaceID), Kind: c.Kind, Name: value(c.Name), Topic: c.Topic, Icon: c.Icon, Key: c.Ck, Inherits: c.Inherits,
		MainThreadID: ids.Deref(c.MainThreadID), ReadOnly: c.ReadOnly, ReadOnlyBy: value(c.ReadOnlySource),
		ArchivedAt: c.ArchivedAt, ArchivedBy: ids.Deref(c.ArchivedBy), SpaceArchived: row.SpaceArchived,
		OperatorMode: c.OperatorMode, OwnOperatorID: ids.Deref(c.OperatorAgentID), SpaceOperatorID: ids.Deref(row.SpaceOperatorID),
		Behavior: domain.Behavior{
			TriggerRule: c.TriggerRule, AgentChaining: c.AgentChaining, AgentSources: c.AgentSources, Transcription: c.Transcription, Prompt: c.Prompt,
		},
		SlowModeSeconds: int(c.SlowModeSeconds),
		Forum: domain.Forum{
			RequireTag: c.RequireTag, DefaultSort: c.DefaultSort, Guidelines: c.Guidelines, DefaultReaction: c.DefaultReaction, TemplateID: ids.Deref(c.TemplateID),
		},
		ConfigVersion: c.ConfigVersion, BehaviorVersion: c.BehaviorVersion, Version: c.Version,
		CreatedBy: c.CreatedBy, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
}

// optional is NULL for the empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
