// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/sync/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/sync/app"
	"github.com/OWNER/bothy/services/server/internal/sync/domain"
)

// ReadStates implements app.ReadStateRepository.
type ReadStates struct{ db *pg.DB }

// NewReadStates makes the repository.
func NewReadStates(db *pg.DB) *ReadStates { return &ReadStates{db: db} }

// Lock implements app.ReadStateRepository.
func (r *ReadStates) Lock(ctx context.Context, principal, thread ids.ID) (app.StoredReadState, bool, error) {
	row, err := sqlcgen.New(r.db.Querier(ctx)).ReadStateLock(ctx, principal, thread)
	if pg.IsNoRows(err) {
		return app.StoredReadState{}, false, nil
	}
	return readState(row), err == nil, err
}

// ByThreads implements app.ReadStateRepository.
func (r *ReadStates) ByThreads(ctx context.Context, principal ids.ID, threads []ids.ID) (map[ids.ID]app.StoredReadState, error) {
	rows, err := sqlcgen.New(r.db.Querier(ctx)).ReadStatesByThreads(ctx, principal, notNil(threads))
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]app.StoredReadState, len(rows))
	for _, row := range rows {
		out[row.ThreadID] = readState(row)
	}
	return out, nil
}

// Post implements app.ReadStateRepository.
func (r *ReadStates) Post(ctx context.Context, principal ids.ID, s domain.ReadState, at time.Time) error {
	return sqlcgen.New(pg.Queued(ctx)).ReadStatePost(ctx, sqlcgen.ReadStatePostParams{
		PrincipalID: principal, ThreadID: s.ThreadID, ChannelID: s.ChannelID, LastReadThreadSeq: s.LastRead, Origin: string(s.Origin), UpdatedAt: at,
	})
}

// Save implements app.ReadStateRepository.
func (r *ReadStates) Save(ctx context.Context, principal ids.ID, s domain.ReadState, at time.Time) error {
	p := sqlcgen.ReadStateUpsertParams{
		PrincipalID: principal, ThreadID: s.ThreadID, ChannelID: s.ChannelID, LastReadThreadSeq: s.LastRead,
		Origin: string(s.Origin), Version: s.Version, UpdatedAt: at,
	}
	if s.UnreadFrom > 0 {
		p.ManuallyUnreadFrom = &s.UnreadFrom
	}
	return sqlcgen.New(pg.Queued(ctx)).ReadStateUpsert(ctx, p)
}

// Baseline implements app.ReadStateRepository.
func (r *ReadStates) Baseline(ctx context.Context, principal ids.ID, states []domain.ReadState, at time.Time) error {
	p := sqlcgen.ReadStatesBaselineParams{PrincipalID: principal, UpdatedAt: at}
	for _, s := range states {
		p.Threads = append(p.Threads, s.ThreadID)
		p.Channels = append(p.Channels, s.ChannelID)
		p.Seqs = append(p.Seqs, s.LastRead)
	}
	return sqlcgen.New(pg.Queued(ctx)).ReadStatesBaseline(ctx, p)
}

func readState(row sqlcgen.ReadState) app.StoredReadState {
	s := app.StoredReadState{UpdatedAt: row.UpdatedAt, ReadState: domain.ReadState{
		ThreadID: row.ThreadID, ChannelID: row.ChannelID, LastRead: row.LastReadThreadSeq, Origin: domain.Origin(row.Origin), Version: row.Version,
	}}
	if row.ManuallyUnreadFrom != nil {
		s.UnreadFrom = *row.ManuallyUnreadFrom
	}
	return s
}
