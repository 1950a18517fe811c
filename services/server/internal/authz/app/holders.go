// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Holder is somebody with access to a target, and why.
type Holder struct {
	PrincipalID ids.ID
	Kind        domain.Kind
	Held        domain.Held
	Reasons     []Reason
	// ExpiresAt is when the first of the reasons ends; zero for never.
	ExpiresAt time.Time
}

// HolderQuery says whose access to list.
type HolderQuery struct {
	Target domain.Target
	// MinLevel leaves out those who hold less; None stands for read.
	MinLevel domain.Level
	After    ids.ID
	Limit    int
}

// Holders lists by ID who has access to a target. more tells that there are further ones.
func (s *Service) Holders(ctx context.Context, q HolderQuery) (list []Holder, more bool, err error) {
	err = s.units.View(ctx, func(ctx context.Context) error {
		at, err := s.spotOf(ctx, q.Target)
		if err != nil {
			return err
		}
		if err := s.mayExplain(ctx, at, ids.ID{}); err != nil {
			return err
		}
		candidates, err := s.subjectsAt(ctx, at.place)
		if err != nil {
			return err
		}
		candidates = slices.DeleteFunc(candidates, func(id ids.ID) bool { return id.Compare(q.After) <= 0 })
		// A page is filled from as many candidates as it takes: some hold nothing any more.
		for batch := range slices.Chunk(candidates, q.Limit+1) {
			found, err := s.holdersAmong(ctx, at, batch, max(q.MinLevel, domain.Read))
			if err != nil {
				return err
			}
			if list = append(list, found...); len(list) > q.Limit {
				list, more = list[:q.Limit], true
				return nil
			}
		}
		return nil
	})
	return list, more, sourceError(authorize.ActionAccessExplain, err)
}

func (s *Service) holdersAmong(ctx context.Context, at spot, candidates []ids.ID, least domain.Level) ([]Holder, error) {
	people, err := s.principals.Principals(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("read the holders: %w", err)
	}
	rows, err := s.store.Sources(ctx, candidates, at.around())
	if err != nil {
		return nil, err
	}
	var out []Holder
	steps := map[ids.ID][]domain.Step{}
	for _, found := range people {
		p := toPrincipal(found)
		held, reasons := domain.Derive(p, at.Spot, rows.Of(p), s.now(ctx))
		if held.Level < least {
			continue
		}
		steps[p.ID] = slices.DeleteFunc(reasons, func(r domain.Step) bool { return !r.Counted })
		out = append(out, Holder{PrincipalID: p.ID, Kind: p.Kind, Held: held})
	}
	slices.SortFunc(out, func(a, b Holder) int { return a.PrincipalID.Compare(b.PrincipalID) })
	var all [][]domain.Step
	for _, list := range steps {
		all = append(all, list)
	}
	w, err := s.wordsFor(ctx, candidates, at, all...)
	if err != nil {
		return nil, err
	}
	for i := range out {
		h := &out[i]
		for _, step := range steps[h.PrincipalID] {
			// Who manages the target may see the grants on it and above it.
			h.Reasons = append(h.Reasons, Reason{Step: step, Text: w.sentence(h.PrincipalID, at.Target, step), GrantShown: step.Source != nil})
			if step.Source != nil && !step.Source.ExpiresAt.IsZero() && (h.ExpiresAt.IsZero() || step.Source.ExpiresAt.Before(h.ExpiresAt)) {
				h.ExpiresAt = step.Source.ExpiresAt
			}
		}
	}
	return out, nil
}
