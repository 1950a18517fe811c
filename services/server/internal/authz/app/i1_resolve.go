// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// resolveI1 makes the remedy that an owner has chosen, in the unit of the change itself.
func (s *Service) resolveI1(ctx context.Context, change *rightsChange, f *foundI1, strategy string) error {
	for _, o := range f.answer.Options {
		if o.Strategy != strategy {
			continue
		}
		if o.Reason == domain.ReasonNotOwner {
			return errs.Forbidden(domain.ReasonNotOwner)
		}
		if !o.Allowed {
			return s.refuseI1(ctx, change, f)
		}
		if err := s.requireStepUp(ctx); err != nil {
			return err
		}
		if strategy == authz.ResolveSwitch {
			return s.remedies.switchToOrganization(ctx, sortedUnique(o.AgentIDs))
		}
		return s.reduce(ctx, change, f.plan)
	}
	return errs.Invalid("/resolve_i1/strategy", "unknown", "Choose one of the ways out that the answer lists.")
}

// reduce carries the plan out.
func (s *Service) reduce(ctx context.Context, change *rightsChange, plan []domain.PlanStep) error {
	for _, step := range plan {
		var err error
		switch step.Kind {
		case domain.StepReduceRequest, domain.StepReplaceGrant:
			err = s.lower(ctx, change, step)
		case domain.StepRemoveMember:
			err = s.dropMember(ctx, step.GroupID, step.PrincipalID)
		case domain.StepUnsetOperator:
			err = s.remedies.unsetOperator(ctx, step.ChannelID)
		default:
			err = fmt.Errorf("authz: no step %q", step.Kind)
		}
		if err != nil {
			return fmt.Errorf("take a right away (%s): %w", step.Kind, err)
		}
	}
	return nil
}

// lower puts a grant of the level write in the place of one, with its capabilities and end.
func (s *Service) lower(ctx context.Context, change *rightsChange, step domain.PlanStep) error {
	old, err := s.store.Grant(ctx, step.GrantID)
	if err != nil {
		return fmt.Errorf("read a grant: %w", err)
	}
	if err := s.affectSubject(ctx, old.SubjectKind, old.SubjectID); err != nil {
		return err
	}
	now := s.now(ctx)
	next := old
	next.ID, next.Level, next.CreatedAt, next.CreatedBy = ids.NewAt(now), domain.Write, now, actor.From(ctx).ID
	if err := s.put(ctx, next, &old); err != nil {
		return err
	}
	if change.lowered == nil {
		change.lowered = map[ids.ID]GrantRow{}
	}
	change.lowered[old.ID] = next
	return nil
}

// asGiven is the grant that stands for the one a use case has made, after a remedy may have
// put another in its place.
func (c *rightsChange) asGiven(g GrantRow) GrantRow {
	if other, ok := c.lowered[g.ID]; ok {
		return other
	}
	return g
}

// dropMember takes somebody out of a group.
func (s *Service) dropMember(ctx context.Context, group, principal ids.ID) error {
	g, err := s.store.Group(ctx, group)
	if err != nil {
		return fmt.Errorf("read a group: %w", err)
	}
	m, err := s.store.Member(ctx, group, principal)
	if err != nil {
		return fmt.Errorf("read a membership: %w", err)
	}
	if err := s.Affect(ctx, principal); err != nil {
		return err
	}
	if err := s.store.DeleteMember(ctx, m.ID); err != nil {
		return fmt.Errorf("delete a membership: %w", err)
	}
	return s.groupDone(ctx, authorize.ActionGroupMemberRemove, map[string]any{"principal_id": principal, "role": m.Role},
		groupChangedPayload{Change: "member_removed", Group: groupPayloadOf(g), Members: []memberPayload{memberPayloadOf(m)}})
}

// forbiddenJoins gives the groups that a login leaves out, because their grants would let the
// person set an agent to work that spends somebody else's plan.
func (s *Service) forbiddenJoins(ctx context.Context, principal ids.ID, groups []ids.ID) ([]ids.ID, error) {
	change, err := changing(ctx)
	if err != nil || len(change.i1.agents) == 0 || len(groups) == 0 {
		return nil, err
	}
	found, err := s.principals.Principals(ctx, []ids.ID{principal})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	var sources []domain.Source
	for _, t := range change.i1.people {
		if t.ID == principal {
			sources = t.Sources
		}
	}
	var out []ids.ID
	for _, group := range groups {
		with := slices.Clone(sources)
		for _, g := range change.i1.rows.Grants {
			if g.GroupID == group {
				with = append(with, sourceOf(g))
			}
		}
		person := domain.NewTriggerer(toPrincipal(found[0]), with, s.now(ctx))
		opened := domain.Violations(change.i1.agents, []domain.Triggerer{person}, change.structure)
		if len(domain.FreshViolations(change.i1.violations, opened)) > 0 {
			out = append(out, group)
			continue
		}
		sources = with
	}
	return out, nil
}
