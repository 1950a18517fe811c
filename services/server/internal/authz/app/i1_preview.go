// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// previewI1 tells what the change would be refused with, in the words of the refusal and with
// its digest, so that a way out can be taken at once.
func (s *Service) previewI1(ctx context.Context, p plan, before, after *domain.Structure, then map[ids.ID]overlaid) (*I1Answer, error) {
	state, err := s.readI1(ctx, before)
	if err != nil || len(state.agents) == 0 {
		return nil, err
	}
	next := &i1State{structure: after, rows: state.rows, agents: slices.Clone(state.agents)}
	for i, a := range next.agents {
		if o, ok := then[a.ID]; ok {
			next.agents[i].Entry = o.entry
		}
	}
	for _, t := range state.people {
		if _, ok := then[t.ID]; !ok {
			next.people = append(next.people, t)
		}
	}
	for _, o := range then {
		next.people = append(next.people, domain.NewTriggerer(o.Principal, o.sources, s.now(ctx)))
	}
	if p.grant != nil {
		next.rows.Grants = append(slices.Clone(next.rows.Grants), *p.grant)
	}
	if p.member != nil {
		next.rows.Members = append(slices.Clone(next.rows.Members), TriggerMember{MemberKey: *p.member})
	}
	next.violations = domain.Violations(next.agents, next.people, after)
	fresh := domain.FreshViolations(state.violations, next.violations)
	if len(fresh) == 0 {
		return nil, nil
	}
	found, err := s.describeI1(ctx, &rightsChange{i1: state, structure: before}, next, fresh)
	if err != nil {
		return nil, err
	}
	return &found.answer, nil
}
