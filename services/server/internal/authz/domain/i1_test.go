// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// crowd is a random instance with two personal agents, some people and a group.
type crowd struct {
	structure *Structure
	channels  []Channel
	agents    []PersonalAgent
	people    []Triggerer
	owners    map[ids.ID]bool
	grants    map[ids.ID]Counted
}

func drawCrowd(t *rapid.T) crowd {
	w := drawWorld(t)
	out := crowd{channels: w.channels, structure: w.structure(), owners: map[ids.ID]bool{}, grants: map[ids.ID]Counted{}}
	for i := range 2 {
		grants := rapid.SliceOfN(rapid.Custom(drawGrant), 0, 2).Draw(t, "agent")
		p := Principal{ID: id('p', i), Kind: Agent, Active: rapid.IntRange(0, 5).Draw(t, "on") > 0}
		out.agents = append(out.agents, PersonalAgent{Entry: Compile(p, 1, grants, now), Holder: id('q', i)})
	}
	var group []Source
	for i, g := range rapid.SliceOfN(rapid.Custom(drawGrant), 0, 2).Draw(t, "group") {
		group = append(group, Source{GrantID: id('g', i), GroupID: id('u', 0), Counted: out.strong(g)})
	}
	for i := range 4 {
		p := Principal{ID: id('q', i), Kind: Person, Active: rapid.IntRange(0, 5).Draw(t, "on") > 0}
		if i == 3 {
			p.ID = id('p', 1) // An agent may hold trigger as well; participant of the direct channel.
		}
		out.owners[p.ID] = rapid.Bool().Draw(t, "owner")
		var sources []Source
		for n, g := range rapid.SliceOfN(rapid.Custom(drawGrant), 0, 2).Draw(t, "person") {
			sources = append(sources, Source{GrantID: id('h', 10*i+n), Counted: out.strong(g)})
		}
		if rapid.Bool().Draw(t, "member") {
			sources = append(sources, group...)
		}
		out.people = append(out.people, NewTriggerer(p, sources, now))
	}
	return out
}

// strong lets a grant be at least trigger, which is all that is read.
func (c *crowd) strong(g Counted) Counted {
	g.Level = max(g.Level, Trigger)
	return g
}

// naive looks at every person and every place.
func (c crowd) naive() map[string]bool {
	out := map[string]bool{}
	for _, a := range c.agents {
		for _, p := range c.people {
			if !a.Active || p.ID == a.Holder || p.ID == a.ID || !p.Active {
				continue
			}
			if a.Instance().Visible() && p.entry.Instance().Level >= Trigger {
				out[fmt.Sprint(a.ID, p.ID)] = true
			}
			for _, s := range c.structure.Spaces() {
				if a.Space(s).Visible() && p.entry.Space(s).Level >= Trigger {
					out[fmt.Sprint(a.ID, p.ID)] = true
				}
			}
			for _, raw := range c.channels {
				raw.Archived = false
				if a.Channel(raw).Visible() && p.entry.Channel(raw).Level >= Trigger {
					out[fmt.Sprint(a.ID, p.ID)] = true
				}
			}
		}
	}
	return out
}

func TestViolationsAreThoseOfTheNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrowd(t)
		got := map[string]bool{}
		for _, v := range Violations(c.agents, c.people, c.structure) {
			got[fmt.Sprint(v.Agent, v.Principal)] = true
			if len(v.Paths) == 0 {
				t.Fatalf("%+v has no way", v)
			}
		}
		want := c.naive()
		for pair := range want {
			if !got[pair] {
				t.Fatalf("missed %s", pair)
			}
		}
		for pair := range got {
			if !want[pair] {
				t.Fatalf("invented %s", pair)
			}
		}
	})
}

// A plan leaves nobody but the holders, and takes nothing from a holder who is no owner.
func TestAPlanEndsEveryViolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrowd(t)
		in := PlanInput{Agents: c.agents, People: c.people, Structure: c.structure, Owners: c.owners, Now: now}
		steps, reason := in.Plan()
		if reason != "" {
			if len(Violations(c.agents, c.people, c.structure)) == 0 {
				t.Fatalf("nothing was wrong, and yet %s", reason)
			}
			return
		}
		after := PlanInput{Agents: c.agents, People: append([]Triggerer(nil), c.people...), Structure: c.structure, Now: now}
		for _, step := range steps {
			after.apply(step)
		}
		if left := Violations(after.Agents, after.People, after.Structure); len(left) > 0 {
			t.Fatalf("left %+v after %+v", left, steps)
		}
	})
}

