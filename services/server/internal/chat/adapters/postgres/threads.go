// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/chat/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Threads implements app.ThreadRepository.
type Threads struct{ db *pg.DB }

// NewThreads makes the repository.
func NewThreads(db *pg.DB) *Threads { return &Threads{db: db} }

var _ app.ThreadRepository = (*Threads)(nil)

func (r *Threads) read(ctx context.Context) *sqlcgen.Queries {
	return sqlcgen.New(r.db.Querier(ctx))
}

// LockPlace implements app.ThreadRepository.
func (r *Threads) LockPlace(ctx context.Context, id ids.ID) error {
	return queued(ctx).ThreadPlaceLockShared(ctx, id)
}

// LockRow implements app.ThreadRepository.
func (r *Threads) LockRow(ctx context.Context, id ids.ID) error {
	return queued(ctx).ThreadRowLock(ctx, id)
}

// Place implements app.ThreadRepository.
func (r *Threads) Place(ctx context.Context, id ids.ID) (domain.Thread, domain.Channel, error) {
	row, err := r.read(ctx).ThreadPlace(ctx, id)
	if err != nil {
		return domain.Thread{}, domain.Channel{}, pg.NotFound(err)
	}
	c := domain.Channel{
		ID: row.Thread.ChannelID, SpaceID: ids.Deref(row.SpaceID), Kind: row.ChannelKind, Name: value(row.Name), MainThreadID: ids.Deref(row.MainThreadID),
		Inherits: row.Inherits, ReadOnly: row.ReadOnly, SpaceArchived: row.SpaceArchived,
		OperatorMode: row.OperatorMode, OwnOperatorID: ids.Deref(row.OperatorAgentID), SpaceOperatorID: ids.Deref(row.SpaceOperatorID),
		Behavior:        domain.Behavior{TriggerRule: row.TriggerRule, AgentChaining: row.AgentChaining, AgentSources: row.AgentSources},
		SlowModeSeconds: int(row.SlowModeSeconds), ConfigVersion: row.ConfigVersion,
		ArchivedAt: row.ArchivedAt,
	}
	return thread(row.Thread, row.SpaceID), c, nil
}

// Get implements app.ThreadRepository.
func (r *Threads) Get(ctx context.Context, id ids.ID) (domain.Thread, error) {
	row, err := r.read(ctx).ThreadGet(ctx, id)
	return thread(row.Thread, row.SpaceID), pg.NotFound(err)
}

// In implements app.ThreadRepository.
func (r *Threads) In(ctx context.Context, list []ids.ID) ([]domain.Thread, error) {
	rows, err := r.read(ctx).ThreadsIn(ctx, notNil(list))
	out := make([]domain.Thread, len(rows))
	for i, row := range rows {
		out[i] = thread(row.Thread, row.SpaceID)
	}
	return out, err
}

// Channel implements app.ThreadRepository.
func (r *Threads) Channel(ctx context.Context, id ids.ID) (ids.ID, error) {
	channel, err := r.read(ctx).ThreadChannel(ctx, id)
	return channel, pg.NotFound(err)
}

// Insert implements app.ThreadRepository.
func (r *Threads) Insert(ctx context.Context, t domain.Thread) error {
	return queued(ctx).ThreadInsert(ctx, sqlcgen.ThreadInsertParams{
		ID: t.ID, ChannelID: t.ChannelID, Kind: t.Kind, ParentMessageID: t.ParentMessageID.Ptr(), Title: optional(t.Title),
		TitleSource: t.TitleSource, CreatedAt: t.CreatedAt, CreatedBy: t.CreatedBy.Ptr(),
	})
}

// Append implements app.ThreadRepository.
func (r *Threads) Append(ctx context.Context, id ids.ID, countable, reopen bool, at time.Time) (domain.Thread, bool, error) {
	row, err := r.read(ctx).ThreadAppend(ctx, sqlcgen.ThreadAppendParams{ID: id, Countable: countable, Reopen: reopen, At: at})
	return thread(row.Thread, nil), row.StateBefore == domain.StateClosed, pg.NotFound(err)
}

