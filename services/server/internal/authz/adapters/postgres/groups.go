// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

const constraintGroupClaim = "groups_claim_key"

// Group implements app.Store.
func (s *Store) Group(ctx context.Context, id ids.ID) (app.GroupRow, error) {
	r, err := s.queries(ctx).GroupGet(ctx, id)
	return groupRow(r), noRow(err)
}

// Everyone implements app.Store.
func (s *Store) Everyone(ctx context.Context) (app.GroupRow, error) {
	r, err := s.queries(ctx).GroupGetEveryone(ctx)
	return groupRow(sqlcgen.GroupGetRow(r)), noRow(err)
}

// GroupsByID implements app.Store.
func (s *Store) GroupsByID(ctx context.Context, groups []ids.ID) ([]app.GroupRow, error) {
	rows, err := s.queries(ctx).GroupListByID(ctx, groups)
	if err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	out := make([]app.GroupRow, len(rows))
	for i, r := range rows {
		out[i] = groupRow(sqlcgen.GroupGetRow(r))
	}
	return out, nil
}

// InsertGroup implements app.Store.
func (s *Store) InsertGroup(ctx context.Context, g app.GroupRow) error {
	p := sqlcgen.GroupInsertParams{
		ID: g.ID, Name: g.Name, Handle: g.Handle, Description: g.Description, Kind: g.Kind, ProviderID: g.ProviderID.Ptr(),
		Mentionable: g.Mentionable, CreatedBy: g.CreatedBy.Ptr(), CreatedAt: g.CreatedAt,
	}
	if p.ProviderID != nil {
		p.ClaimValue = &g.ClaimValue
	}
	err := s.queries(ctx).GroupInsert(ctx, p)
	if pg.Constraint(err) == constraintGroupClaim {
		return app.ErrClaimTaken
	}
	return err
}

// UpdateGroup implements app.Store.
func (s *Store) UpdateGroup(ctx context.Context, g app.GroupRow, now time.Time) error {
	return s.queries(ctx).GroupUpdate(ctx, sqlcgen.GroupUpdateParams{
		ID: g.ID, Name: g.Name, Handle: g.Handle, Description: g.Description, Mentionable: g.Mentionable, Version: g.Version, Now: now,
	})
}

// DeleteGroup implements app.Store.
func (s *Store) DeleteGroup(ctx context.Context, id ids.ID) ([]app.GrantRow, error) {
	rows, err := s.queries(ctx).GrantDeleteOfGroup(ctx, &id)
	if err != nil {
		return nil, fmt.Errorf("delete the grants of a group: %w", err)
	}
	out := make([]app.GrantRow, len(rows))
	for i, r := range rows {
		out[i] = grantRow(sqlcgen.GrantGetRow(r))
	}
	n, err := s.queries(ctx).GroupDelete(ctx, id)
	if err == nil && n == 0 {
		err = app.ErrNoRow
	}
	return out, err
}

// CountGroups implements app.Store.
func (s *Store) CountGroups(ctx context.Context) (int, error) {
	n, err := s.queries(ctx).GroupCount(ctx)
	return int(n), err
}

// GroupCounts implements app.Store.
func (s *Store) GroupCounts(ctx context.Context, group ids.ID, now time.Time) (app.GroupCounts, error) {
	r, err := s.queries(ctx).GroupCounts(ctx, group, now)
	return app.GroupCounts{Members: int(r.Members), Grants: int(r.Grants)}, err
}

// GroupIsStrong implements app.Store.
func (s *Store) GroupIsStrong(ctx context.Context, group ids.ID, now time.Time) (bool, error) {
	list, err := s.GroupSources(ctx, group, now)
	return slices.ContainsFunc(list, func(c domain.Source) bool {
		return domain.Grant{Target: c.Target, Level: c.Level, Caps: c.Caps}.Strong()
	}), err
}

// GroupSources implements app.Store.
func (s *Store) GroupSources(ctx context.Context, group ids.ID, now time.Time) ([]domain.Source, error) {
	rows, err := s.queries(ctx).GroupGrants(ctx, &group, now)
	if err != nil {
		return nil, fmt.Errorf("read what a group holds: %w", err)
	}
	out := make([]domain.Source, len(rows))
	for i, r := range rows {
		out[i] = domain.Source{GrantID: r.ID, GroupID: group, GrantUntil: timeOf(r.ExpiresAt)}
		out[i].Target = domain.Target{Kind: domain.TargetKind(r.TargetKind), ID: ids.Deref(r.TargetID)}
		out[i].Level, _ = domain.ParseLevel(r.Level)
		out[i].Caps, out[i].ExpiresAt = domain.ParseCaps(r.Capabilities), timeOf(r.ExpiresAt)
	}
	return out, nil
}

