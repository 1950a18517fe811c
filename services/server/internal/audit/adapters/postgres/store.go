// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps the audit log in PostgreSQL.
package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Store implements app.Store.
type Store struct{ db *pg.DB }

var _ app.Store = (*Store)(nil)

// New makes the store on a database.
func New(db *pg.DB) *Store { return &Store{db: db} }

func (s *Store) queries(ctx context.Context) *sqlcgen.Queries { return sqlcgen.New(s.db.Querier(ctx)) }

// Last implements app.Store.
func (s *Store) Last(ctx context.Context) (int64, domain.Hash, bool, error) {
	r, err := s.queries(ctx).EventLast(ctx)
	if pg.IsNoRows(err) {
		return 0, domain.Hash{}, false, nil
	}
	if err != nil {
		return 0, domain.Hash{}, false, err
	}
	return r.Seq, domain.Hash(r.Hash), true, nil
}

// Insert implements app.Store.
func (s *Store) Insert(ctx context.Context, rows []domain.Row) error {
	q := sqlcgen.New(pg.Queued(ctx))
	for i := range rows {
		if err := q.EventInsert(ctx, toParams(&rows[i])); err != nil {
			return fmt.Errorf("store an audit row: %w", err)
		}
	}
	return nil
}

// Rows implements app.Store.
func (s *Store) Rows(ctx context.Context, from int64, limit int) ([]domain.Row, error) {
	list, err := s.queries(ctx).EventRange(ctx, from, int32(limit))
	if err != nil {
		return nil, err
	}
	out := make([]domain.Row, len(list))
	for i := range list {
		out[i] = toRow(&list[i])
	}
	return out, nil
}

// Bounds implements app.Store.
func (s *Store) Bounds(ctx context.Context) (first, last int64, err error) {
	r, err := s.queries(ctx).EventBounds(ctx)
	return r.First, r.Last, err
}

// LastCheckpoint implements app.Store.
func (s *Store) LastCheckpoint(ctx context.Context) (domain.Checkpoint, bool, error) {
	r, err := s.queries(ctx).CheckpointLast(ctx)
	if pg.IsNoRows(err) {
		return domain.Checkpoint{}, false, nil
	}
	if err != nil {
		return domain.Checkpoint{}, false, err
	}
	return toCheckpoint(r), true, nil
}

