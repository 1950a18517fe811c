// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

var now = time.Date(2026, 11, 30, 2, 30, 0, 0, time.UTC)

func id(kind byte, n int) ids.ID {
	var out ids.ID
	out[0] = kind
	binary.BigEndian.PutUint32(out[12:], uint32(n+1))
	return out
}

// world is a random instance with one principal in it, small enough that everything meets.
type world struct {
	p        Principal
	spaces   []Space
	channels []Channel
	grants   []Counted
	groups   []Membership
}

const (
	spaceCount   = 3
	channelCount = 7
)

func drawWorld(t *rapid.T) world {
	w := world{p: Principal{ID: id('p', 0), Kind: Person, Active: rapid.IntRange(0, 9).Draw(t, "active") > 0, Owner: rapid.IntRange(0, 6).Draw(t, "owner") == 0}}
	for i := range spaceCount {
		w.spaces = append(w.spaces, Space{ID: id('s', i), Archived: rapid.IntRange(0, 5).Draw(t, "archived") == 0})
	}
	for i := range channelCount {
		w.channels = append(w.channels, drawChannel(t, i))
	}
	w.grants = rapid.SliceOfN(rapid.Custom(drawGrant), 0, 6).Draw(t, "grants")
	return w
}

func drawChannel(t *rapid.T, i int) Channel {
	c := Channel{ID: id('c', i), Inherits: rapid.Bool().Draw(t, "inherits"), Archived: rapid.IntRange(0, 5).Draw(t, "archived") == 0}
	if rapid.IntRange(0, 2).Draw(t, "operator") == 0 {
		c.Operator = id('p', rapid.IntRange(0, 1).Draw(t, "who"))
	}
	if i == channelCount-1 {
		c.Direct, c.Inherits, c.Archived = true, true, false
		if rapid.Bool().Draw(t, "participant") {
			c.Participants = []ids.ID{id('p', 0), id('p', 1)}
		}
		return c
	}
	c.SpaceID = id('s', i%spaceCount)
	return c
}

func drawGrant(t *rapid.T) Counted {
	g := Counted{Level: Level(rapid.IntRange(1, 4).Draw(t, "level")), Caps: Caps(rapid.Uint16().Draw(t, "caps")) & AllCaps & Caps(rapid.Uint16().Draw(t, "mask"))}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		g.Target = Target{Kind: TargetInstance}
	case 1, 2:
		g.Target = Target{TargetSpace, id('s', rapid.IntRange(0, spaceCount-1).Draw(t, "space"))}
	default:
		g.Target = Target{TargetChannel, id('c', rapid.IntRange(0, channelCount-2).Draw(t, "channel"))}
	}
	if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
		g.ExpiresAt = now.Add(time.Duration(rapid.IntRange(-2, 3).Draw(t, "in")) * time.Minute)
	}
	return g
}

func (w world) structure() *Structure { return NewStructure(w.spaces, w.channels) }
func (w world) entry(v int64) *Entry  { return Compile(w.p, v, w.grants, now, w.groups...) }

// naive decides a channel grant by grant, as the specification words it.
func (w world) naive(c Channel) Held {
	if !w.p.Active {
		return Held{}
	}
	if c.Direct {
		var h Held
		for _, p := range c.Participants {
			if p == w.p.ID {
				h = participantHeld
				if w.p.Owner {
					h = ownerHeld
				}
			}
		}
		if c.Operator == w.p.ID {
			h = h.And(operatorHeld)
		}
		return h
	}
	if w.p.Owner {
		return ownerHeld
	}
	var h Held
	for _, g := range w.grants {
		if !g.ExpiresAt.IsZero() && !now.Before(g.ExpiresAt) {
			continue
		}
		own := g.Target == Target{TargetChannel, c.ID}
		above := g.Target.Kind == TargetInstance || g.Target == Target{TargetSpace, c.SpaceID}
		if own || above && (c.Inherits || g.Level == Manage) {
			h = h.And(HeldBy(g.Level, g.Caps))
		}
	}
	if c.Operator == w.p.ID {
		h = h.And(operatorHeld)
	}
	archived := c.Archived
	for _, s := range w.spaces {
		archived = archived || s.ID == c.SpaceID && s.Archived
	}
	if archived && h.Level == Trigger {
		h.Level = Write
	}
	return h
}

func TestEvaluationEqualsTheNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		s, e := w.structure(), w.entry(1)
		for _, raw := range w.channels {
			c, _ := s.Channel(raw.ID)
			got, want := e.Channel(c), w.naive(raw)
			if got.Level != want.Level || got.Caps != want.Caps {
				t.Fatalf("channel %v: %+v, want %+v", c, got, want)
			}
		}
	})
}

func TestMoreGrantsNeverTakeAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		s, before := w.structure(), w.entry(1)
		w.grants = append(w.grants, drawGrant(t))
		after := w.entry(2)
		for _, cid := range s.Channels() {
			c, _ := s.Channel(cid)
			b, a := before.Channel(c), after.Channel(c)
			if a.Level < b.Level || !a.Caps.Has(b.Caps) {
				t.Fatalf("channel %v fell from %+v to %+v", c, b, a)
			}
		}
	})
}

func TestReachListsExactlyTheVisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		s, e := w.structure(), w.entry(1)
		r := e.Reach(s)
		inSpaces, inChannels := toSet(r.Spaces), toSet(r.Channels)
		for _, cid := range s.Channels() {
			c, _ := s.Channel(cid)
			listed := inChannels[cid] || !c.Direct && (r.All || inSpaces[c.SpaceID] && c.Inherits)
			if listed != e.Channel(c).Visible() {
				t.Fatalf("channel %+v: listed %v, held %+v, reach %+v", c, listed, e.Channel(c), r)
			}
		}
	})
}