// Groups implements app.Store.
func (s *Store) Groups(ctx context.Context, f app.GroupFilter) ([]app.GroupRow, error) {
	rows, err := s.queries(ctx).GroupList(ctx, sqlcgen.GroupListParams{
		Viewer: f.Viewer, Now: f.Now, After: f.After, Kind: f.Kind, Query: f.Query, OwnOnly: f.OwnOnly, PageLimit: int32(f.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	out := make([]app.GroupRow, len(rows))
	for i, r := range rows {
		out[i] = app.GroupRow{
			ID: r.ID, Name: r.Name, Handle: r.Handle, Description: r.Description, Kind: r.Kind,
			ProviderID: ids.Deref(r.ProviderID), ClaimValue: textOf(r.ClaimValue), Mentionable: r.Mentionable,
			Version: r.Version, CreatedAt: r.CreatedAt, MyRole: r.MyRole,
		}
	}
	return out, nil
}

// HandleTaken implements app.Store.
func (s *Store) HandleTaken(ctx context.Context, handle string) (bool, error) {
	return s.queries(ctx).GroupHandleTaken(ctx, handle)
}

// RoleIn implements app.Store.
func (s *Store) RoleIn(ctx context.Context, group, principal ids.ID, now time.Time) (string, error) {
	role, err := s.queries(ctx).GroupRoleOf(ctx, group, principal, now)
	if pg.IsNoRows(err) {
		return "", nil
	}
	return role, err
}

// Member implements app.Store.
func (s *Store) Member(ctx context.Context, group, principal ids.ID) (app.MemberRow, error) {
	r, err := s.queries(ctx).MemberGet(ctx, group, principal)
	return memberRow(r), noRow(err)
}

// Members implements app.Store.
func (s *Store) Members(ctx context.Context, group ids.ID, now time.Time, after ids.ID, limit int) ([]app.MemberRow, error) {
	rows, err := s.queries(ctx).MemberList(ctx, sqlcgen.MemberListParams{GroupID: group, Now: now, After: after, PageLimit: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	out := make([]app.MemberRow, len(rows))
	for i, r := range rows {
		out[i] = memberRow(sqlcgen.MemberGetRow(r))
	}
	return out, nil
}

// PutMember implements app.Store.
func (s *Store) PutMember(ctx context.Context, m app.MemberRow) error {
	return s.queries(ctx).MemberPut(ctx, sqlcgen.MemberPutParams{
		ID: m.ID, GroupID: m.GroupID, PrincipalID: m.PrincipalID, Role: m.Role, Source: m.Source, ExpiresAt: timePtr(m.ExpiresAt),
		ReminderStage: int16(m.ReminderStage), AddedBy: m.AddedBy.Ptr(), CreatedAt: m.CreatedAt,
	})
}

// DeleteMember implements app.Store.
func (s *Store) DeleteMember(ctx context.Context, id ids.ID) error {
	n, err := s.queries(ctx).MemberDelete(ctx, id)
	if err == nil && n == 0 {
		return app.ErrNoRow
	}
	return err
}

// ClaimedGroups implements app.Store.
func (s *Store) ClaimedGroups(ctx context.Context, provider ids.ID, values []string) ([]app.GroupRow, error) {
	rows, err := s.queries(ctx).GroupListClaimed(ctx, provider, values)
	if err != nil {
		return nil, fmt.Errorf("list the groups of claims: %w", err)
	}
	out := make([]app.GroupRow, len(rows))
	for i, r := range rows {
		out[i] = groupRow(sqlcgen.GroupGetRow(r))
	}
	return out, nil
}

// ClaimMembers implements app.Store.
func (s *Store) ClaimMembers(ctx context.Context, principal, provider ids.ID) ([]app.MemberRow, error) {
	rows, err := s.queries(ctx).MemberListClaimed(ctx, principal, provider)
	if err != nil {
		return nil, fmt.Errorf("list the memberships of claims: %w", err)
	}
	out := make([]app.MemberRow, len(rows))
	for i, r := range rows {
		out[i] = memberRow(sqlcgen.MemberGetRow(r))
	}
	return out, nil
}

func groupRow(r sqlcgen.GroupGetRow) app.GroupRow {
	return app.GroupRow{
		ID: r.ID, Name: r.Name, Handle: r.Handle, Description: r.Description, Kind: r.Kind,
		ProviderID: ids.Deref(r.ProviderID), ClaimValue: textOf(r.ClaimValue), Mentionable: r.Mentionable,
		Version: r.Version, CreatedAt: r.CreatedAt,
	}
}

func memberRow(r sqlcgen.MemberGetRow) app.MemberRow {
	return app.MemberRow{
		ID: r.ID, GroupID: r.GroupID, PrincipalID: r.PrincipalID, Role: r.Role, Source: r.Source, ExpiresAt: timeOf(r.ExpiresAt),
		AddedBy: ids.Deref(r.AddedBy), CreatedAt: r.CreatedAt,
	}
}
