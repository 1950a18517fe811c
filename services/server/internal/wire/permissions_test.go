// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
	"github.com/OWNER/bothy/services/server/test/permissions"
)

// envPermissionRuns names how many plays the model watches, each of them with every question after
// every act; without it there are few. envPermissionShrink is how long a fault is made shorter.
const (
	envPermissionRuns   = "BOTHY_PERMISSION_RUNS"
	envPermissionShrink = "BOTHY_PERMISSION_SHRINK"
)

// TestProductionDecidesAsTheModelDoes plays random histories of grants, groups, places and members
// on a built process and compares everything it says about rights with the slow model: every
// question of the catalogue, sets of targets, filters, deliveries of a process that only follows
// the log, and what the log tells about each change.
func TestProductionDecidesAsTheModelDoes(t *testing.T) {
	runs := os.Getenv(envPermissionRuns)
	long := runs != ""
	settings := map[string]string{"rapid.checks": runs, "rapid.steps": "25", "rapid.shrinktime": "20s", "rapid.nofailfile": "true"}
	if long {
		settings["rapid.steps"] = "40"
	} else { // The few are the same every time, so that a change of something else never fails here.
		settings["rapid.checks"] = "6"
		if flag.Lookup("rapid.seed").Value.String() == "0" {
			settings["rapid.seed"] = "7"
		}
	}
	if shrink := os.Getenv(envPermissionShrink); shrink != "" {
		settings["rapid.shrinktime"] = shrink
	}
	for name, value := range settings {
		before := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, before) })
	}
	db := pgtest.New(t)
	c := testConfig(t, db)
	if err := FirstOwner(t.Context(), c, Console{Out: io.Discard, Err: io.Discard}, Owner{Handle: "olga", DisplayName: "Olga Owner"}); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, modelTables)
	rapid.Check(t, func(rt *rapid.T) {
		db.Exec(t, modelReset)
		if err := onStage(t.Context(), c, rt, func(s *stage) { s.play(rt, long) }); err != nil {
			rt.Fatal(err)
		}
	})
}

// play does acts in a random order and compares after each.
func (s *stage) play(rt *rapid.T, long bool) {
	act := func(fn func(rt *rapid.T)) func(rt *rapid.T) {
		return func(rt *rapid.T) {
			targets := s.world.Targets()
			before := s.picture(targets)
			fn(rt)
			s.compareLog(rt, before, targets)
		}
	}
	rt.Repeat(map[string]func(*rapid.T){
		"give": act(s.actGive), "give more": act(s.actGive), "give again": act(s.actGive), "give still": act(s.actGive), "take": act(s.actTake), "member": act(s.actMember), "member more": act(s.actMember),
		"pass": act(s.actPass), "pass on": act(s.actPass), "sweep": s.actSweep, "group": act(s.actGroup), "person": act(s.actPerson), "agent": act(s.actAgent),
		"channel": act(s.actChannel), "place": act(s.actPlace), "direct": act(s.actDirect),
		"catch up": s.actCatchUp, "race": s.unheard(s.actRace),
		"": func(rt *rapid.T) { s.compare(rt, long) },
	})
	s.compareAll(rt)
}

// unheard is an act whose events are not compared one by one, because it is two.
func (s *stage) unheard(fn func(rt *rapid.T)) func(rt *rapid.T) {
	return func(rt *rapid.T) {
		fn(rt)
		head, err := s.head()
		must(rt, "read the head", err)
		s.seen = head
	}
}

// compare asks one caller everything and all callers a little.
func (s *stage) compare(rt *rapid.T, long bool) {
	s.places.forget()
	if opened := s.world.Violations(); len(opened) > 0 { // Nothing that was let through breaks I1.
		rt.Fatalf("personal agents are open to %+v", opened)
	}
	var err error
	if s.told, err = s.follow(s.follower, s.told); err != nil {
		rt.Fatalf("read the log: %v", err)
	}
	chosen := one(rt, s.world.Principals, "asked").ID
	every := 3
	if long {
		every = 1
	}
	for _, p := range s.world.Principals { // Also brings rights back to memory that ended.
		s.askVisible(rt, p.ID)
	}
	for _, c := range s.credentials(rt, chosen) {
		s.askAll(rt, "follower", s.follower, chosen, c, every)
	}
	s.askDelivery(rt, s.follower, chosen, every)
	s.askUnit(rt, s.follower, chosen)
	s.askHints(rt, s.follower, chosen)
	s.askLimited(rt, s.follower, chosen)
	// A process that is behind the log knows rights, but not yet that a place takes no writing: what
	// it answers about writing outside a unit may be old, and what it writes is decided in one.
	s.askFilter(rt, s.r.authz.service, chosen, authorize.ActionChannelRead, authorize.ActionMessageRead, authorize.ActionGrantRead)
	s.askFilter(rt, s.follower, chosen, authorize.ActionThreadCreate, authorize.ActionMessageDelete)
	s.askOthers(rt, s.r.authz.service, one(rt, s.world.Channels, "channel").ID)
	fresh := s.process()
	for _, p := range s.world.Principals {
		s.askHeld(rt, "follower", s.follower, p.ID)
		s.askHeld(rt, "actor", s.r.authz.service, p.ID)
		s.askScope(rt, "follower", s.follower, p.ID)
		s.askScope(rt, "actor", s.r.authz.service, p.ID)
		if long || p.ID == chosen {
			s.askHeld(rt, "fresh", fresh, p.ID)
			s.askScope(rt, "fresh", fresh, p.ID)
		}
	}
}