// Checkpoints implements app.Store.
func (s *Store) Checkpoints(ctx context.Context, from, to int64) ([]domain.Checkpoint, error) {
	list, err := s.queries(ctx).CheckpointRange(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return toCheckpoints(list), nil
}

// CheckpointPage implements app.Store.
func (s *Store) CheckpointPage(ctx context.Context, before int64, limit int) ([]domain.Checkpoint, error) {
	list, err := s.queries(ctx).CheckpointPage(ctx, below(before), int32(limit))
	return toCheckpoints(list), err
}

// Pending implements app.Store.
func (s *Store) Pending(ctx context.Context, limit int) ([]domain.Checkpoint, error) {
	list, err := s.queries(ctx).CheckpointPending(ctx, int32(limit))
	return toCheckpoints(list), err
}

// NoteDeposit implements app.Store.
func (s *Store) NoteDeposit(ctx context.Context, id ids.ID, at time.Time) error {
	return s.queries(ctx).CheckpointDeposited(ctx, at, id)
}

// NoteSinkFailure implements app.Store.
func (s *Store) NoteSinkFailure(ctx context.Context, id ids.ID, code string) error {
	return s.queries(ctx).CheckpointSinkFailed(ctx, code, id)
}

// InsertCheckpoint implements app.Store.
func (s *Store) InsertCheckpoint(ctx context.Context, c domain.Checkpoint) error {
	return s.queries(ctx).CheckpointInsert(ctx, sqlcgen.CheckpointInsertParams{
		ID: c.ID, Seq: c.Seq, FirstSeq: c.FirstSeq, Hash: c.HashValue[:], PrevCheckpointHash: c.Previous[:],
		Kid: c.KID, Jws: c.JWS, CreatedAt: c.CreatedAt, SinkState: string(c.Sink),
	})
}

// IPKeys implements app.Store.
func (s *Store) IPKeys(ctx context.Context, now time.Time) ([]app.IPKey, error) {
	list, err := s.queries(ctx).IPKeyList(ctx, now)
	if err != nil {
		return nil, err
	}
	out := make([]app.IPKey, len(list))
	for i, r := range list {
		out[i] = app.IPKey{ID: r.ID, ValidFrom: r.ValidFrom, ValidUntil: r.ValidUntil, Wrapped: r.KeyWrapped}
	}
	return out, nil
}

// InsertIPKey implements app.Store.
func (s *Store) InsertIPKey(ctx context.Context, k app.IPKey) error {
	return s.queries(ctx).IPKeyInsert(ctx, sqlcgen.IPKeyInsertParams{
		ID: k.ID, ValidFrom: k.ValidFrom, ValidUntil: k.ValidUntil, KeyWrapped: k.Wrapped,
	})
}

func toParams(r *domain.Row) sqlcgen.EventInsertParams {
	return sqlcgen.EventInsertParams{
		Seq: r.Seq, ID: r.ID, OccurredAt: r.OccurredAt, Action: r.Action, Outcome: r.Outcome, Reason: text(r.Reason),
		ActorKind: r.Actor.Kind, ActorID: r.Actor.ID.Ptr(), SessionID: r.Actor.SessionID.Ptr(), DeviceID: r.Actor.DeviceID.Ptr(),
		TokenID: r.Actor.TokenID.Ptr(), ActingForID: r.Actor.ActingForID.Ptr(), ViewAsID: r.Actor.ViewAsID.Ptr(),
		ResourceKind: text(r.ResourceKind), ResourceID: r.ResourceID.Ptr(), SpaceID: r.SpaceID.Ptr(), ChannelID: r.ChannelID.Ptr(),
		Details: r.Details, CorrelationID: r.CorrelationID.Ptr(), IpKeyID: r.IPKeyID.Ptr(), IpPseudonym: text(r.IPPseudonym),
		PrevHash: r.PrevHash[:], Hash: r.HashValue[:],
	}
}

func toRow(r *sqlcgen.AuditEvent) domain.Row {
	return domain.Row{
		Seq: r.Seq, ID: r.ID, OccurredAt: r.OccurredAt, Action: r.Action, Outcome: r.Outcome, Reason: deref(r.Reason),
		Actor: domain.Actor{
			Kind: r.ActorKind, ID: ids.Deref(r.ActorID), SessionID: ids.Deref(r.SessionID), DeviceID: ids.Deref(r.DeviceID),
			TokenID: ids.Deref(r.TokenID), ActingForID: ids.Deref(r.ActingForID), ViewAsID: ids.Deref(r.ViewAsID),
		},
		ResourceKind: deref(r.ResourceKind), ResourceID: ids.Deref(r.ResourceID), SpaceID: ids.Deref(r.SpaceID),
		ChannelID: ids.Deref(r.ChannelID), Details: r.Details, CorrelationID: ids.Deref(r.CorrelationID),
		IPKeyID: ids.Deref(r.IpKeyID), IPPseudonym: deref(r.IpPseudonym),
		PrevHash: hash(r.PrevHash), HashValue: hash(r.Hash),
	}
}

func toCheckpoints(list []sqlcgen.AuditCheckpoint) []domain.Checkpoint {
	out := make([]domain.Checkpoint, len(list))
	for i, r := range list {
		out[i] = toCheckpoint(r)
	}
	return out
}

func toCheckpoint(r sqlcgen.AuditCheckpoint) domain.Checkpoint {
	return domain.Checkpoint{
		ID: r.ID, Seq: r.Seq, FirstSeq: r.FirstSeq, HashValue: hash(r.Hash), Previous: hash(r.PrevCheckpointHash),
		KID: r.Kid, JWS: r.Jws, CreatedAt: r.CreatedAt, Sink: domain.SinkState(r.SinkState), SinkAttempts: int(r.SinkAttempts),
		SinkError: deref(r.SinkError), DepositedAt: r.DepositedAt,
	}
}

// hash reads a column that a check keeps at its size.
func hash(b []byte) domain.Hash {
	var h domain.Hash
	copy(h[:], b)
	return h
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
