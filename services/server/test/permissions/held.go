// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Held is what a principal has on a target.
type Held struct {
	// Level is read, write, trigger or manage; empty for nothing.
	Level string
	// Capabilities are sorted.
	Capabilities []string
}

var levels = []string{"", "read", "write", "trigger", "manage"}

// AtLeast tells whether the level includes another.
func (h Held) AtLeast(level string) bool {
	return slices.Index(levels, h.Level) >= slices.Index(levels, level)
}

// Has tells whether a capability is held.
func (h Held) Has(capability string) bool { return slices.Contains(h.Capabilities, capability) }

// Capabilities lists all of them (00-core, section 3), and Named those that no level includes.
var (
	Capabilities = []string{
		"commands.manage", "costs.read", "export", "files.upload", "members.manage", "mentions.broadcast",
		"messages.moderate", "pins.manage", "terminal.open", "threads.create", "webhooks.manage",
	}
	Named = []string{"costs.read", "export", "terminal.open"}
)

// with adds a right to what is held: the higher level, all capabilities (AC-3).
func (h Held) with(level string, capabilities ...string) Held {
	if !h.AtLeast(level) {
		h.Level = level
	}
	all := append(slices.Clone(h.Capabilities), capabilities...)
	if level == "manage" {
		for _, c := range Capabilities {
			if !slices.Contains(Named, c) {
				all = append(all, c)
			}
		}
	}
	slices.Sort(all)
	h.Capabilities = slices.Compact(all)
	return h
}

// Held adds up what a principal has on a target (AC-2 to AC-6).
func (w *World) Held(who ids.ID, t Target) Held {
	p := w.Principal(who)
	if p == nil || !p.Active || !w.Exists(t) {
		return Held{}
	}
	var h Held
	for _, g := range w.Grants {
		if w.counts(g, p, t) {
			h = h.with(g.Level, g.Capabilities...)
		}
	}
	var c *Channel
	if t.Kind == "channel" {
		c = w.Channel(t.ID)
	}
	foreign := false // A conversation of others.
	if c != nil && c.Direct {
		foreign = !slices.Contains(c.Participants, who)
		if !foreign {
			h = h.with("trigger", "files.upload", "threads.create", "pins.manage")
		}
	}
	if c != nil && c.Operator == who {
		h = h.with("write", "files.upload", "threads.create")
	}
	if p.Owner && !foreign {
		h = h.with("manage", Capabilities...)
	}
	// Archiving makes trigger void, and nothing that lies beside it (chapter 06, 6.7).
	if w.Archived(t) && t.Kind == "channel" && h.Level == "trigger" {
		h.Level = "write"
	}
	return h
}

// Inherited is what a principal has on a target without the grants on exactly that target.
func (w *World) Inherited(who ids.ID, t Target) Held {
	above := *w
	above.Grants = slices.DeleteFunc(slices.Clone(w.Grants), func(g *Grant) bool { return g.Target == t })
	return above.Held(who, t)
}

// Sees tells whether a target is visible, which is reading it.
func (w *World) Sees(who ids.ID, t Target) bool { return w.Held(who, t).AtLeast("read") }

// WithTrigger lists the people who can set agents to work in a channel now (AC-35), by ID.
func (w *World) WithTrigger(channel ids.ID) []ids.ID {
	var out []ids.ID
	for _, p := range w.Principals {
		if p.Kind == "person" && w.Held(p.ID, ChannelTarget(channel)).AtLeast("trigger") {
			out = append(out, p.ID)
		}
	}
	slices.SortFunc(out, ids.ID.Compare)
	return out
}

// SharePlace tells whether two principals both read some place, which is how one may know of an
// agent (chapter 09).
func (w *World) SharePlace(a, b ids.ID) bool {
	for _, s := range w.Spaces {
		if w.Sees(a, SpaceTarget(s.ID)) && w.Sees(b, SpaceTarget(s.ID)) {
			return true
		}
	}
	for _, c := range w.Channels {
		if w.Sees(a, ChannelTarget(c.ID)) && w.Sees(b, ChannelTarget(c.ID)) {
			return true
		}
	}
	return false
}

// Targets lists the instance and every place there is.
func (w *World) Targets() []Target {
	out := []Target{Instance}
	for _, s := range w.Spaces {
		out = append(out, SpaceTarget(s.ID))
	}
	for _, c := range w.Channels {
		out = append(out, ChannelTarget(c.ID))
	}
	return out
}

// Violation is a principal who could set a personal agent to work although somebody else pays
// for it by her own plan (I1).
type Violation struct {
	Agent, Principal ids.ID
	Target           Target
}

// Violations lists all of them (AC-32): an active agent with a holder reaches a target by reading
// it by a grant or by answering there, and somebody else has a counted trigger on it. The right
// that owners have everywhere does not count, and places count as if none was archived.
func (w *World) Violations() []Violation {
	var out []Violation
	w = w.Clone()
	for _, s := range w.Spaces {
		s.Archived = false
	}
	for _, c := range w.Channels {
		c.Archived = false
	}
	for _, agent := range w.Principals {
		if agent.Kind != "agent" || !agent.Active || agent.Holder.IsZero() {
			continue
		}
		for _, t := range w.Targets() {
			if !w.reaches(agent, t) {
				continue
			}
			for _, p := range w.Principals {
				if p.ID != agent.Holder && p.ID != agent.ID && w.given(p, t).AtLeast("trigger") {
					out = append(out, Violation{Agent: agent.ID, Principal: p.ID, Target: t})
				}
			}
		}
	}
	return out
}

// given is what a principal holds without the right that owners have everywhere.
func (w *World) given(p *Principal, t Target) Held {
	plain := *w
	plain.Principals = slices.Clone(w.Principals)
	for i, other := range plain.Principals {
		if other.ID == p.ID {
			without := *other
			without.Owner = false
			plain.Principals[i] = &without
		}
	}
	return plain.Held(p.ID, t)
}

func (w *World) reaches(agent *Principal, t Target) bool { return w.given(agent, t).AtLeast("read") }