// compareAll asks everybody everything, once at the end.
func (s *stage) compareAll(rt *rapid.T) {
	fresh := s.process()
	for _, p := range s.world.Principals {
		s.askAll(rt, "follower", s.follower, p.ID, credential{fresh: true}, 1)
		s.askAll(rt, "fresh", fresh, p.ID, credential{}, 1)
		s.askDelivery(rt, s.follower, p.ID, 1)
	}
}

// askVisible is the scope of the hub's indexes. It may be gone because a right has ended.
func (s *stage) askVisible(rt *rapid.T, id ids.ID) {
	scope, ok := s.follower.Visible(id)
	if !ok {
		must(rt, "read rights anew", s.follower.Fill(s.ctx, id))
		scope, ok = s.follower.Visible(id)
	}
	if !ok {
		rt.Fatalf("the rights of %s are not in memory", s.who(id))
	}
	s.checkScope(rt, "visible", id, scope)
}

// picture is what everybody holds everywhere, and until when it is sure to hold.
func (s *stage) picture(targets []permissions.Target) map[ids.ID]view {
	return pictureOf(s.world, targets)
}

func pictureOf(w *permissions.World, targets []permissions.Target) map[ids.ID]view {
	out := map[ids.ID]view{}
	for _, p := range w.Principals {
		v := view{rights: fmt.Sprint(p.Active, p.Owner, p.Guest, w.ValidUntil(p.ID), w.GroupsOf(p.ID))}
		for _, t := range targets {
			if h := w.Held(p.ID, t); h.Level != "" {
				v.rights += "\n" + fmt.Sprint(t.Kind, t.ID, h)
			}
			if h := w.Inherited(p.ID, t); h.Level != "" {
				v.inherited += fmt.Sprint(t, h)
			}
		}
		out[p.ID] = v
	}
	return out
}

// view is what one principal holds, and which part of it follows from the places.
type view struct{ rights, inherited string }

// compareLog holds what an act told against the difference it made: access.changed at exactly the
// principals whose rights differ, before everything else of the same unit. Who holds the same as
// before may be told when it follows from the places no longer.
//
// Making a channel is no change of rights: who reads the space learns of it by its event. A new
// conversation is one.
func (s *stage) compareLog(rt *rapid.T, before map[ids.ID]view, targets []permissions.Target) {
	list, err := s.events(s.seen)
	must(rt, "read the log", err)
	for _, c := range s.world.Channels {
		if t := permissions.ChannelTarget(c.ID); c.Direct && !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	after := s.picture(targets)
	told := map[ids.ID]int{}
	other := int64(0)
	for _, e := range list {
		s.seen = e.Seq
		if e.Type != "access.changed" {
			other = e.Seq
			continue
		}
		if other > 0 {
			rt.Fatalf("access.changed at %d stands behind %d", e.Seq, other)
		}
		if s.world.Principal(e.PrincipalID) != nil {
			told[e.PrincipalID]++
		}
	}
	if len(list) == 0 {
		return // Time went by, or nothing was done: nobody is told.
	}
	for id, now := range after {
		old, known := before[id]
		changed, may := known && old.rights != now.rights, known && old.inherited != now.inherited
		if n := told[id]; changed && n != 1 || !changed && !may && n != 0 {
			rt.Fatalf("%s was told %d times; changed is %v\nbefore %s\nafter  %s", s.who(id), n, changed, old.rights, now.rights)
		}
	}
}

// who, where and say name things in the words of the play.
func (s *stage) who(id ids.ID) string {
	i := slices.IndexFunc(s.world.Principals, func(p *permissions.Principal) bool { return p.ID == id })
	if i < 0 {
		return "nobody"
	}
	return fmt.Sprintf("#%d %+v", i, *s.world.Principals[i])
}

func (s *stage) where(t permissions.Target) string {
	if c := s.world.Channel(t.ID); c != nil {
		return fmt.Sprintf("channel %+v", *c)
	}
	return t.Kind + " " + t.ID.String()
}

func (s *stage) say(q permissions.Question) string {
	text := fmt.Sprintf("%s by %s on %+v, scopes %q, fresh %v, for %v", q.Action, s.who(q.Caller), q.Resource, q.Scopes, q.Fresh, q.For)
	if c := s.world.Channel(q.Resource.ChannelID); c != nil {
		text += "\nin " + s.where(permissions.ChannelTarget(c.ID))
	}
	for _, p := range s.world.Principals {
		if p.ID == q.Resource.ID {
			text += "\nabout " + s.who(p.ID)
		}
	}
	for _, g := range s.world.Grants {
		text += "\n" + strconv.Quote(fmt.Sprintf("%+v", *g))
	}
	return text
}
