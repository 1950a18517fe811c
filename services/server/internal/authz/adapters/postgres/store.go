// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps groups, memberships and grants in PostgreSQL.
package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

const constraintGrantPair = "grants_subject_target_key"

// Store implements app.Store.
type Store struct{ db *pg.DB }

var _ app.Store = (*Store)(nil)

// New makes the store on a database.
func New(db *pg.DB) *Store { return &Store{db: db} }

func (s *Store) queries(ctx context.Context) *sqlcgen.Queries { return sqlcgen.New(s.db.Querier(ctx)) }

// Held implements app.Store.
func (s *Store) Held(ctx context.Context, principals []ids.ID) (app.HeldRows, error) {
	rows, err := s.queries(ctx).HeldRead(ctx, principals)
	if err != nil {
		return app.HeldRows{}, fmt.Errorf("read what principals hold: %w", err)
	}
	out := app.HeldRows{
		ByPrincipal: make(map[ids.ID][]domain.Counted, len(principals)), Groups: map[ids.ID][]domain.Membership{},
	}
	for _, r := range rows {
		out.Version = r.Version
		if r.GroupID != nil {
			p := ids.Deref(r.PrincipalID)
			out.Groups[p] = append(out.Groups[p], domain.Membership{GroupID: *r.GroupID, ExpiresAt: timeOf(r.ExpiresAt)})
		}
		if r.Level == "" {
			continue
		}
		c := domain.Counted{
			Target: domain.Target{Kind: domain.TargetKind(r.TargetKind), ID: ids.Deref(r.TargetID)},
			Caps:   domain.ParseCaps(r.Capabilities), ExpiresAt: timeOf(r.ExpiresAt),
		}
		c.Level, _ = domain.ParseLevel(r.Level)
		if r.Everyone {
			out.Everyone = append(out.Everyone, c)
		} else {
			p := ids.Deref(r.PrincipalID)
			out.ByPrincipal[p] = append(out.ByPrincipal[p], c)
		}
	}
	return out, nil
}

// Sources implements app.Store.
func (s *Store) Sources(ctx context.Context, principals []ids.ID, targets []domain.Target) (app.SourceRows, error) {
	list, _ := split(targets)
	rows, err := s.queries(ctx).SourcesRead(ctx, principals, targets == nil, list)
	if err != nil {
		return app.SourceRows{}, fmt.Errorf("read how grants came to principals: %w", err)
	}
	out := app.SourceRows{ByPrincipal: make(map[ids.ID][]domain.Source, len(principals))}
	for _, r := range rows {
		src := domain.Source{
			GrantID: r.GrantID, GroupID: ids.Deref(r.GroupID), Everyone: r.Everyone,
			GrantUntil: timeOf(r.GrantUntil), MemberUntil: timeOf(r.MemberUntil),
		}
		src.Target = domain.Target{Kind: domain.TargetKind(r.TargetKind), ID: ids.Deref(r.TargetID)}
		src.Level, _ = domain.ParseLevel(r.Level)
		src.Caps, src.ExpiresAt = domain.ParseCaps(r.Capabilities), earlier(src.GrantUntil, src.MemberUntil)
		if r.Everyone {
			out.Everyone = append(out.Everyone, src)
		} else {
			p := ids.Deref(r.PrincipalID)
			out.ByPrincipal[p] = append(out.ByPrincipal[p], src)
		}
	}
	return out, nil
}

// earlier is the end that comes first; zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Subjects implements app.Store.
func (s *Store) Subjects(ctx context.Context, targets []domain.Target) ([]ids.ID, bool, error) {
	list, instance := split(targets)
	principals, err := s.queries(ctx).SubjectsOn(ctx, list, instance)
	if err != nil {
		return nil, false, fmt.Errorf("list subjects: %w", err)
	}
	everyone, err := s.queries(ctx).EveryoneHasGrantOn(ctx, list, instance)
	if err != nil {
		return nil, false, fmt.Errorf("look for grants of everyone: %w", err)
	}
	return principals, everyone, nil
}

// AllSubjects implements app.Store.
func (s *Store) AllSubjects(ctx context.Context) ([]ids.ID, error) {
	return s.queries(ctx).SubjectsAll(ctx)
}

// GroupMembers implements app.Store.
func (s *Store) GroupMembers(ctx context.Context, group ids.ID) ([]ids.ID, error) {
	return s.queries(ctx).GroupMembers(ctx, group)
}

// Grant implements app.Store.
func (s *Store) Grant(ctx context.Context, id ids.ID) (app.GrantRow, error) {
	r, err := s.queries(ctx).GrantGet(ctx, id)
	return grantRow(r), noRow(err)
}

// GrantOf implements app.Store.
func (s *Store) GrantOf(ctx context.Context, subjectKind string, subject ids.ID, t domain.Target) (app.GrantRow, error) {
	p := sqlcgen.GrantGetOfParams{TargetKind: string(t.Kind), TargetID: t.ID.Ptr()}
	p.PrincipalID, p.GroupID = subjectColumns(subjectKind, subject)
	r, err := s.queries(ctx).GrantGetOf(ctx, p)
	return grantRow(sqlcgen.GrantGetRow(r)), noRow(err)
}

