// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

var _ app.TrimStore = (*Store)(nil)

// TrimPoint implements app.TrimStore.
func (s *Store) TrimPoint(ctx context.Context, cutoff time.Time) (app.TrimPoint, bool, error) {
	r, err := s.queries(ctx).TrimPoint(ctx, cutoff)
	if pg.IsNoRows(err) {
		return app.TrimPoint{}, false, nil
	}
	return app.TrimPoint{CheckpointID: r.ID, Seq: r.Seq}, err == nil, err
}

// Remove implements app.TrimStore.
func (s *Store) Remove(ctx context.Context, cutoff time.Time, upTo int64, batch int) (app.Removal, bool, error) {
	q := s.queries(ctx)
	last, err := q.TrimLast(ctx, cutoff, upTo, int32(batch))
	if pg.IsNoRows(err) {
		return app.Removal{}, false, nil
	}
	if err != nil {
		return app.Removal{}, false, err
	}
	n, err := q.TrimRows(ctx, last.Seq)
	return app.Removal{Through: last.Seq, Hash: hash(last.Hash), Count: n}, err == nil, err
}

// ExpiredIPKeys implements app.TrimStore.
func (s *Store) ExpiredIPKeys(ctx context.Context, before time.Time) (int, error) {
	n, err := s.queries(ctx).IPKeyExpired(ctx, before)
	return int(n), err
}

// DestroyIPKeys implements app.TrimStore.
func (s *Store) DestroyIPKeys(ctx context.Context, before, at time.Time) error {
	return s.queries(ctx).IPKeyDestroy(ctx, at, before)
}
