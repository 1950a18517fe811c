// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// maxAudited bounds the groups that one row of the audit log names.
const maxAudited = 50

// Declare implements authz.ClaimGroups.
func (s *Service) Declare(ctx context.Context, c authz.Claims) ([]txn.Option, error) {
	if c.Values == nil {
		return nil, nil
	}
	diff, err := s.claimDiff(ctx, c)
	if err != nil || diff.Same() {
		return nil, err
	}
	return []txn.Option{groupChange(authorize.ActionGroupMemberSync, c.PrincipalID)}, nil
}

// claimState is what a synchronisation works on.
type claimState struct {
	domain.ClaimDiff
	groups  map[ids.ID]GroupRow
	members map[ids.ID]MemberRow
}

func (s *Service) claimDiff(ctx context.Context, c authz.Claims) (claimState, error) {
	out := claimState{groups: map[ids.ID]GroupRow{}, members: map[ids.ID]MemberRow{}}
	groups, err := s.store.ClaimedGroups(ctx, c.ProviderID, c.Values)
	if err != nil {
		return out, err
	}
	members, err := s.store.ClaimMembers(ctx, c.PrincipalID, c.ProviderID)
	if err != nil {
		return out, err
	}
	var wanted []ids.ID
	for _, g := range groups {
		out.groups[g.ID] = g
		wanted = append(wanted, g.ID)
	}
	var present []domain.Membership
	for _, m := range members {
		out.members[m.GroupID] = m
		present = append(present, domain.Membership{GroupID: m.GroupID, ExpiresAt: m.ExpiresAt})
	}
	out.ClaimDiff = domain.CompareClaims(present, wanted, s.now(ctx))
	return out, nil
}

// Sync implements authz.ClaimGroups.
func (s *Service) Sync(ctx context.Context, c authz.Claims) error {
	if c.Values == nil {
		return nil
	}
	state, err := s.claimDiff(ctx, c)
	if err != nil {
		return err
	}
	for _, id := range state.Kept {
		if err := s.claimMember(ctx, c, state.members[id]); err != nil {
			return err
		}
	}
	if state.Same() {
		return nil
	}
	if _, err := changing(ctx); err != nil {
		return authz.ErrClaimsMoved
	}
	if err := s.Affect(ctx, c.PrincipalID); err != nil {
		return err
	}
	if err := s.leaveClaimed(ctx, state); err != nil {
		return err
	}
	skipped, err := s.joinClaimed(ctx, c, state)
	if err != nil {
		return err
	}
	return s.recordSync(ctx, c, state, skipped)
}

// claimMember writes a membership that lasts from now on.
func (s *Service) claimMember(ctx context.Context, c authz.Claims, m MemberRow) error {
	m.Role, m.Source, m.ExpiresAt = RoleMember, sourceClaim, s.now(ctx).Add(c.ValidFor)
	m.ReminderStage = domain.ReminderStage(s.cfg.ReminderBefore, s.now(ctx), m.ExpiresAt)
	if err := s.store.PutMember(ctx, m); err != nil {
		return fmt.Errorf("store a membership by claim: %w", err)
	}
	return nil
}

func (s *Service) leaveClaimed(ctx context.Context, state claimState) error {
	left, err := s.store.GroupsByID(ctx, state.Removed)
	if err != nil {
		return err
	}
	for _, g := range left {
		if err := s.store.DeleteMember(ctx, state.members[g.ID].ID); err != nil {
			return fmt.Errorf("delete a membership by claim: %w", err)
		}
		// Members that are named are present; who has left is seen by reading the list anew.
		if err := s.tellGroup(ctx, groupChangedPayload{Change: "synced", Group: groupPayloadOf(g), Refetch: true}); err != nil {
			return err
		}
	}
	return nil
}

// joinClaimed adds the memberships and gives the groups it left out.
func (s *Service) joinClaimed(ctx context.Context, c authz.Claims, state claimState) ([]ids.ID, error) {
	skipped, err := s.forbiddenJoins(ctx, c.PrincipalID, state.Added)
	if err != nil {
		return nil, err
	}
	for _, id := range state.Added {
		if slices.Contains(skipped, id) {
			continue
		}
		counts, err := s.store.GroupCounts(ctx, id, s.now(ctx))
		if err != nil {
			return nil, fmt.Errorf("count the members: %w", err)
		}
		if counts.Members >= s.cfg.MaxGroupMembers {
			s.log.Warn("a group is full; a member that its claim names is left out", "group_id", id, "principal_id", c.PrincipalID)
			continue
		}
		m := MemberRow{ID: ids.NewAt(s.now(ctx)), GroupID: id, PrincipalID: c.PrincipalID, CreatedAt: s.now(ctx)}
		if err := s.claimMember(ctx, c, m); err != nil {
			return nil, err
		}
		m.Role, m.Source, m.ExpiresAt = RoleMember, sourceClaim, s.now(ctx).Add(c.ValidFor)
		if err := s.tellGroup(ctx, groupChangedPayload{
			Change: "synced", Group: groupPayloadOf(state.groups[id]), Members: []memberPayload{memberPayloadOf(m)},
		}); err != nil {
			return nil, err
		}
	}
	return skipped, nil
}

func (s *Service) recordSync(ctx context.Context, c authz.Claims, state claimState, skipped []ids.ID) error {
	details := map[string]any{"principal_id": c.PrincipalID, "provider_id": c.ProviderID}
	for name, list := range map[string][]ids.ID{"added": state.Added, "removed": state.Removed, "i1_skipped": skipped} {
		if len(list) > 0 {
			details[name] = list[:min(len(list), maxAudited)]
		}
	}
	return s.audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionGroupMemberSync), ResourceKind: "principal", ResourceID: c.PrincipalID, Details: details,
	})
}