// A follower that applies the told differences, event by event, must hold the same as one
// that reads everything anew, whatever grants, people and places do.
func TestCarriedEntriesEqualRecomputedOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		structure := w.structure()
		carried := w.entry(1)
		for version := int64(2); version < 10; version++ {
			sBefore, before := w.structure(), w.entry(version-1)
			mutate(t, &w)
			sAfter, after := w.structure(), w.entry(version)
			change := Diff(before, after, sBefore, sAfter)
			switch {
			case change.Flags:
				carried = after
			case !change.Empty() || !before.ValidUntil.Equal(after.ValidUntil):
				carried = carried.Apply(change, structure, version, after.ValidUntil)
			}
			structure = sAfter // The events of the structure follow in the same unit.
			for _, cid := range structure.Channels() {
				c, _ := structure.Channel(cid)
				if got, want := carried.Channel(c), after.Channel(c); got != want {
					t.Fatalf("version %d, channel %+v: carried %+v, read %+v\nchange %+v", version, c, got, want, change)
				}
			}
			for _, sid := range structure.Spaces() {
				if got, want := carried.Space(sid), after.Space(sid); got != want {
					t.Fatalf("version %d, space %v: carried %+v, read %+v\nchange %+v", version, sid, got, want, change)
				}
			}
			for i := range 3 {
				if g := id('g', i); carried.InGroup(g) != after.InGroup(g) {
					t.Fatalf("version %d: carried and read differ about group %d\nchange %+v", version, i, change)
				}
			}
			if got, want := carried.Instance(), after.Instance(); got != want {
				t.Fatalf("version %d, instance: carried %+v, read %+v", version, got, want)
			}
		}
	})
}

func mutate(t *rapid.T, w *world) {
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	case 8:
		w.groups = nil
		for i := range rapid.IntRange(0, 3).Draw(t, "groups") {
			w.groups = append(w.groups, Membership{GroupID: id('g', i)})
		}
	case 0, 1, 2:
		w.grants = append(w.grants[:len(w.grants):len(w.grants)], drawGrant(t))
	case 3, 4:
		if n := len(w.grants); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(t, "gone")
			w.grants = append(w.grants[:i:i], w.grants[i+1:]...)
		}
	case 5, 6:
		channels := append([]Channel(nil), w.channels...)
		i := rapid.IntRange(0, channelCount-1).Draw(t, "place")
		channels[i] = drawChannel(t, i)
		w.channels = channels
	default:
		w.p.Owner = !w.p.Owner
	}
}

func toSet(list []ids.ID) map[ids.ID]bool {
	out := map[ids.ID]bool{}
	for _, v := range list {
		out[v] = true
	}
	return out
}

func TestGrantsThatReachFarAreStrong(t *testing.T) {
	for name, c := range map[string]struct {
		g    Grant
		want bool
	}{
		"write on a channel":  {Grant{Target: Target{TargetChannel, id('c', 0)}, Level: Write}, false},
		"manage on a space":   {Grant{Target: Target{TargetSpace, id('s', 0)}, Level: Manage}, true},
		"read on instance":    {Grant{Target: Target{Kind: TargetInstance}, Level: Read}, true},
		"export on a channel": {Grant{Target: Target{TargetChannel, id('c', 0)}, Level: Read, Caps: Export}, true},
		"uploads on a space":  {Grant{Target: Target{TargetSpace, id('s', 0)}, Level: Write, Caps: FilesUpload}, false},
	} {
		if got := c.g.Strong(); got != c.want {
			t.Errorf("%s: strong %v, want %v", name, got, c.want)
		}
	}
}

func TestNobodyHandsOnMoreThanShehas(t *testing.T) {
	space := Target{TargetSpace, id('s', 0)}
	members := Held{Level: Write, Caps: MembersManage | FilesUpload}
	manager := HeldBy(Manage, 0)
	for name, c := range map[string]struct {
		g     Grant
		owner bool
		h     Held
		want  string
	}{
		"owner gives everything":             {Grant{Target: Target{Kind: TargetInstance}, Level: Manage, Caps: Export}, true, Held{}, ""},
		"manager gives manage":               {Grant{Target: space, Level: Manage}, false, manager, ""},
		"manager gives no instance":          {Grant{Target: Target{Kind: TargetInstance}, Level: Read}, false, manager, ReasonNotOwner},
		"manager gives no export":            {Grant{Target: space, Level: Read, Caps: Export}, false, manager, ReasonNotOwner},
		"member manager gives her level":     {Grant{Target: space, Level: Write, Caps: FilesUpload}, false, members, ""},
		"member manager gives no more":       {Grant{Target: space, Level: Trigger}, false, members, ReasonLevelInsufficient},
		"member manager removes no manager":  {Grant{Target: space, Level: Manage}, false, members, ReasonLevelInsufficient},
		"member manager gives only her caps": {Grant{Target: space, Level: Read, Caps: PinsManage}, false, members, ReasonCapabilityMissing},
		"writer gives nothing":               {Grant{Target: space, Level: Read}, false, Held{Level: Write}, ReasonLevelInsufficient},
	} {
		if got := c.g.MayHandle(c.owner, c.h); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestEndOfAGrantHasBounds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Minute: "too_soon", 5 * time.Minute: "", 24 * time.Hour: "", 6 * 365 * 24 * time.Hour: "too_far",
	} {
		if got := CheckExpiry(now, now.Add(d)); got != want {
			t.Errorf("in %s: %q, want %q", d, got, want)
		}
	}
}
