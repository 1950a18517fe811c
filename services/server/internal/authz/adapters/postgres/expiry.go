// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// HasExpired implements app.Store.
func (s *Store) HasExpired(ctx context.Context, now time.Time) (grants, members bool, err error) {
	r, err := s.queries(ctx).Expired(ctx, now)
	return r.Grants, r.Members, err
}

// LockExpired implements app.Store.
func (s *Store) LockExpired(ctx context.Context, now time.Time, limit int) ([]app.GrantRow, error) {
	rows, err := s.queries(ctx).GrantLockExpired(ctx, now, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("lock ended grants: %w", err)
	}
	out := make([]app.GrantRow, len(rows))
	for i, r := range rows {
		out[i] = grantRow(sqlcgen.GrantGetRow(r))
	}
	return out, nil
}

// LockExpiredMembers implements app.Store.
func (s *Store) LockExpiredMembers(ctx context.Context, now time.Time, limit int) ([]app.MemberRow, error) {
	rows, err := s.queries(ctx).MemberLockExpired(ctx, now, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("lock ended memberships: %w", err)
	}
	out := make([]app.MemberRow, len(rows))
	for i, r := range rows {
		out[i] = memberRow(sqlcgen.MemberGetRow(r))
	}
	return out, nil
}

// LockExpiring implements app.Store.
func (s *Store) LockExpiring(ctx context.Context, now time.Time, by []time.Time, limit int) ([]app.GrantRow, error) {
	rows, err := s.queries(ctx).GrantLockExpiring(ctx, sqlcgen.GrantLockExpiringParams{
		Now: now, Last: slices.MaxFunc(by, time.Time.Compare), DueBy: by, PageLimit: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("lock grants that will end: %w", err)
	}
	out := make([]app.GrantRow, len(rows))
	for i, r := range rows {
		out[i] = grantRow(sqlcgen.GrantGetRow(r))
	}
	return out, nil
}

// LockExpiringMembers implements app.Store.
func (s *Store) LockExpiringMembers(ctx context.Context, now time.Time, by []time.Time, limit int) ([]app.MemberRow, error) {
	rows, err := s.queries(ctx).MemberLockExpiring(ctx, sqlcgen.MemberLockExpiringParams{
		Now: now, Last: slices.MaxFunc(by, time.Time.Compare), DueBy: by, PageLimit: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("lock memberships that will end: %w", err)
	}
	out := make([]app.MemberRow, len(rows))
	for i, r := range rows {
		out[i] = memberRow(sqlcgen.MemberGetRow(r))
	}
	return out, nil
}

// Reminded implements app.Store.
func (s *Store) Reminded(ctx context.Context, grant ids.ID, stage int) error {
	return s.queries(ctx).GrantReminded(ctx, int16(stage), grant)
}

// MemberReminded implements app.Store.
func (s *Store) MemberReminded(ctx context.Context, membership ids.ID, stage int) error {
	return s.queries(ctx).MemberReminded(ctx, int16(stage), membership)
}
