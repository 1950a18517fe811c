// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/runs/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// Steps implements app.StepRepository.
type Steps struct{ db *pg.DB }

// NewSteps makes the repository.
func NewSteps(db *pg.DB) *Steps { return &Steps{db: db} }

// ByKeys implements app.StepRepository.
func (r *Steps) ByKeys(ctx context.Context, run ids.ID, keys []string) (map[string]*domain.Step, int, error) {
	q := sqlcgen.New(r.db.Querier(ctx))
	rows, err := q.StepsByKeys(ctx, run, keys)
	if err != nil {
		return nil, 0, err
	}
	out := make(map[string]*domain.Step, len(rows))
	for _, row := range rows {
		s := toStep(row)
		out[s.Key] = &s
	}
	total, err := q.StepsCount(ctx, run)
	return out, int(total), err
}

// Newest implements app.StepRepository.
func (r *Steps) Newest(ctx context.Context, run ids.ID, limit int) ([]domain.Step, error) {
	rows, err := sqlcgen.New(r.db.Querier(ctx)).StepsNewest(ctx, run, int32(limit))
	if err != nil {
		return nil, err
	}
	out := make([]domain.Step, 0, len(rows))
	for _, row := range slices.Backward(rows) {
		out = append(out, toStep(row))
	}
	return out, nil
}

// Save implements app.StepRepository.
func (r *Steps) Save(ctx context.Context, run ids.ID, s domain.Step) error {
	return sqlcgen.New(pg.Queued(ctx)).StepUpsert(ctx, sqlcgen.StepUpsertParams{
		ID: ids.New(), RunID: run, Key: s.Key, Ordinal: int32(s.Ordinal), ParentKey: optional(s.ParentKey), Kind: s.Kind, ToolKind: optional(s.ToolKind),
		Title: s.Title, State: s.State, StartedAt: s.StartedAt, EndedAt: s.EndedAt, Input: s.Input, Output: s.Output,
		OutputLength: int32(s.OutputLength), Truncated: s.Truncated,
	})
}

func toStep(row sqlcgen.RunStep) domain.Step {
	return domain.Step{
		Key: row.Key, Ordinal: int(row.Ordinal), ParentKey: value(row.ParentKey), Kind: row.Kind, ToolKind: value(row.ToolKind), Title: row.Title,
		State: row.State, StartedAt: row.StartedAt, EndedAt: row.EndedAt, Input: row.Input, Output: row.Output,
		OutputLength: int(row.OutputLength), Truncated: row.Truncated,
	}
}

// Followups implements app.FollowupRepository.
type Followups struct{ db *pg.DB }

// NewFollowups makes the repository.
func NewFollowups(db *pg.DB) *Followups { return &Followups{db: db} }

// Insert implements app.FollowupRepository.
func (r *Followups) Insert(ctx context.Context, f app.Followup) error {
	return sqlcgen.New(pg.Queued(ctx)).FollowupInsert(ctx, sqlcgen.FollowupInsertParams{
		ID: f.ID, RunID: f.RunID, MessageID: f.MessageID, AuthorID: f.AuthorID, Mode: f.Mode, State: f.State, Position: f.Position,
		CreatedAt: f.CreatedAt, DeliveredAt: f.DeliveredAt,
	})
}

// Open implements app.FollowupRepository.
func (r *Followups) Open(ctx context.Context, run ids.ID) ([]app.Followup, error) {
	return toFollowups(sqlcgen.New(r.db.Querier(ctx)).FollowupsOpen(ctx, run))
}

// ByID implements app.FollowupRepository.
func (r *Followups) ByID(ctx context.Context, id ids.ID) (app.Followup, error) {
	row, err := sqlcgen.New(r.db.Querier(ctx)).FollowupByID(ctx, id)
	if err != nil {
		return app.Followup{}, pg.NotFound(err)
	}
	return toFollowup(row), nil
}

// ByMessage implements app.FollowupRepository.
func (r *Followups) ByMessage(ctx context.Context, message ids.ID) ([]app.Followup, error) {
	return toFollowups(sqlcgen.New(r.db.Querier(ctx)).FollowupsByMessage(ctx, message))
}

// Save implements app.FollowupRepository.
func (r *Followups) Save(ctx context.Context, f app.Followup) error {
	return sqlcgen.New(pg.Queued(ctx)).FollowupSave(ctx, sqlcgen.FollowupSaveParams{
		ID: f.ID, State: f.State, DeliveredAt: f.DeliveredAt, ConsumedAt: f.ConsumedAt, CarriedRunID: f.CarriedRunID.Ptr(),
	})
}

func toFollowups(rows []sqlcgen.RunFollowup, err error) ([]app.Followup, error) {
	if err != nil {
		return nil, err
	}
	out := make([]app.Followup, 0, len(rows))
	for _, row := range rows {
		out = append(out, toFollowup(row))
	}
	return out, nil
}

func toFollowup(row sqlcgen.RunFollowup) app.Followup {
	return app.Followup{
		ID: row.ID, RunID: row.RunID, MessageID: row.MessageID, AuthorID: row.AuthorID, Mode: row.Mode, State: row.State, Position: row.Position,
		CarriedRunID: ids.Deref(row.CarriedRunID), CreatedAt: row.CreatedAt, DeliveredAt: row.DeliveredAt, ConsumedAt: row.ConsumedAt,
	}
}
