// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps spaces, channels and threads in PostgreSQL.
package postgres

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/chat/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Spaces implements app.SpaceRepository.
type Spaces struct{ db *pg.DB }

// NewSpaces makes the repository.
func NewSpaces(db *pg.DB) *Spaces { return &Spaces{db: db} }

var _ app.SpaceRepository = (*Spaces)(nil)

func (r *Spaces) read(ctx context.Context) *sqlcgen.Queries {
	return sqlcgen.New(r.db.Querier(ctx))
}

// toDomain gives violated keys their meaning.
func toDomain(err error) error {
	switch pg.Constraint(err) {
	case "spaces_name_key", "channels_name_key":
		return errs.Conflict("name_taken", "Another one has this name.").WithCause(err)
	case "threads_parent_key":
		return errs.Conflict("thread_exists", "A thread begins at this message already.").WithCause(err)
	default:
		return err
	}
}

func queued(ctx context.Context) *sqlcgen.Queries {
	return sqlcgen.New(pg.Queued(ctx, pg.MapError(toDomain)))
}

// Get implements app.SpaceRepository.
func (r *Spaces) Get(ctx context.Context, id ids.ID) (domain.Space, error) {
	row, err := r.read(ctx).SpaceGet(ctx, id)
	return space(row), pg.NotFound(err)
}

// Lock implements app.SpaceRepository.
func (r *Spaces) Lock(ctx context.Context, id ids.ID) (domain.Space, error) {
	row, err := r.read(ctx).SpaceLock(ctx, id)
	return space(row), pg.NotFound(err)
}

// LockOrder implements app.SpaceRepository.
func (r *Spaces) LockOrder(ctx context.Context) error { return queued(ctx).SpaceOrderLock(ctx) }

// Siblings implements app.SpaceRepository.
func (r *Spaces) Siblings(ctx context.Context) ([]domain.Sibling, error) {
	rows, err := r.read(ctx).SpaceSiblings(ctx)
	out := make([]domain.Sibling, len(rows))
	for i, row := range rows {
		out[i] = domain.Sibling{ID: row.ID, Key: row.Ck, Archived: row.Archived}
	}
	return out, err
}

// Insert implements app.SpaceRepository.
func (r *Spaces) Insert(ctx context.Context, s domain.Space) error {
	return queued(ctx).SpaceInsert(ctx, sqlcgen.SpaceInsertParams{
		ID: s.ID, Name: s.Name, Description: s.Description, Icon: s.Icon, Color: s.Color, Ck: s.Key,
		OperatorAgentID: s.OperatorID.Ptr(), CreatedBy: s.CreatedBy, CreatedAt: s.CreatedAt,
	})
}

// Update implements app.SpaceRepository.
func (r *Spaces) Update(ctx context.Context, s domain.Space) error {
	return queued(ctx).SpaceUpdate(ctx, sqlcgen.SpaceUpdateParams{
		ID: s.ID, Name: s.Name, Description: s.Description, Icon: s.Icon, Color: s.Color, Ck: s.Key, OperatorAgentID: s.OperatorID.Ptr(),
		ArchivedAt: s.ArchivedAt, ArchivedBy: s.ArchivedBy.Ptr(), UpdatedAt: s.UpdatedAt, Version: s.Version,
	})
}

// Page implements app.SpaceRepository.
func (r *Spaces) Page(ctx context.Context, q app.SpaceQuery) ([]domain.Space, error) {
	rows, err := r.read(ctx).SpacesPage(ctx, sqlcgen.SpacesPageParams{
		AllPlaces: q.Visible.All, Spaces: seen(q.Visible), Archived: q.Archived, AfterCk: q.AfterKey, AfterID: q.AfterID, MaxRows: int32(q.Limit),
	})
	return spaces(rows), err
}

// ByID implements app.SpaceRepository.
func (r *Spaces) ByID(ctx context.Context, q app.Snapshot) ([]domain.Space, error) {
	rows, err := r.read(ctx).SpacesByID(ctx, sqlcgen.SpacesByIDParams{
		AllPlaces: q.Visible.All, Spaces: seen(q.Visible), OnlyTargets: len(q.Targets) > 0, Targets: notNil(q.Targets), AfterID: q.After, MaxRows: int32(q.Limit),
	})
	return spaces(rows), err
}

// States implements app.SpaceRepository.
func (r *Spaces) States(ctx context.Context) ([]authz.SpaceState, error) {
	rows, err := r.read(ctx).SpacesAll(ctx)
	out := make([]authz.SpaceState, len(rows))
	for i, row := range rows {
		out[i] = authz.SpaceState{ID: row.ID, Archived: row.Archived}
	}
	return out, err
}

// seen are the spaces that are visible, fully or in short form.
func seen(s authorize.Scope) []ids.ID {
	return append(append(make([]ids.ID, 0, len(s.Spaces)+len(s.PassingSpaces)), s.Spaces...), s.PassingSpaces...)
}

func notNil(list []ids.ID) []ids.ID {
	if list == nil {
		return []ids.ID{}
	}
	return list
}

func space(row sqlcgen.Space) domain.Space {
	return domain.Space{
		ID: row.ID, Name: row.Name, Description: row.Description, Icon: row.Icon, Color: row.Color, Key: row.Ck,
		OperatorID: ids.Deref(row.OperatorAgentID), ArchivedAt: row.ArchivedAt, ArchivedBy: ids.Deref(row.ArchivedBy),
		CreatedBy: row.CreatedBy, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, Version: row.Version,
	}
}

func spaces(rows []sqlcgen.Space) []domain.Space {
	out := make([]domain.Space, len(rows))
	for i, row := range rows {
		out[i] = space(row)
	}
	return out
}