func TestPlansTakeTheSmallestWay(t *testing.T) {
	space := Target{TargetSpace, id('s', 0)}
	st := NewStructure([]Space{{ID: space.ID}}, []Channel{{ID: id('c', 0), SpaceID: space.ID, Inherits: true, Operator: id('p', 1)}})
	reader := Compile(Principal{ID: id('p', 0), Kind: Agent, Active: true}, 1, []Counted{{Target: space, Level: Read}}, now)
	answering := Compile(Principal{ID: id('p', 1), Kind: Agent, Active: true}, 1, nil, now)
	holder := Principal{ID: id('q', 0), Kind: Person, Active: true}
	other := Principal{ID: id('q', 1), Kind: Person, Active: true}
	direct := Source{GrantID: id('g', 0), Counted: Counted{Target: space, Level: Trigger}}
	managing := Source{GrantID: id('g', 1), Counted: Counted{Target: space, Level: Manage}}
	group := Source{GrantID: id('g', 2), GroupID: id('u', 0), Counted: Counted{Target: space, Level: Trigger}}
	all := Source{GrantID: id('g', 3), GroupID: id('u', 1), Everyone: true, Counted: Counted{Target: space, Level: Trigger}}
	for name, c := range map[string]struct {
		agent         *Entry
		holds, others []Source
		in            PlanInput
		kinds, reason string
	}{
		"a grant":                       {reader, nil, []Source{direct}, PlanInput{}, "[replace_grant false]", ""},
		"a grant to manage":             {reader, nil, []Source{managing}, PlanInput{}, "[replace_grant true]", ""},
		"the grant asked for":           {reader, nil, []Source{direct}, PlanInput{NewGrants: map[ids.ID]bool{direct.GrantID: true}}, "[reduce_request false]", ""},
		"a group without the holder":    {reader, nil, []Source{group}, PlanInput{}, "[replace_grant false]", ""},
		"a group with the holder":       {reader, []Source{group}, []Source{group}, PlanInput{}, "[remove_member false]", ""},
		"the membership asked for":      {reader, []Source{group}, []Source{group}, PlanInput{NewMembers: map[MemberKey]bool{{group.GroupID, other.ID}: true}}, "[]", NoPlanUndoes},
		"a group of a provider":         {reader, []Source{group}, []Source{group}, PlanInput{Claimed: map[MemberKey]bool{{group.GroupID, other.ID}: true}}, "[]", NoPlanHolder},
		"everyone":                      {reader, []Source{all}, []Source{all}, PlanInput{}, "[]", NoPlanHolder},
		"everyone, an owner holds":      {reader, []Source{all}, []Source{all}, PlanInput{Owners: map[ids.ID]bool{holder.ID: true}}, "[replace_grant false]", ""},
		"everyone where it answers":     {answering, []Source{all}, []Source{all}, PlanInput{}, "[unset_operator false]", ""},
		"the operator asked for":        {answering, []Source{all}, []Source{all}, PlanInput{NewOperators: map[ids.ID]bool{id('c', 0): true}}, "[]", NoPlanUndoes},
		"nothing to do":                 {reader, []Source{direct}, nil, PlanInput{}, "[]", ""},
		"two grants":                    {reader, nil, []Source{direct, group}, PlanInput{}, "[replace_grant false replace_grant false]", ""},
		"a grant that has ended":        {reader, nil, []Source{{GrantID: id('g', 4), Counted: Counted{Target: space, Level: Trigger, ExpiresAt: now.Add(-time.Second)}}}, PlanInput{}, "[]", ""},
		"an agent that is switched off": {Compile(Principal{ID: id('p', 0), Kind: Agent}, 1, []Counted{{Target: space, Level: Read}}, now), nil, []Source{direct}, PlanInput{}, "[]", ""},
	} {
		c.in.Agents = []PersonalAgent{{Entry: c.agent, Holder: holder.ID}}
		c.in.People = []Triggerer{NewTriggerer(holder, c.holds, now), NewTriggerer(other, c.others, now)}
		c.in.Structure, c.in.Now = st, now
		steps, reason := c.in.Plan()
		var kinds []string
		for _, s := range steps {
			kinds = append(kinds, fmt.Sprint(s.Kind, " ", s.Severe))
		}
		if got := fmt.Sprint(kinds); got != c.kinds || reason != c.reason {
			t.Errorf("%s: %s %q, want %s %q", name, got, reason, c.kinds, c.reason)
		}
	}
}

func TestAnArchivedPlaceCountsAsOpen(t *testing.T) {
	space := Target{TargetSpace, id('s', 0)}
	st := NewStructure([]Space{{ID: space.ID}}, []Channel{{ID: id('c', 0), SpaceID: space.ID, Inherits: true, Archived: true, Operator: id('p', 0)}})
	agent := PersonalAgent{Entry: Compile(Principal{ID: id('p', 0), Kind: Agent, Active: true}, 1, nil, now), Holder: id('q', 0)}
	other := NewTriggerer(Principal{ID: id('q', 1), Kind: Person, Active: true}, []Source{{GrantID: id('g', 0), Counted: Counted{Target: space, Level: Trigger}}}, now)
	if got := Violations([]PersonalAgent{agent}, []Triggerer{other}, st); len(got) != 1 || got[0].Target.ID != id('c', 0) {
		t.Errorf("%+v", got)
	}
}
