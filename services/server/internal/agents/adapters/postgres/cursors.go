// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Cursors implements app.CursorRepository.
type Cursors struct{ db *pg.DB }

// NewCursors makes the repository.
func NewCursors(db *pg.DB) *Cursors { return &Cursors{db: db} }

// Begin implements app.CursorRepository.
func (r *Cursors) Begin(ctx context.Context, agent ids.ID, head int64, now time.Time) error {
	return sqlcgen.New(pg.Queued(ctx)).AgentConsumerBegin(ctx, agent, head, now)
}

// TakeOver implements app.CursorRepository.
func (r *Cursors) TakeOver(ctx context.Context, agent, holder ids.ID, head int64, now time.Time) (int64, error) {
	return sqlcgen.New(r.db.Querier(ctx)).AgentConsumerTakeOver(ctx, sqlcgen.AgentConsumerTakeOverParams{
		AgentID: agent, Head: head, Holder: &holder, Now: &now,
	})
}

// Save implements app.CursorRepository.
func (r *Cursors) Save(ctx context.Context, agent, holder ids.ID, acked int64, now time.Time) (bool, error) {
	rows, err := sqlcgen.New(r.db.Querier(ctx)).AgentConsumerSave(ctx, sqlcgen.AgentConsumerSaveParams{
		AgentID: agent, Holder: &holder, Acked: acked, Now: now,
	})
	return rows == 1, err
}

// MoveAll implements app.CursorRepository.
func (r *Cursors) MoveAll(ctx context.Context, head int64, now time.Time) error {
	return sqlcgen.New(pg.Queued(ctx)).AgentConsumersMove(ctx, head, now)
}
