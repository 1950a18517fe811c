// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// maxAsked bounds the members an explanation names who could give what is missing.
const maxAsked = 5

// Reason is one step of a derivation in words.
type Reason struct {
	domain.Step
	Text string
	// GrantShown tells that the caller may see the grant.
	GrantShown bool
}

// Need is something that would be enough for an action: being an owner, a level or a
// capability.
type Need struct {
	Owner      bool
	Level      domain.Level
	Capability string
}

// Explanation tells what a principal holds on a target, whether an action is allowed, and
// why.
type Explanation struct {
	PrincipalID ids.ID
	Target      domain.Target
	Action      authorize.Action
	// Denied is the reason of a denial, empty when the action, or reading without one, is
	// allowed.
	Denied  string
	Held    domain.Held
	Summary string
	Steps   []Reason
	// Needed and Ask are set for denials: what would be enough, and who could give it.
	Needed []Need
	Ask    []ids.ID
}

// Question is what somebody wants explained.
type Question struct {
	PrincipalID ids.ID
	Target      domain.Target
	// ThreadID names a thread instead of the target: the channel it lies in.
	ThreadID ids.ID
	// Action is empty for the question what is held at all.
	Action authorize.Action
}

// Explain tells why a principal may or may not do something. It decides with the functions
// of every decision.
func (s *Service) Explain(ctx context.Context, q Question) (Explanation, error) {
	if q.Action != "" {
		if _, known := s.spec(q.Action); !known {
			return Explanation{}, errs.Invalid("query:action", "unknown", "There is no such action.")
		}
	}
	var out Explanation
	err := s.units.View(ctx, func(ctx context.Context) error {
		spot, err := s.askedSpot(ctx, &q)
		if err != nil {
			return err
		}
		own := q.PrincipalID == actor.From(ctx).ID
		if err := s.mayExplain(ctx, spot, q.PrincipalID); err != nil {
			return err
		}
		people, err := s.principals.Principals(ctx, []ids.ID{q.PrincipalID})
		if err != nil {
			return fmt.Errorf("read the principal: %w", err)
		}
		if len(people) == 0 {
			return errs.NotFound()
		}
		p := toPrincipal(people[0])
		rows, err := s.store.Sources(ctx, []ids.ID{p.ID}, spot.around())
		if err != nil {
			return err
		}
		out = Explanation{PrincipalID: p.ID, Target: spot.Target, Action: q.Action}
		var steps []domain.Step
		out.Held, steps = domain.Derive(p, spot.Spot, rows.Of(p), s.now(ctx))
		hidden := own && !out.Held.Visible() && spot.Target.Kind != domain.TargetInstance
		if hidden || !spot.place.found {
			return errs.NotFound() // What she cannot see is not explained to her either.
		}
		out.Denied = s.whyDenied(q, spot, p, rows.Of(p), s.now(ctx))
		return s.inWords(ctx, &out, spot, p, steps)
	})
	return out, sourceError(authorize.ActionAccessExplain, err)
}

// spot is a target with its place, as decisions and explanations need it.
type spot struct {
	domain.Spot
	place place
}

// around are the targets whose grants reach the spot.
func (s spot) around() []domain.Target {
	out := []domain.Target{{Kind: domain.TargetInstance}}
	if s.Target.Kind != domain.TargetInstance {
		out = append(out, s.Target)
	}
	if s.Target.Kind == domain.TargetChannel && !s.Channel.Direct {
		out = append(out, domain.Target{Kind: domain.TargetSpace, ID: s.Channel.SpaceID})
	}
	return out
}

// askedSpot finds the target of a question. One that is missing is found later, with the
// steps of one that is hidden.
func (s *Service) askedSpot(ctx context.Context, q *Question) (spot, error) {
	if !q.ThreadID.IsZero() {
		channel, _, err := s.places.ThreadChannel(ctx, q.ThreadID)
		if err != nil {
			return spot{}, fmt.Errorf("find the channel of a thread: %w", err)
		}
		q.Target = domain.Target{Kind: domain.TargetChannel, ID: channel}
	}
	return s.spotOf(ctx, q.Target)
}

