// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// World is everything that rights depend on at one moment.
type World struct {
	// Now is the moment: what has ended by it counts for nothing.
	Now         time.Time
	Principals  []*Principal
	Groups      []*Group
	Memberships []*Membership
	Grants      []*Grant
	Spaces      []*Space
	Channels    []*Channel
}

// Principal is a member.
type Principal struct {
	ID ids.ID
	// Kind is person, agent or app.
	Kind                 string
	Active, Owner, Guest bool
	// Holder is the person who pays for an agent by her own plan; zero for any other agent.
	Holder ids.ID
}

// Group is a group of members. That of everyone has no memberships: it is computed.
type Group struct {
	ID       ids.ID
	Everyone bool
}

// Membership makes a principal a member of a group until it ends; a zero end is never.
type Membership struct {
	Group, Principal ids.ID
	Ends             time.Time
	// Manager is set for who looks after the group.
	Manager bool
}

// Grant is a right of a principal or of a group on a target.
type Grant struct {
	ID ids.ID
	// Principal or Group is set.
	Principal, Group ids.ID
	Target           Target
	Level            string
	Capabilities     []string
	Ends             time.Time
}

// Target is what grants are given on. The instance has no ID.
type Target struct {
	// Kind is instance, space or channel.
	Kind string
	ID   ids.ID
}

// Space is a group of channels.
type Space struct {
	ID       ids.ID
	Archived bool
}

// Channel is a place to talk. A direct one lies in no space and has participants.
type Channel struct {
	ID, Space          ids.ID
	Direct             bool
	Inherits           bool
	Archived, ReadOnly bool
	// Operator is the agent that answers here, zero for none.
	Operator     ids.ID
	Participants []ids.ID
}

// Instance is the target of grants for everything.
var Instance = Target{Kind: "instance"}

// SpaceTarget names a space.
func SpaceTarget(id ids.ID) Target { return Target{Kind: "space", ID: id} }

// ChannelTarget names a channel.
func ChannelTarget(id ids.ID) Target { return Target{Kind: "channel", ID: id} }

// Principal finds a member, nil when there is none.
func (w *World) Principal(id ids.ID) *Principal {
	for _, p := range w.Principals {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Space finds a space, nil when there is none.
func (w *World) Space(id ids.ID) *Space {
	for _, s := range w.Spaces {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// Channel finds a channel, nil when there is none.
func (w *World) Channel(id ids.ID) *Channel {
	for _, c := range w.Channels {
		if c.ID == id {
			return c
		}
	}
	return nil
}

func (w *World) over(end time.Time) bool { return !end.IsZero() && !end.After(w.Now) }

// Member tells whether a principal belongs to a group (AC-8: everyone is every active person who
// is no guest).
func (w *World) Member(p *Principal, group ids.ID) bool {
	for _, g := range w.Groups {
		if g.ID == group && g.Everyone {
			return p.Active && p.Kind == "person" && !p.Guest
		}
	}
	for _, m := range w.Memberships {
		if m.Group == group && m.Principal == p.ID && !w.over(m.Ends) {
			return true
		}
	}
	return false
}

// chain lists a target and what lies above it (AC-1).
func (w *World) chain(t Target) []Target {
	switch t.Kind {
	case "channel":
		c := w.Channel(t.ID)
		if c == nil || c.Direct {
			return nil
		}
		return []Target{t, SpaceTarget(c.Space), Instance}
	case "space":
		return []Target{t, Instance}
	default:
		return []Target{Instance}
	}
}

// counts tells whether a grant counts for a principal on a target (AC-2).
func (w *World) counts(g *Grant, p *Principal, t Target) bool {
	if !p.Active || w.over(g.Ends) {
		return false
	}
	if g.Principal != p.ID && (g.Group.IsZero() || !w.Member(p, g.Group)) {
		return false
	}
	if !slices.Contains(w.chain(t), g.Target) {
		return false
	}
	inherited := g.Target != t
	barrier := t.Kind == "channel" && !w.Channel(t.ID).Inherits
	return !inherited || !barrier || g.Level == "manage"
}

// Exists tells whether there is such a target.
func (w *World) Exists(t Target) bool {
	switch t.Kind {
	case "channel":
		return w.Channel(t.ID) != nil
	case "space":
		return w.Space(t.ID) != nil
	default:
		return t == Instance
	}
}

// Archived tells whether a place is archived, by itself or with its space (chapter 06, 6.7).
func (w *World) Archived(t Target) bool {
	switch t.Kind {
	case "channel":
		c := w.Channel(t.ID)
		return c != nil && (c.Archived || !c.Direct && w.Archived(SpaceTarget(c.Space)))
	case "space":
		s := w.Space(t.ID)
		return s != nil && s.Archived
	default:
		return false
	}
}

// GroupsOf lists the groups that somebody was put into, ascending. That of everyone is computed
// from what she is.
func (w *World) GroupsOf(who ids.ID) []ids.ID {
	var out []ids.ID
	for _, m := range w.Memberships {
		if m.Principal == who && !w.over(m.Ends) {
			out = append(out, m.Group)
		}
	}
	slices.SortFunc(out, ids.ID.Compare)
	return out
}

// ValidUntil is the first moment at which something that a principal was given ends: a grant, a
// grant of a group, a membership; zero for never.
func (w *World) ValidUntil(who ids.ID) time.Time {
	var first time.Time
	earlier := func(end time.Time) {
		if !end.IsZero() && !w.over(end) && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	p := w.Principal(who)
	for _, g := range w.Grants {
		if g.Principal == who || !g.Group.IsZero() && p != nil && w.Member(p, g.Group) {
			earlier(g.Ends)
		}
	}
	for _, m := range w.Memberships {
		if m.Principal == who {
			earlier(m.Ends)
		}
	}
	return first
}
