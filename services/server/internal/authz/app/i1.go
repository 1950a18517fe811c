// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// i1State is what the rule for personal agents looks at, at one moment of a unit. Without
// personal agents it is empty and nothing more has been read.
type i1State struct {
	agents     []domain.PersonalAgent
	people     []domain.Triggerer
	rows       TriggerRows
	structure  *domain.Structure
	violations []domain.Violation
}

// readI1 reads the state in the running unit.
func (s *Service) readI1(ctx context.Context, st *domain.Structure) (*i1State, error) {
	out := &i1State{structure: st}
	policies, err := s.agents.PersonalAgents(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the personal agents: %w", err)
	}
	if len(policies) == 0 {
		return out, nil
	}
	list := make([]ids.ID, len(policies))
	for i, p := range policies {
		list[i] = p.AgentID
	}
	entries, err := s.read(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read what personal agents reach: %w", err)
	}
	for _, p := range policies {
		out.agents = append(out.agents, domain.PersonalAgent{Entry: entries[p.AgentID], Holder: p.HolderID})
	}
	if out.people, out.rows, err = s.triggerers(ctx, st, list); err != nil {
		return nil, err
	}
	out.violations = domain.Violations(out.agents, out.people, st)
	return out, nil
}

// triggerers reads everybody who can set some agent to work by a grant, or one of the agents
// by taking part in a direct channel with it.
func (s *Service) triggerers(ctx context.Context, st *domain.Structure, agents []ids.ID) ([]domain.Triggerer, TriggerRows, error) {
	rows, err := s.store.Triggers(ctx)
	if err != nil {
		return nil, rows, fmt.Errorf("read the rights to trigger: %w", err)
	}
	sources, err := s.sourcesOf(ctx, rows)
	if err != nil {
		return nil, rows, err
	}
	for _, agent := range agents {
		for _, p := range st.CompanionsOf(agent) {
			if _, ok := sources[p]; !ok {
				sources[p] = nil
			}
		}
	}
	list := make([]ids.ID, 0, len(sources))
	for id := range sources {
		list = append(list, id)
	}
	found, err := s.principals.Principals(ctx, sortedUnique(list))
	if err != nil {
		return nil, rows, fmt.Errorf("read who can trigger: %w", err)
	}
	out := make([]domain.Triggerer, 0, len(found))
	for _, p := range found {
		out = append(out, domain.NewTriggerer(toPrincipal(p), sources[p.ID], s.now(ctx)))
	}
	return out, rows, nil
}

// sourcesOf follows the grants to the principals they have come to.
func (s *Service) sourcesOf(ctx context.Context, rows TriggerRows) (map[ids.ID][]domain.Source, error) {
	members := map[ids.ID][]TriggerMember{}
	for _, m := range rows.Members {
		members[m.Group] = append(members[m.Group], m)
	}
	out := map[ids.ID][]domain.Source{}
	var everyone []ids.ID
	for _, g := range rows.Grants {
		source := sourceOf(g)
		switch {
		case g.Everyone:
			if everyone == nil {
				var err error
				if everyone, err = s.everyone(ctx); err != nil {
					return nil, fmt.Errorf("list all members: %w", err)
				}
			}
			for _, p := range everyone {
				out[p] = append(out[p], source)
			}
		case !g.GroupID.IsZero():
			for _, m := range members[g.GroupID] {
				own := source
				own.ExpiresAt = earlier(g.ExpiresAt, m.ExpiresAt)
				out[m.Principal] = append(out[m.Principal], own)
			}
		default:
			out[g.PrincipalID] = append(out[g.PrincipalID], source)
		}
	}
	return out, nil
}

func sourceOf(g TriggerGrant) domain.Source {
	return domain.Source{GrantID: g.ID, GroupID: g.GroupID, Everyone: g.Everyone, Counted: domain.Counted{
		Target: g.Target, Level: g.Level, Caps: g.Caps, ExpiresAt: g.ExpiresAt,
	}}
}

// earlier is the first of two ends; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func toPrincipal(p authz.Principal) domain.Principal {
	return domain.Principal{ID: p.ID, Kind: domain.Kind(p.Kind), Active: p.Active, Owner: p.Owner, Guest: p.Guest}
}

// keepPersonal refuses a change that lets somebody else than its holder set a personal agent
// to work, or makes the remedy that was chosen with it. It gives the places as they are
// afterwards.
func (s *Service) keepPersonal(ctx context.Context, change *rightsChange, after *domain.Structure) (*domain.Structure, error) {
	found, err := s.findI1(ctx, change, after)
	if err != nil || found == nil {
		return after, err
	}
	chosen, ok := authz.ResolutionFrom(ctx)
	if !ok || chosen.Digest != found.answer.Digest {
		return nil, s.refuseI1(ctx, change, found)
	}
	if err := s.resolveI1(ctx, change, found, chosen.Strategy); err != nil {
		return nil, err
	}
	if after, err = s.readStructure(ctx); err != nil {
		return nil, err
	}
	if found, err = s.findI1(ctx, change, after); err != nil || found == nil {
		return after, err
	}
	return nil, s.refuseI1(ctx, change, found)
}

// foundI1 is a violation with everything an answer says of it.
type foundI1 struct {
	state  *i1State
	fresh  []domain.Violation
	answer I1Answer
	// hexDigest is the digest as the audit log writes it.
	hexDigest string
	plan      []domain.PlanStep
}

// findI1 looks for what the unit has let in; nil when there is nothing.
func (s *Service) findI1(ctx context.Context, change *rightsChange, after *domain.Structure) (*foundI1, error) {
	state, err := s.readI1(ctx, after)
	if err != nil {
		return nil, err
	}
	fresh := domain.FreshViolations(change.i1.violations, state.violations)
	if len(fresh) == 0 {
		return nil, nil
	}
	return s.describeI1(ctx, change, state, fresh)
}