func (s *Service) spotOf(ctx context.Context, t domain.Target) (spot, error) {
	out := spot{Spot: domain.Spot{Target: t}}
	var err error
	switch t.Kind {
	case domain.TargetInstance:
		out.place = place{kind: t.Kind, found: true}
		return out, nil
	case domain.TargetSpace:
		out.place, err = s.freshSpace(ctx, t.ID)
		out.SpaceArchived = out.place.space.Archived
	case domain.TargetChannel:
		out.place, err = s.locateFresh(ctx, t.ID, ids.ID{})
		out.Channel = out.place.channel
	default:
		return out, errs.NotFound()
	}
	return out, err
}

// mayExplain decides about a question: everybody may ask about herself, those who manage a
// target about everybody on it, owners about the instance.
func (s *Service) mayExplain(ctx context.Context, at spot, principal ids.ID) error {
	r := targetResource(at.Target)
	r.OwnerID = principal
	if err := s.Authorize(ctx, authorize.ActionAccessExplain, r); err != nil {
		return err
	}
	caller := actor.From(ctx).ID
	if at.Target.Kind == domain.TargetInstance && principal != caller {
		e, err := s.entry(ctx, caller)
		if err != nil {
			return err
		}
		if !e.Owner {
			s.recordDenial(ctx, authorize.ActionAccessExplain, r, domain.ReasonNotOwner)
			return errs.Forbidden(domain.ReasonNotOwner)
		}
	}
	return nil
}

// whyDenied puts the action, or reading, to the checks of every request.
func (s *Service) whyDenied(q Question, at spot, p domain.Principal, sources []domain.Source, now time.Time) string {
	e := domain.Compile(p, 0, domain.Sources(sources), now)
	if !e.Active {
		return reasonPrincipalInactive
	}
	if q.Action == "" {
		if !at.Held(e).Visible() {
			return reasonNotVisible
		}
		return ""
	}
	spec, _ := s.spec(q.Action)
	r := targetResource(at.Target)
	r.Kind = spec.Resource
	if spec.Resource == authorize.ResourceSpace || spec.Resource == authorize.ResourceChannel {
		r.ID = at.Target.ID
	}
	return judge(&request{spec: spec, kind: actor.Kind(p.Kind), caller: p.ID, r: r, p: at.place}, e).reason
}

// needs lists what the catalogue asks for; each alone is enough but for the last two, which
// go together.
func needs(spec *authorize.Spec) []Need {
	switch {
	case spec.OwnerOnly:
		return []Need{{Owner: true}}
	case len(spec.AnyOf) > 0:
		var out []Need
		for _, r := range spec.AnyOf {
			out = append(out, Need{Level: levelOf(r.Level), Capability: string(r.Capability)})
		}
		return out
	default:
		return []Need{{Level: max(levelOf(spec.Level), domain.Read), Capability: string(spec.Capability)}}
	}
}

// mayHelp lists active people who could give rights on the spot, those who manage it before
// the owners of the instance.
func (s *Service) mayHelp(ctx context.Context, at spot, but ids.ID) ([]ids.ID, error) {
	candidates, err := s.subjectsAt(ctx, at.place)
	if err != nil {
		return nil, err
	}
	entries, err := s.read(ctx, candidates)
	if err != nil {
		return nil, err
	}
	var managers, owners []ids.ID
	for _, id := range candidates {
		switch e := entries[id]; {
		case id == but || !e.Active || e.Kind != domain.Person:
		case e.Owner:
			owners = append(owners, id)
		case at.Held(e).Level == domain.Manage:
			managers = append(managers, id)
		}
	}
	all := slices.Concat(managers, owners)
	return all[:min(len(all), maxAsked)], nil
}
