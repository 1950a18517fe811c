// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// AccessOf implements authorize.Rights.
func (s *Service) AccessOf(ctx context.Context, targets []ids.ID) (map[ids.ID]authorize.Access, error) {
	a := actor.From(ctx)
	out := make(map[ids.ID]authorize.Access, len(targets))
	if a.ID.IsZero() || len(targets) == 0 {
		return out, nil
	}
	version, err := s.version(ctx)
	if err != nil {
		return nil, sourceError("rights", err)
	}
	e, err := s.entry(ctx, a.ID)
	if err != nil {
		return nil, sourceError("rights", err)
	}
	st := s.cache.structureAt(version, s.generation())
	if st == nil && !inWriteUnit(ctx) {
		if st, err = s.structureFor(ctx, version); err != nil {
			return nil, sourceError("rights", err)
		}
	}
	if state := stateOf(ctx); st == nil || state != nil && state.changing != nil {
		st = nowhere // A unit asks for the few places it is about, not for all.
	}
	for _, id := range targets {
		h, found := heldOn(e, st, id)
		if !found {
			if h, err = s.heldFresh(ctx, e, id); err != nil {
				return nil, sourceError("rights", err)
			}
		}
		if h.Visible() {
			out[id] = accessOf(h)
		}
	}
	return out, nil
}

// nowhere knows no place, so each is asked for.
var nowhere = domain.NewStructure(nil, nil)

func heldOn(e *domain.Entry, st *domain.Structure, id ids.ID) (h domain.Held, found bool) {
	if c, ok := st.Channel(id); ok {
		return e.Channel(c), true
	}
	if _, ok := st.Space(id); ok {
		return e.Space(id), true
	}
	return domain.Held{}, false
}

// heldFresh looks for a place that was made a moment ago.
func (s *Service) heldFresh(ctx context.Context, e *domain.Entry, id ids.ID) (domain.Held, error) {
	c, ok, err := s.places.Channel(ctx, id)
	if err != nil {
		return domain.Held{}, err
	}
	if ok {
		return e.Channel(toChannel(c)), nil
	}
	_, ok, err = s.places.Space(ctx, id)
	if err != nil || !ok {
		return domain.Held{}, err
	}
	return e.Space(id), nil
}

// Standing implements authorize.Rights.
func (s *Service) Standing(ctx context.Context, principal, channel ids.ID) (authorize.Standing, error) {
	h, err := s.principalHeld(ctx, principal, channel)
	return authorize.Standing{
		Reads: h.Visible(), Orders: h.Level >= domain.Trigger,
		Moderates: h.Caps.Has(domain.MessagesModerate), Broadcasts: h.Caps.Has(domain.MentionsBroadcast),
	}, err
}

// PrincipalAccess gives the access of any principal to a channel at this moment.
func (s *Service) PrincipalAccess(ctx context.Context, principal, channel ids.ID) (authorize.Access, error) {
	h, err := s.principalHeld(ctx, principal, channel)
	return accessOf(h), err
}

func (s *Service) principalHeld(ctx context.Context, principal, channel ids.ID) (domain.Held, error) {
	if err := s.queueVersion(ctx); err != nil {
		return domain.Held{}, err
	}
	p, err := s.placeOf(ctx, channel)
	if err != nil {
		return domain.Held{}, sourceError("rights", err)
	}
	e, err := s.entry(ctx, principal)
	if err != nil {
		return domain.Held{}, sourceError("rights", err)
	}
	return p.held(e), nil
}

func (s *Service) placeOf(ctx context.Context, channel ids.ID) (place, error) {
	if inWriteUnit(ctx) {
		return s.locateFresh(ctx, channel, ids.ID{})
	}
	p, err := s.locateKnown(ctx, channel, ids.ID{})
	if err == nil && !p.found {
		return s.confirm(ctx, p)
	}
	return p, err
}

// WithTrigger implements authorize.Rights.
func (s *Service) WithTrigger(ctx context.Context, channel ids.ID) ([]ids.ID, error) {
	var out []ids.ID
	err := s.units.View(ctx, func(ctx context.Context) error {
		p, err := s.placeOf(ctx, channel)
		if err != nil || !p.found {
			return err
		}
		candidates, err := s.subjectsAt(ctx, p)
		if err != nil {
			return err
		}
		entries, err := s.read(ctx, candidates)
		if err != nil {
			return err
		}
		for _, id := range candidates {
			if e := entries[id]; e.Kind == domain.Person && p.held(e).Level >= domain.Trigger {
				out = append(out, id)
			}
		}
		return nil
	})
	return out, sourceError("rights", err)
}

// subjectsAt lists everybody who can hold something on a place: a superset, by ID.
func (s *Service) subjectsAt(ctx context.Context, p place) ([]ids.ID, error) {
	var out []ids.ID
	targets := []domain.Target{{Kind: domain.TargetInstance}}
	switch p.kind {
	case domain.TargetChannel:
		out = append(out, p.channel.Participants...)
		if !p.channel.Operator.IsZero() {
			out = append(out, p.channel.Operator)
		}
		if p.channel.Direct {
			return sortedUnique(out), nil
		}
		targets = append(targets, domain.Target{Kind: domain.TargetChannel, ID: p.channel.ID},
			domain.Target{Kind: domain.TargetSpace, ID: p.channel.SpaceID})
	case domain.TargetSpace:
		targets = append(targets, domain.Target{Kind: domain.TargetSpace, ID: p.space.ID})
	}
	subjects, err := s.subjectsOf(ctx, targets)
	if err != nil {
		return nil, err
	}
	out = append(out, subjects...)
	owners, err := s.principals.ActiveOwners(ctx)
	if err != nil {
		return nil, err
	}
	return sortedUnique(append(out, owners...)), nil
}

// subjectsOf lists who has a grant on exactly one of the targets, groups resolved.
func (s *Service) subjectsOf(ctx context.Context, targets []domain.Target) ([]ids.ID, error) {
	out, everyone, err := s.store.Subjects(ctx, targets)
	if err != nil || !everyone {
		return out, err
	}
	people, err := s.everyone(ctx)
	return append(out, people...), err
}

// everyone lists the members of the group of all members.
func (s *Service) everyone(ctx context.Context) ([]ids.ID, error) {
	people, err := s.principals.ActivePeople(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]ids.ID, 0, len(people))
	for _, p := range people {
		if !p.Guest {
			out = append(out, p.ID)
		}
	}
	return out, nil
}

func accessOf(h domain.Held) authorize.Access {
	return authorize.Access{Level: levelTo(h.Level), Capabilities: capsTo(h.Caps)}
}

func sortedUnique(list []ids.ID) []ids.ID {
	slices.SortFunc(list, ids.ID.Compare)
	return slices.Compact(list)
}