// GrantsOn implements app.Store.
func (s *Store) GrantsOn(ctx context.Context, targets []domain.Target, after ids.ID, limit int) ([]app.GrantRow, error) {
	list, instance := split(targets)
	rows, err := s.queries(ctx).GrantListOn(ctx, sqlcgen.GrantListOnParams{
		Targets: list, WithInstance: instance, After: after, PageLimit: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	out := make([]app.GrantRow, len(rows))
	for i, r := range rows {
		out[i] = grantRow(sqlcgen.GrantGetRow(r))
	}
	return out, nil
}

// GrantsOf implements app.Store.
func (s *Store) GrantsOf(ctx context.Context, subject ids.ID, on app.Targets, after ids.ID, limit int) ([]app.GrantRow, error) {
	rows, err := s.queries(ctx).GrantListOf(ctx, sqlcgen.GrantListOfParams{
		Subject: subject, Everywhere: on.All, Places: append([]ids.ID{}, on.Places...), WithInstance: on.Instance, After: after, PageLimit: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	out := make([]app.GrantRow, len(rows))
	for i, r := range rows {
		out[i] = grantRow(sqlcgen.GrantGetRow(r))
	}
	return out, nil
}

// CountGrantsOn implements app.Store.
func (s *Store) CountGrantsOn(ctx context.Context, t domain.Target) (int, error) {
	n, err := s.queries(ctx).GrantCountOn(ctx, string(t.Kind), t.ID.Ptr())
	return int(n), err
}

// InsertGrant implements app.Store.
func (s *Store) InsertGrant(ctx context.Context, g app.GrantRow) error {
	p := sqlcgen.GrantInsertParams{
		ID: g.ID, SubjectKind: g.SubjectKind, TargetKind: string(g.Target.Kind), TargetID: g.Target.ID.Ptr(),
		Level: g.Level.String(), Capabilities: g.Caps.Names(), ExpiresAt: timePtr(g.ExpiresAt), Note: g.Note,
		CreatedBy: g.CreatedBy.Ptr(), CreatedAt: g.CreatedAt, ReminderStage: int16(g.ReminderStage),
	}
	p.PrincipalID, p.GroupID = subjectColumns(g.SubjectKind, g.SubjectID)
	err := s.queries(ctx).GrantInsert(ctx, p)
	if pg.Constraint(err) == constraintGrantPair {
		return app.ErrGrantExists
	}
	return err
}

// DeleteGrant implements app.Store.
func (s *Store) DeleteGrant(ctx context.Context, id ids.ID) error {
	n, err := s.queries(ctx).GrantDelete(ctx, id)
	if err == nil && n == 0 {
		return app.ErrNoRow
	}
	return err
}

// DeleteGrantsOf implements app.Store.
func (s *Store) DeleteGrantsOf(ctx context.Context, principal ids.ID) ([]app.GrantRow, error) {
	rows, err := s.queries(ctx).GrantDeleteOf(ctx, &principal)
	if err != nil {
		return nil, err
	}
	out := make([]app.GrantRow, len(rows))
	for i, r := range rows {
		out[i] = grantRow(sqlcgen.GrantGetRow(r))
	}
	return out, nil
}

func grantRow(r sqlcgen.GrantGetRow) app.GrantRow {
	g := app.GrantRow{
		ID: r.ID, SubjectKind: r.SubjectKind, SubjectID: ids.Deref(r.PrincipalID), Note: r.Note,
		CreatedBy: ids.Deref(r.CreatedBy), CreatedAt: r.CreatedAt,
	}
	if r.GroupID != nil {
		g.SubjectID = *r.GroupID
	}
	g.Target = domain.Target{Kind: domain.TargetKind(r.TargetKind), ID: ids.Deref(r.TargetID)}
	g.Level, _ = domain.ParseLevel(r.Level)
	g.Caps, g.ExpiresAt = domain.ParseCaps(r.Capabilities), timeOf(r.ExpiresAt)
	return g
}

// split separates the instance, which has no ID, from the other targets.
func split(targets []domain.Target) (list []ids.ID, instance bool) {
	list = []ids.ID{}
	for _, t := range targets {
		if t.Kind == domain.TargetInstance {
			instance = true
		} else {
			list = append(list, t.ID)
		}
	}
	return list, instance
}

func subjectColumns(kind string, subject ids.ID) (principal, group *ids.ID) {
	if kind == app.SubjectGroup {
		return nil, &subject
	}
	return &subject, nil
}

func noRow(err error) error {
	if pg.IsNoRows(err) {
		return app.ErrNoRow
	}
	return err
}

func timeOf(p *time.Time) time.Time {
	if p == nil {
		return time.Time{}
	}
	return *p
}

func timePtr(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func textOf(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