// Forget implements app.ThreadRepository.
func (r *Threads) Forget(ctx context.Context, id ids.ID, lastCountable int64) (domain.Thread, error) {
	row, err := r.read(ctx).ThreadForget(ctx, lastCountable, id)
	return thread(row, nil), pg.NotFound(err)
}

// Main implements app.ThreadRepository.
func (r *Threads) Main(ctx context.Context, channel ids.ID) (domain.Thread, error) {
	row, err := r.read(ctx).ThreadMain(ctx, channel)
	return thread(row.Thread, row.SpaceID), pg.NotFound(err)
}

// List implements app.ThreadRepository.
func (r *Threads) List(ctx context.Context, q app.ThreadQuery) ([]domain.Thread, error) {
	p := sqlcgen.ThreadsByActivityParams{
		ChannelID: q.ChannelID, Kind: optional(q.Kind), State: optional(q.State), WithEmpty: q.WithEmpty,
		BeforeAt: q.BeforeAt, BeforeID: q.BeforeID, MaxRows: int32(q.Limit),
	}
	var out []domain.Thread
	if q.ByCreation {
		rows, err := r.read(ctx).ThreadsByCreation(ctx, sqlcgen.ThreadsByCreationParams(p))
		for _, row := range rows {
			out = append(out, thread(row.Thread, row.SpaceID))
		}
		return out, err
	}
	rows, err := r.read(ctx).ThreadsByActivity(ctx, p)
	for _, row := range rows {
		out = append(out, thread(row.Thread, row.SpaceID))
	}
	return out, err
}

// ByID implements app.ThreadRepository.
func (r *Threads) ByID(ctx context.Context, q app.Snapshot, since time.Time) ([]domain.Thread, error) {
	rows, err := r.read(ctx).ThreadsByID(ctx, sqlcgen.ThreadsByIDParams{
		AllPlaces: q.Visible.All, Channels: notNil(q.Visible.Channels), Spaces: notNil(q.Visible.Spaces),
		OnlyTargets: len(q.Targets) > 0, Targets: notNil(q.Targets), Since: since, AfterID: q.After, MaxRows: int32(q.Limit),
	})
	out := make([]domain.Thread, len(rows))
	for i, row := range rows {
		out[i] = thread(row.Thread, row.SpaceID)
	}
	return out, err
}

// OfChannels implements app.ThreadRepository.
func (r *Threads) OfChannels(ctx context.Context, channels []ids.ID, limit int) ([]domain.Thread, error) {
	rows, err := r.read(ctx).ThreadsOfChannels(ctx, notNil(channels), int32(limit))
	out := make([]domain.Thread, len(rows))
	for i, row := range rows {
		out[i] = thread(row.Thread, row.SpaceID)
	}
	return out, err
}

func thread(t sqlcgen.Thread, space *ids.ID) domain.Thread {
	return domain.Thread{
		ID: t.ID, ChannelID: t.ChannelID, SpaceID: ids.Deref(space), Kind: t.Kind, ParentMessageID: ids.Deref(t.ParentMessageID),
		Title: value(t.Title), TitleSource: t.TitleSource, State: t.State, ClosedAt: t.ClosedAt, ClosedBy: ids.Deref(t.ClosedBy), CloseReason: value(t.CloseReason),
		Counters: domain.Counters{
			Rev: t.CountersRev, First: t.FirstThreadSeq, Last: t.LastThreadSeq, LastCountable: t.LastCountableSeq,
			Messages: int64(t.MessageCount), LastMessageAt: t.LastMessageAt,
		},
		ActiveAt: t.ActiveAt, CreatedBy: ids.Deref(t.CreatedBy), CreatedAt: t.CreatedAt, Version: t.Version,
	}
}
