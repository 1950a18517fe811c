// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The roles in a group. Managers add and remove members.
const (
	RoleMember  = "member"
	RoleManager = "manager"
)

// The sources of memberships.
const (
	sourceManual = "manual"
	sourceClaim  = "claim"
)

// Members lists the members of a group by ID, behind after. more tells that there are
// further ones.
func (s *Service) Members(ctx context.Context, group, after ids.ID, limit int) (list []MemberRow, more bool, err error) {
	err = s.units.View(ctx, func(ctx context.Context) error {
		g, err := s.readGroup(ctx, group)
		if err != nil {
			return err
		}
		if g.Kind == groupEveryone {
			list, err = s.everyMember(ctx, g, after)
		} else {
			list, err = s.store.Members(ctx, group, s.now(ctx), after, limit+1)
		}
		return err
	})
	if err != nil || len(list) <= limit {
		return list, false, err
	}
	return list[:limit], true, nil
}

func (s *Service) everyMember(ctx context.Context, g GroupRow, after ids.ID) ([]MemberRow, error) {
	people, err := s.everyone(ctx)
	if err != nil {
		return nil, fmt.Errorf("list all members: %w", err)
	}
	slices.SortFunc(people, ids.ID.Compare)
	var out []MemberRow
	for _, p := range people {
		if p.Compare(after) > 0 {
			out = append(out, MemberRow{GroupID: g.ID, PrincipalID: p, Role: RoleMember, Source: sourceManual})
		}
	}
	return out, nil
}

// NewMember is a membership as somebody wants it to be.
type NewMember struct {
	// Role is member when it is empty.
	Role string
	// ExpiresAt is zero for a membership that does not end.
	ExpiresAt time.Time
}

// PutMember adds a member or replaces the membership. added tells which of them it was.
func (s *Service) PutMember(ctx context.Context, group, principal ids.ID, in NewMember) (m MemberRow, added bool, err error) {
	m = MemberRow{GroupID: group, PrincipalID: principal, Role: in.Role, Source: sourceManual, ExpiresAt: in.ExpiresAt}
	if m.Role == "" {
		m.Role = RoleMember
	}
	if m.Role != RoleMember && m.Role != RoleManager {
		return MemberRow{}, false, errs.Invalid("/role", "unknown", "A role is member or manager.")
	}
	if code := domain.CheckExpiry(s.now(ctx), in.ExpiresAt); code != "" {
		return MemberRow{}, false, errs.Invalid("/expires_at", code, "A membership ends between 5 minutes and 5 years from now.")
	}
	err = s.units.Do(ctx, func(ctx context.Context) error {
		g, err := s.groupFor(ctx, authorize.ActionGroupMemberAdd, group)
		if err != nil {
			return err
		}
		if err := keptByHand(g); err != nil {
			return err
		}
		if err := s.proveForGroup(ctx, authorize.ActionGroupMemberAdd, g); err != nil {
			return err
		}
		before, err := s.store.Member(ctx, group, principal)
		if err != nil && !errors.Is(err, ErrNoRow) {
			return fmt.Errorf("read a membership: %w", err)
		}
		added = err != nil
		if err := s.mayJoin(ctx, g, principal, added); err != nil {
			return err
		}
		m.ID, m.CreatedAt, m.AddedBy = ids.NewAt(s.now(ctx)), s.now(ctx), actor.From(ctx).ID
		m.ReminderStage = domain.ReminderStage(s.cfg.ReminderBefore, s.now(ctx), m.ExpiresAt)
		return s.join(ctx, g, before, m)
	}, groupChange(authorize.ActionGroupMemberAdd, principal))
	return m, added, err
}

// keptByHand refuses groups whose members nobody puts in: those that an identity provider
// names and that of all members.
func keptByHand(g GroupRow) error {
	switch g.Kind {
	case groupClaim:
		return errs.Conflict("managed_by_claims", "An identity provider decides who is in this group.")
	case groupEveryone:
		return errSystemGroup()
	}
	return nil
}

// mayJoin checks that the principal exists and that there is room.
func (s *Service) mayJoin(ctx context.Context, g GroupRow, principal ids.ID, added bool) error {
	found, err := s.principals.Principals(ctx, []ids.ID{principal})
	if err != nil {
		return fmt.Errorf("read the member: %w", err)
	}
	if len(found) == 0 {
		return errs.NotFound()
	}
	if !added {
		return nil
	}
	n, err := s.store.GroupCounts(ctx, g.ID, s.now(ctx))
	if err != nil {
		return fmt.Errorf("count the members: %w", err)
	}
	if n.Members >= s.cfg.MaxGroupMembers {
		return errs.Conflict("limit_reached", "This group has as many members as it can have.")
	}
	return nil
}

// join writes a membership with its audit row and its event; before has no ID when it is new.
func (s *Service) join(ctx context.Context, g GroupRow, before, m MemberRow) error {
	if err := s.store.PutMember(ctx, m); err != nil {
		return fmt.Errorf("store a membership: %w", err)
	}
	details := map[string]any{"principal_id": m.PrincipalID, "role": m.Role}
	if !m.ExpiresAt.IsZero() {
		details["expires_at"] = m.ExpiresAt
	}
	payload := groupChangedPayload{Change: "member_added", Group: groupPayloadOf(g), Members: []memberPayload{memberPayloadOf(m)}}
	if !before.ID.IsZero() {
		details["role_before"] = before.Role
		payload.Change = "member_updated"
	}
	return s.groupDone(ctx, authorize.ActionGroupMemberAdd, details, payload)
}

// RemoveMember ends a membership. Everybody may end her own.
func (s *Service) RemoveMember(ctx context.Context, group, principal ids.ID) error {
	return s.units.Do(ctx, func(ctx context.Context) error {
		g, err := s.groupFor(ctx, authorize.ActionGroupMemberRemove, group, principal)
		if err != nil {
			return err
		}
		if err := keptByHand(g); err != nil {
			return err
		}
		m, err := s.store.Member(ctx, group, principal)
		if errors.Is(err, ErrNoRow) {
			return errs.NotFound()
		}
		if err != nil {
			return fmt.Errorf("read a membership: %w", err)
		}
		if principal != actor.From(ctx).ID {
			if err := s.proveForGroup(ctx, authorize.ActionGroupMemberRemove, g); err != nil {
				return err
			}
		}
		if err := s.store.DeleteMember(ctx, m.ID); err != nil {
			return fmt.Errorf("delete a membership: %w", err)
		}
		return s.groupDone(ctx, authorize.ActionGroupMemberRemove, map[string]any{"principal_id": principal, "role": m.Role},
			groupChangedPayload{Change: "member_removed", Group: groupPayloadOf(g), Members: []memberPayload{memberPayloadOf(m)}})
	}, groupChange(authorize.ActionGroupMemberRemove, principal))
}
