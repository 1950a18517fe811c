// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"maps"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// TargetHeld is one line of a change.
type TargetHeld struct {
	Target Target
	Held   Held
}

// Change is how what a principal holds differs between two states.
//
// A space is named when its rights differ, a channel only where its rights are not simply
// those of its space. Whoever applies the lists forgets what it knew of the channels of a
// named space, so every such channel that is still special is named with it, changed or not;
// in the same way a change on the instance names every space.
type Change struct {
	Gained, Changed, Lost []TargetHeld
	// Flags is set when the principal became or ceased to be active, an owner or a guest: what
	// lies beneath is then unknown to whoever followed the changes, and must be read anew.
	Flags bool
	// Groups are the groups after the change when they differ; nil when they are the same.
	Groups []ids.ID
}

// Empty reports whether the two states are the same.
func (c Change) Empty() bool {
	return !c.Flags && c.Groups == nil && len(c.Gained) == 0 && len(c.Changed) == 0 && len(c.Lost) == 0
}

// Size is the number of lines.
func (c Change) Size() int { return len(c.Gained) + len(c.Changed) + len(c.Lost) }

// Diff compares what a principal holds before and after a change of grants, of the
// principal or of the structure.
func Diff(before, after *Entry, sBefore, sAfter *Structure) Change {
	d := differ{b: before, a: after, sb: sBefore, sa: sAfter, moved: changedChannels(sBefore, sAfter), named: map[ids.ID]bool{}}
	d.out.Flags = before.Active != after.Active || before.Owner != after.Owner || before.Guest != after.Guest
	if !slices.Equal(before.groups, after.groups) {
		d.out.Groups = append([]ids.ID{}, after.groups...)
	}
	// Rights on the instance may have hidden what a space gives by itself, so when they
	// change, every space is named.
	d.spaces(d.add(Target{Kind: TargetInstance}, before.Instance(), after.Instance(), false))
	d.channels()
	return d.out
}

type differ struct {
	b, a   *Entry
	sb, sa *Structure
	// moved are channels that differ by themselves, named the spaces already listed.
	moved, named map[ids.ID]bool
	out          Change
}

// add lists a target; with keep also when its rights are the same.
func (d *differ) add(t Target, before, after Held, keep bool) bool {
	switch {
	case before == after && (!keep || after.Empty()):
		return false
	case before.Empty():
		d.out.Gained = append(d.out.Gained, TargetHeld{t, after})
	case after.Empty():
		d.out.Lost = append(d.out.Lost, TargetHeld{Target: t})
	default:
		d.out.Changed = append(d.out.Changed, TargetHeld{t, after})
	}
	return true
}

func (d *differ) spaces(all bool) {
	for _, id := range union(d.sb.Spaces(), d.sa.Spaces()) {
		var hb, ha Held
		_, okB := d.sb.Space(id)
		_, okA := d.sa.Space(id)
		if okB {
			hb = d.b.Space(id)
		}
		if okA {
			ha = d.a.Space(id)
		}
		if d.add(Target{TargetSpace, id}, hb, ha, all) {
			d.named[id] = true
		}
	}
}

func (d *differ) channels() {
	for _, id := range d.candidates() {
		cb, okB := d.sb.Channel(id)
		ca, okA := d.sa.Channel(id)
		var hb, ha Held
		followsB, followsA := true, true
		if okB {
			hb = d.b.Channel(cb)
			followsB = d.b.follows(cb, hb)
		}
		if okA {
			ha = d.a.Channel(ca)
			followsA = d.a.follows(ca, ha)
		}
		if followsB && followsA {
			continue // What is told of the space says it.
		}
		told := okA && (d.named[ca.SpaceID] || okB && d.moved[id] && d.b.derived(cb) != d.a.derived(ca))
		d.add(Target{TargetChannel, id}, hb, ha, told && !followsA)
	}
}

// follows reports whether what is held on a channel is that of its space, and is what
// somebody finds who knows nothing of the channel but its structure.
func (e *Entry) follows(c Channel, h Held) bool {
	if c.Direct {
		return false
	}
	if e.Owner || !e.Active {
		return true
	}
	return h == e.Space(c.SpaceID) && h == capped(c, e.derived(c))
}

// candidates are the channels whose rights can differ from those of their space in one of
// the two states, or that differ by themselves.
func (d *differ) candidates() []ids.ID {
	set := maps.Clone(d.moved)
	for _, e := range []*Entry{d.b, d.a} {
		for id := range e.channels {
			set[id] = true
		}
		for id := range e.exact {
			set[id] = true
		}
	}
	for space := range d.named {
		for _, s := range []*Structure{d.sb, d.sa} {
			for _, id := range s.special[space] {
				set[id] = true
			}
		}
	}
	if d.out.Flags {
		for _, s := range []*Structure{d.sb, d.sa} {
			for _, id := range s.direct[d.a.ID] {
				set[id] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(set), ids.ID.Compare)
}

// Apply gives the entry after a change that was told, without reading anything. The
// structure is that of the moment before the change; validUntil is zero for never.
func (e *Entry) Apply(c Change, s *Structure, version int64, validUntil time.Time) *Entry {
	out := *e
	out.Version, out.ValidUntil = version, validUntil
	out.spaces, out.channels, out.exact = maps.Clone(e.spaces), maps.Clone(e.channels), maps.Clone(e.exact)
	if c.Groups != nil {
		out.groups = c.Groups
	}
	if out.exact == nil {
		out.exact = map[ids.ID]Held{}
	}
	named := map[ids.ID]bool{}
	told := map[ids.ID]Held{}
	for _, list := range [][]TargetHeld{c.Gained, c.Changed, c.Lost} {
		for _, t := range list {
			switch t.Target.Kind {
			case TargetInstance:
				out.instance = t.Held
			case TargetSpace:
				named[t.Target.ID] = true
				out.spaces[t.Target.ID] = t.Held
			case TargetChannel:
				told[t.Target.ID] = t.Held
			}
		}
	}
	forget := func(id ids.ID, _ Held) bool {
		ch, ok := s.Channel(id)
		return ok && named[ch.SpaceID]
	}
	maps.DeleteFunc(out.channels, forget)
	maps.DeleteFunc(out.exact, forget)
	for id, h := range told {
		delete(out.channels, id)
		out.exact[id] = h
	}
	return &out
}

func union(a, b []ids.ID) []ids.ID {
	out := append(slices.Clone(a), b...)
	slices.SortFunc(out, ids.ID.Compare)
	return slices.Compact(out)
}
