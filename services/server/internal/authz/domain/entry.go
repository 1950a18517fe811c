// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// TargetKind is the kind of thing a grant is given on.
type TargetKind string

// The kinds of targets.
const (
	TargetInstance TargetKind = "instance"
	TargetSpace    TargetKind = "space"
	TargetChannel  TargetKind = "channel"
	TargetHost     TargetKind = "host"
)

// Target is a thing rights are given on; ID is zero for the instance.
type Target struct {
	Kind TargetKind
	ID   ids.ID
}

// Kind is the kind of a principal.
type Kind string

// The kinds of principals.
const (
	Person Kind = "person"
	Agent  Kind = "agent"
	App    Kind = "app"
)

// Principal is what rights depend on of a principal.
type Principal struct {
	ID                   ids.ID
	Kind                 Kind
	Active, Owner, Guest bool
}

// InEveryone reports whether the principal belongs to the group of all members.
func (p Principal) InEveryone() bool { return p.Active && p.Kind == Person && !p.Guest }

// Counted is a grant that has come to a principal, directly or through a group.
type Counted struct {
	Target Target
	Level  Level
	Caps   Caps
	// ExpiresAt is the earlier of the ends of the grant and of the membership; zero for never.
	ExpiresAt time.Time
}

// Membership is a group that a principal belongs to.
type Membership struct {
	GroupID ids.ID
	// ExpiresAt is zero for a membership that does not end.
	ExpiresAt time.Time
}

// Entry is all that one principal holds. It never changes; Apply gives a changed copy.
type Entry struct {
	Principal
	// Version is the version of all rights the entry is right for.
	Version int64
	// ValidUntil is the first moment at which a part of it ends; zero for never.
	ValidUntil time.Time

	instance Held
	// spaces and channels are what grants on exactly these places give.
	spaces, channels map[ids.ID]Held
	// exact overrides everything else about a channel: it is what a change of rights told.
	exact map[ids.ID]Held
	// groups are the groups with a row of the principal, ascending; the group of all members
	// has none.
	groups []ids.ID
}

// Compile adds up the grants of a principal. Grants and memberships that have ended at the
// moment count for nothing; those that will end set ValidUntil.
func Compile(p Principal, version int64, grants []Counted, now time.Time, memberships ...Membership) *Entry {
	e := &Entry{Principal: p, Version: version, spaces: map[ids.ID]Held{}, channels: map[ids.ID]Held{}}
	for _, m := range memberships {
		if e.counts(m.ExpiresAt, now) {
			e.groups = append(e.groups, m.GroupID)
		}
	}
	slices.SortFunc(e.groups, ids.ID.Compare)
	for _, g := range grants {
		if !e.counts(g.ExpiresAt, now) {
			continue
		}
		h := HeldBy(g.Level, g.Caps)
		switch g.Target.Kind {
		case TargetInstance:
			e.instance = e.instance.And(h)
		case TargetSpace:
			e.spaces[g.Target.ID] = e.spaces[g.Target.ID].And(h)
		case TargetChannel:
			e.channels[g.Target.ID] = e.channels[g.Target.ID].And(h)
		}
	}
	return e
}

// counts reports whether something with the end still counts, and notes the earliest end.
func (e *Entry) counts(ends, now time.Time) bool {
	if ends.IsZero() {
		return true
	}
	if !ends.After(now) {
		return false
	}
	if e.ValidUntil.IsZero() || ends.Before(e.ValidUntil) {
		e.ValidUntil = ends
	}
	return true
}

// InGroup reports whether the principal is a member of the group, that of all members left
// aside.
func (e *Entry) InGroup(group ids.ID) bool {
	_, found := slices.BinarySearchFunc(e.groups, group, ids.ID.Compare)
	return found
}

// Expired reports whether a part of the entry has ended, so that it must be read anew.
func (e *Entry) Expired(now time.Time) bool {
	return !e.ValidUntil.IsZero() && !e.ValidUntil.After(now)
}

// Instance is what the principal holds on the instance.
func (e *Entry) Instance() Held {
	switch {
	case !e.Active:
		return Held{}
	case e.Owner:
		return ownerHeld
	default:
		return e.instance
	}
}

// Space is what the principal holds on a space.
func (e *Entry) Space(id ids.ID) Held {
	switch {
	case !e.Active:
		return Held{}
	case e.Owner:
		return ownerHeld
	default:
		return e.spaces[id].And(e.instance)
	}
}

// Channel is what the principal holds on a channel.
func (e *Entry) Channel(c Channel) Held {
	if !e.Active {
		return Held{}
	}
	if e.Owner && !c.Direct {
		return ownerHeld
	}
	h, told := e.exact[c.ID]
	if !told {
		h = e.derived(c)
		if !c.Direct {
			h = h.And(e.channels[c.ID])
		}
	}
	return capped(c, h)
}

// capped takes the right to set agents to work away in what is archived.
func capped(c Channel, h Held) Held {
	if c.Archived && h.Level == Trigger {
		h.Level = Write
	}
	return h
}

// derived is what follows from the place itself and from the places above it.
func (e *Entry) derived(c Channel) Held {
	var h Held
	switch {
	case c.Direct:
		if slices.Contains(c.Participants, e.ID) {
			h = participantHeld
			if e.Owner { // An owner lacks a right only in the conversations of others.
				h = ownerHeld
			}
		}
	case c.Inherits:
		h = e.Space(c.SpaceID)
	default:
		h = e.Space(c.SpaceID).ThroughBarrier()
	}
	if !c.Operator.IsZero() && c.Operator == e.ID {
		h = h.And(operatorHeld)
	}
	return h
}

// Reach is the set of places a principal can see.
type Reach struct {
	// All means every space and every channel that is not direct.
	All bool
	// Spaces are readable as a whole, Channels the readable ones that do not follow from
	// them, and PassingSpaces those of which only channels are readable.
	Spaces, Channels, PassingSpaces []ids.ID
}

// Reach lists what the principal can see in the structure, by ID.
func (e *Entry) Reach(s *Structure) Reach {
	var r Reach
	if !e.Active {
		return r
	}
	r.All = e.Instance().Passes
	for _, id := range s.direct[e.ID] {
		if c, _ := s.Channel(id); e.Channel(c).Visible() {
			r.Channels = append(r.Channels, id)
		}
	}
	if !r.All {
		e.reachPlaces(s, &r)
	}
	slices.SortFunc(r.Channels, ids.ID.Compare)
	r.Channels = slices.Compact(r.Channels)
	return r
}

func (e *Entry) reachPlaces(s *Structure, r *Reach) {
	passing := map[ids.ID]bool{}
	see := func(id ids.ID) {
		c, ok := s.Channel(id)
		if !ok || c.Direct || !e.Channel(c).Visible() {
			return
		}
		r.Channels = append(r.Channels, id)
		if !e.Space(c.SpaceID).Visible() {
			passing[c.SpaceID] = true
		}
	}
	for id := range s.spaces {
		if e.Space(id).Visible() {
			r.Spaces = append(r.Spaces, id)
		}
		for _, c := range s.special[id] {
			see(c)
		}
	}
	for id := range e.channels {
		see(id)
	}
	for id := range e.exact {
		see(id)
	}
	for id := range passing {
		r.PassingSpaces = append(r.PassingSpaces, id)
	}
	slices.SortFunc(r.Spaces, ids.ID.Compare)
	slices.SortFunc(r.PassingSpaces, ids.ID.Compare)
}
