// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"cmp"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Triggerer is a principal with everything that lets it set agents to work. What an owner
// has by being one is left out: it does not reach an agent on somebody else's plan.
type Triggerer struct {
	Principal
	// Sources are the grants of the level trigger and above that count at the moment.
	Sources []Source
	entry   *Entry
}

// NewTriggerer adds up the sources that count at the moment.
func NewTriggerer(p Principal, sources []Source, now time.Time) Triggerer {
	p.Owner = false
	t := Triggerer{Principal: p}
	counted := make([]Counted, 0, len(sources))
	for _, s := range sources {
		if s.ExpiresAt.IsZero() || s.ExpiresAt.After(now) {
			t.Sources = append(t.Sources, s)
			counted = append(counted, s.Counted)
		}
	}
	t.entry = Compile(p, 0, counted, now)
	return t
}

// The ways in which somebody has come to the right to trigger.
const (
	PathDirect      = string(CodeGrantDirect)
	PathGroup       = string(CodeGrantGroup)
	PathEveryone    = string(CodeEveryone)
	PathParticipant = string(CodeParticipant)
)

// Path is one such way. That of a participant of a direct channel has no grant.
type Path struct {
	Code             string
	GrantID, GroupID ids.ID
	// Target and Level are those of the grant.
	Target Target
	Level  Level
}

// TriggerRight says that a principal can set an agent to work on a target. A place beneath
// the target on which neither has anything of its own is not named again.
type TriggerRight struct {
	Agent, Principal ids.ID
	Target           Target
	Paths            []Path
}

// Same reports whether two say the same, whatever the way.
func (r TriggerRight) Same(o TriggerRight) bool {
	return r.Agent == o.Agent && r.Principal == o.Principal && r.Target == o.Target
}

var targetOrder = map[TargetKind]int{TargetInstance: 0, TargetSpace: 1, TargetChannel: 2}

// Compare orders by agent, principal and target, far-reaching targets first.
func (r TriggerRight) Compare(o TriggerRight) int {
	return cmp.Or(
		r.Agent.Compare(o.Agent), r.Principal.Compare(o.Principal),
		cmp.Compare(targetOrder[r.Target.Kind], targetOrder[o.Target.Kind]), r.Target.ID.Compare(o.Target.ID),
	)
}

// TriggerRights lists who can set the agent to work, in order: everybody who holds trigger on
// a place where the agent answers or which it can read. Places count as if none was archived,
// so that opening one again lets nobody in whom no check has seen.
func TriggerRights(agent *Entry, people []Triggerer, s *Structure) []TriggerRight {
	if !agent.Active {
		return nil
	}
	special := specialOf(agent, s)
	var out []TriggerRight
	for _, p := range people {
		if p.ID == agent.ID || !p.Active {
			continue
		}
		for _, t := range sharedTargets(agent, special, p.entry, s) {
			if p.entry.openOn(t, s) >= Trigger {
				out = append(out, TriggerRight{Agent: agent.ID, Principal: p.ID, Target: t, Paths: p.paths(t, s)})
			}
		}
	}
	slices.SortFunc(out, TriggerRight.Compare)
	return out
}

// openOn is the level on a target that exists, as if nothing was archived.
func (e *Entry) openOn(t Target, s *Structure) Level {
	switch t.Kind {
	case TargetInstance:
		return e.Instance().Level
	case TargetSpace:
		if _, ok := s.Space(t.ID); ok {
			return e.Space(t.ID).Level
		}
	case TargetChannel:
		if c, ok := s.Channel(t.ID); ok {
			c.Archived = false
			return e.Channel(c).Level
		}
	}
	return None
}

// specialOf are the channels that the agent reaches and that are not simply part of their
// space for it.
func specialOf(agent *Entry, s *Structure) []ids.ID {
	candidates := slices.Clone(s.direct[agent.ID])
	for id := range agent.channels {
		candidates = append(candidates, id)
	}
	for _, list := range s.special {
		candidates = append(candidates, list...)
	}
	slices.SortFunc(candidates, ids.ID.Compare)
	return slices.DeleteFunc(slices.Compact(candidates), func(id ids.ID) bool {
		c, _ := s.Channel(id)
		_, own := agent.channels[id]
		plain := !c.Direct && c.Inherits && c.Operator != agent.ID && !own
		return plain || agent.openOn(Target{TargetChannel, id}, s) < Read
	})
}

// sharedTargets lists the targets the agent reaches on which one of the two has something of
// its own; on every other place both have what they have above it.
func sharedTargets(agent *Entry, special []ids.ID, p *Entry, s *Structure) []Target {
	targets := []Target{{Kind: TargetInstance}}
	for _, e := range []*Entry{agent, p} {
		for id := range e.spaces {
			targets = append(targets, Target{TargetSpace, id})
		}
	}
	for _, id := range special {
		targets = append(targets, Target{TargetChannel, id})
	}
	for id := range p.channels {
		targets = append(targets, Target{TargetChannel, id})
	}
	slices.SortFunc(targets, func(a, b Target) int { return TriggerRight{Target: a}.Compare(TriggerRight{Target: b}) })
	return slices.DeleteFunc(slices.Compact(targets), func(t Target) bool { return agent.openOn(t, s) < Read })
}

// paths are the grants each of which is enough by itself, and the part in a direct channel.
func (t Triggerer) paths(target Target, s *Structure) []Path {
	var out []Path
	if c, ok := s.Channel(target.ID); ok && target.Kind == TargetChannel && c.Direct {
		return []Path{{Code: PathParticipant, Target: target, Level: Trigger}}
	}
	for _, source := range t.Sources {
		if Compile(t.Principal, 0, []Counted{source.Counted}, time.Time{}).openOn(target, s) < Trigger {
			continue
		}
		p := Path{Code: PathDirect, GrantID: source.GrantID, GroupID: source.GroupID, Target: source.Target, Level: source.Level}
		switch {
		case source.Everyone:
			p.Code = PathEveryone
		case !source.GroupID.IsZero():
			p.Code = PathGroup
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Path) int { return a.GrantID.Compare(b.GrantID) })
	return out
}

// PersonalAgent is an agent on one person's own plan. Nobody but its holder may set it to work.
type PersonalAgent struct {
	*Entry
	Holder ids.ID
}

// Violation is somebody who can set a personal agent to work and is not its holder.
type Violation struct {
	TriggerRight
	Holder ids.ID
}

// Violations lists what breaks the rule for personal agents, in order.
func Violations(agents []PersonalAgent, people []Triggerer, s *Structure) []Violation {
	var out []Violation
	for _, a := range agents {
		for _, r := range TriggerRights(a.Entry, people, s) {
			if r.Principal != a.Holder {
				out = append(out, Violation{TriggerRight: r, Holder: a.Holder})
			}
		}
	}
	slices.SortFunc(out, func(a, b Violation) int { return a.TriggerRight.Compare(b.TriggerRight) })
	return out
}

// FreshViolations are those of after that were none before.
func FreshViolations(before, after []Violation) []Violation {
	var out []Violation
	for _, v := range after {
		if !slices.ContainsFunc(before, func(b Violation) bool { return b.Same(v.TriggerRight) }) {
			out = append(out, v)
		}
	}
	return out
}
