// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"slices"
	"time"

	"pgregory.net/rapid"

	agentsdomain "github.com/OWNER/bothy/services/server/internal/agents/domain"
	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
	authzdomain "github.com/OWNER/bothy/services/server/internal/authz/domain"
	chatapp "github.com/OWNER/bothy/services/server/internal/chat/app"
	chatdomain "github.com/OWNER/bothy/services/server/internal/chat/domain"
	identityapp "github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/test/permissions"
)

func one[T any](rt *rapid.T, list []T, what string) T { return rapid.SampledFrom(list).Draw(rt, what) }

// drawActor is mostly the owner, who may, so that much is given.
func (s *stage) drawActor(rt *rapid.T) ids.ID {
	if rapid.IntRange(0, 2).Draw(rt, "by") > 0 {
		return s.owner
	}
	return one(rt, s.ofKind("person"), "by whom")
}

// few are the people who get most, so that what they were given meets.
func (s *stage) few() []ids.ID { return s.ofKind("person")[1:3] }

// drawGrant is a right that somebody might give.
func (s *stage) drawGrant(rt *rapid.T) *permissions.Grant {
	g := &permissions.Grant{Level: one(rt, []string{"read", "write", "trigger", "manage"}, "level")}
	// Few principals and much above the channels, so that grants meet each other.
	switch kind := rapid.IntRange(0, 5).Draw(rt, "target kind"); {
	case kind == 0:
		g.Target = permissions.Instance
	case kind < 3:
		g.Target = permissions.SpaceTarget(one(rt, s.world.Spaces, "space").ID)
	default:
		g.Target = permissions.ChannelTarget(one(rt, s.ordinary(), "channel").ID)
	}
	g.Capabilities = rapid.SliceOfNDistinct(rapid.SampledFrom(permissions.Capabilities), 0, 3, rapid.ID[string]).Draw(rt, "capabilities")
	slices.Sort(g.Capabilities)
	switch one(rt, []string{"few", "few", "group", "any"}, "subject kind") {
	case "few":
		g.Principal = one(rt, s.few(), "person")
	case "group":
		g.Group = one(rt, s.world.Groups, "group").ID
	default:
		g.Principal = one(rt, s.world.Principals, "subject").ID
	}
	if minutes := rapid.IntRange(-3, 6).Draw(rt, "ends"); minutes > 0 {
		g.Ends = s.clock.Now().Add(time.Duration(5*minutes) * time.Minute)
	}
	return g
}

// grantOf finds the one grant of a subject on a target.
func (s *stage) grantOf(g *permissions.Grant) *permissions.Grant {
	for _, other := range s.world.Grants {
		if other.Principal == g.Principal && other.Group == g.Group && other.Target == g.Target {
			return other
		}
	}
	return nil
}

// mayHandle says whether somebody may give or take a grant (AC-21).
func (s *stage) mayHandle(who ids.ID, g *permissions.Grant) bool {
	p := s.world.Principal(who)
	if p.Kind != "person" || !p.Active {
		return false
	}
	if p.Owner {
		return true
	}
	h := s.world.Held(who, g.Target)
	if g.Target == permissions.Instance || !h.AtLeast("manage") && !h.Has("members.manage") || !h.AtLeast(g.Level) {
		return false
	}
	for _, c := range g.Capabilities {
		if !h.Has(c) || slices.Contains(permissions.Named, c) {
			return false
		}
	}
	return true
}

func (s *stage) actGive(rt *rapid.T) {
	g, by := s.drawGrant(rt), s.drawActor(rt)
	in := authzapp.NewGrant{
		SubjectKind: authzapp.SubjectPrincipal, SubjectID: g.Principal, Level: g.Level, Capabilities: g.Capabilities, ExpiresAt: g.Ends,
		Target: authzdomain.Target{Kind: authzdomain.TargetKind(g.Target.Kind), ID: g.Target.ID},
	}
	if g.Principal.IsZero() {
		in.SubjectKind, in.SubjectID = authzapp.SubjectGroup, g.Group
	}
	old := s.grantOf(g)
	if old != nil {
		in.Replaces = old.ID
	}
	row, _, err := s.r.authz.service.CreateGrant(s.as(by), in)
	may := s.mayHandle(by, g) && (old == nil || s.mayHandle(by, old))
	if may && s.opens(rt, err, func() {
		if old != nil {
			s.forget(old)
		}
		g.ID = row.ID
		s.world.Grants = append(s.world.Grants, g)
	}) {
		return
	}
	if may != (err == nil) {
		rt.Fatalf("%v gives %+v in the place of %+v: may is %v, the answer %v", by, g, old, may, err)
	}
}

// opens makes a change on the model that production was asked for. A change that would open a
// personal agent must have been refused for that, and leaves the model as it was; no other may
// have been (AC-32).
func (s *stage) opens(rt *rapid.T, err error, change func()) (refused bool) {
	before := s.world.Clone()
	change()
	opened := s.world.Violations()
	refused = errs.Is(err, errs.CodeI1Violation)
	if refused != (len(opened) > 0) {
		rt.Fatalf("the change opens %+v, the answer %v", opened, err)
	}
	if refused {
		*s.world = *before
	}
	return refused
}

func (s *stage) forget(g *permissions.Grant) {
	s.world.Grants = slices.DeleteFunc(s.world.Grants, func(other *permissions.Grant) bool { return other == g })
}

func (s *stage) actTake(rt *rapid.T) {
	if len(s.world.Grants) == 0 {
		rt.Skip("nothing is given")
	}
	g, by := one(rt, s.world.Grants, "grant"), s.drawActor(rt)
	err := s.r.authz.service.RevokeGrant(s.as(by), g.ID)
	p := s.world.Principal(by)
	may := p.Active && (g.Principal == by || s.mayHandle(by, g))
	if may != (err == nil) {
		rt.Fatalf("%v takes %+v: may is %v, the answer %v", by, g, may, err)
	}
	if err == nil {
		s.forget(g)
	}
}

// leads says whether somebody may decide who is in a group.
func (s *stage) leads(who ids.ID, group ids.ID) bool {
	p := s.world.Principal(who)
	return p.Active && (p.Owner || slices.ContainsFunc(s.world.Memberships, func(m *permissions.Membership) bool {
		return m.Group == group && m.Principal == who && m.Manager && (m.Ends.IsZero() || m.Ends.After(s.world.Now))
	}))
}

func (s *stage) membership(group, who ids.ID) int {
	return slices.IndexFunc(s.world.Memberships, func(m *permissions.Membership) bool { return m.Group == group && m.Principal == who })
}

// actMember puts somebody into a group, for some time or for ever, or takes her out.
func (s *stage) actMember(rt *rapid.T) {
	if len(s.world.Groups) < 2 {
		rt.Skip("there is no group")
	}
	g, p, by := one(rt, s.world.Groups[1:], "group"), one(rt, s.world.Principals, "member"), s.drawActor(rt)
	if rapid.Bool().Draw(rt, "one of the few") {
		p = s.world.Principal(one(rt, s.few(), "member of the few"))
	}
	at := s.membership(g.ID, p.ID)
	if rapid.IntRange(0, 3).Draw(rt, "what") == 0 {
		err := s.r.authz.service.RemoveMember(s.as(by), g.ID, p.ID)
		may := at >= 0 && (s.leads(by, g.ID) || by == p.ID && s.world.Principal(by).Active)
		if may != (err == nil) {
			rt.Fatalf("%s takes %s out of a group: may is %v, the answer %v", s.who(by), s.who(p.ID), may, err)
		}
		if err == nil {
			s.world.Memberships = slices.Delete(s.world.Memberships, at, at+1)
		}
		return
	}
	m := &permissions.Membership{Group: g.ID, Principal: p.ID, Manager: rapid.IntRange(0, 3).Draw(rt, "manager") == 0}
	if minutes := rapid.IntRange(-2, 4).Draw(rt, "ends"); minutes > 0 {
		m.Ends = s.clock.Now().Add(time.Duration(5*minutes) * time.Minute)
	}
	role := map[bool]string{true: authzapp.RoleManager, false: authzapp.RoleMember}[m.Manager]
	_, _, err := s.r.authz.service.PutMember(s.as(by), g.ID, p.ID, authzapp.NewMember{Role: role, ExpiresAt: m.Ends})
	may := s.leads(by, g.ID)
	if may && s.opens(rt, err, func() {
		if at >= 0 {
			s.world.Memberships = slices.Delete(s.world.Memberships, at, at+1)
		}
		s.world.Memberships = append(s.world.Memberships, m)
	}) {
		return
	}
	if may != (err == nil) {
		rt.Fatalf("%s puts %s into a group: may is %v, the answer %v", s.who(by), s.who(p.ID), may, err)
	}
}

// actGroup makes a group or deletes one with everything it was given.
func (s *stage) actGroup(rt *rapid.T) {
	if len(s.world.Groups) < 4 && rapid.Bool().Draw(rt, "new") {
		s.addGroup(rt)
		return
	}
	if len(s.world.Groups) < 2 {
		rt.Skip("there is no group")
	}
	g := one(rt, s.world.Groups[1:], "group")
	got, err := s.r.authz.service.Group(s.as(s.owner), g.ID)
	must(rt, "read a group", err)
	must(rt, "delete a group", s.r.authz.service.DeleteGroup(s.as(s.owner), g.ID, got.Version))
	s.world.Groups = slices.DeleteFunc(s.world.Groups, func(other *permissions.Group) bool { return other == g })
	s.world.Grants = slices.DeleteFunc(s.world.Grants, func(other *permissions.Grant) bool { return other.Group == g.ID })
	s.world.Memberships = slices.DeleteFunc(s.world.Memberships, func(m *permissions.Membership) bool { return m.Group == g.ID })
}

// actPass lets time go by, so that grants and memberships end.
func (s *stage) actPass(rt *rapid.T) {
	s.clock.Advance(time.Duration(rapid.IntRange(1, 12).Draw(rt, "minutes")) * time.Minute)
	s.world.Now = s.clock.Now()
}

// over says whether something with that end counts no more.
func (s *stage) over(end time.Time) bool { return !end.IsZero() && !end.After(s.world.Now) }

// actSweep removes what has ended. Who is told is who would hold something else if nothing had
// ended yet, and only somebody whom what has ended was given to.
func (s *stage) actSweep(rt *rapid.T) {
	given := map[ids.ID]bool{}
	for _, g := range s.world.Grants {
		if !s.over(g.Ends) {
			continue
		}
		given[g.Principal] = true
		for _, p := range s.world.Principals {
			if s.membership(g.Group, p.ID) >= 0 || s.world.Member(p, g.Group) {
				given[p.ID] = true
			}
		}
	}
	for _, m := range s.world.Memberships {
		if s.over(m.Ends) {
			given[m.Principal] = true
		}
	}
	targets, never := s.world.Targets(), *s.world
	never.Now = time.Time{}
	before := pictureOf(&never, targets)
	must(rt, "remove what has ended", s.r.authz.service.ExpirySweep().Run(s.ctx))
	s.world.Grants = slices.DeleteFunc(s.world.Grants, func(g *permissions.Grant) bool { return s.over(g.Ends) })
	s.world.Memberships = slices.DeleteFunc(s.world.Memberships, func(m *permissions.Membership) bool { return s.over(m.Ends) })
	for id, v := range s.picture(targets) {
		if !given[id] {
			before[id] = v
		}
	}
	s.compareLog(rt, before, targets)
}

// actPerson disables, enables, or makes an owner or a guest of somebody.
func (s *stage) actPerson(rt *rapid.T) {
	p := s.world.Principal(one(rt, s.ofKind("person")[1:], "person"))
	owner := s.as(s.owner)
	version := func() int64 {
		v, err := s.r.identity.service.User(owner, p.ID)
		must(rt, "read the person", err)
		return v.Version
	}
	switch what := rapid.IntRange(0, 2).Draw(rt, "what"); {
	case what == 0 && p.Active:
		_, err := s.r.identity.service.DisableUser(owner, p.ID, version(), "")
		must(rt, "disable", err)
		p.Active, p.Owner = false, false // A disabled person is no owner any more (ID-52).
	case what == 0:
		_, err := s.r.identity.service.EnableUser(owner, p.ID, version())
		if !s.opens(rt, err, func() { p.Active = true }) {
			must(rt, "enable", err)
		}
	case what == 1 && p.Owner:
		must(rt, "take ownership", s.r.identity.service.RemoveOwner(owner, p.ID))
		p.Owner = false
	case what == 1 && p.Active && !p.Guest:
		must(rt, "give ownership", s.r.identity.service.AddOwner(owner, p.ID))
		p.Owner = true
	case !p.Owner:
		guest := identityapp.Change[bool]{Set: true, Value: !p.Guest}
		_, err := s.r.identity.service.UpdateUser(owner, p.ID, identityapp.UpdateUserInput{Version: version(), Guest: guest})
		if !s.opens(rt, err, func() { p.Guest = !p.Guest }) {
			must(rt, "make or unmake a guest", err)
		}
	default:
		rt.Skip("an owner is no guest")
	}
}

// actAgent disables or enables an agent, or lets a person pay for it by her own plan or the
// instance again.
func (s *stage) actAgent(rt *rapid.T) {
	p := s.world.Principal(one(rt, s.ofKind("agent"), "agent"))
	owner := s.as(s.owner)
	what := rapid.IntRange(0, 4).Draw(rt, "what")
	if what < 3 {
		billing := agentsdomain.Billing{BillingMode: agentsdomain.BillingLocal}
		if what < 2 {
			billing = agentsdomain.Billing{BillingMode: agentsdomain.BillingPersonal, HolderID: one(rt, s.ofKind("person"), "holder")}
			if !s.world.Principal(billing.HolderID).Active {
				rt.Skip("the holder is disabled")
			}
		}
		got, err := s.r.agents.service.Get(owner, p.ID)
		must(rt, "read an agent", err)
		_, err = s.r.agents.service.SetBillingMode(owner, p.ID, got.Version, billing)
		if !s.opens(rt, err, func() { p.Holder = billing.HolderID }) {
			must(rt, "change who pays", err)
		}
		return
	}
	if p.Active {
		_, err := s.r.agents.service.Disable(owner, p.ID)
		must(rt, "disable an agent", err)
		p.Active = false
		return
	}
	_, err := s.r.agents.service.Enable(owner, p.ID)
	if !s.opens(rt, err, func() { p.Active = true }) {
		must(rt, "enable an agent", err)
	}
}

func (s *stage) ordinary() []*permissions.Channel {
	return slices.DeleteFunc(slices.Clone(s.world.Channels), func(c *permissions.Channel) bool { return c.Direct })
}

// actChannel changes a channel: what it inherits, who answers, whether it takes writing, its end.
func (s *stage) actChannel(rt *rapid.T) {
	c := one(rt, s.ordinary(), "channel")
	if s.world.Archived(permissions.ChannelTarget(c.ID)) {
		rt.Skip("archived")
	}
	owner := s.as(s.owner)
	got, err := s.r.chat.channels.Get(owner, c.ID)
	must(rt, "read a channel", err)
	switch rapid.IntRange(0, 5).Draw(rt, "what") {
	case 0:
		inherits := !c.Inherits
		_, err = s.r.chat.channels.Update(owner, c.ID, got.Version, chatapp.ChannelPatch{Inherits: &inherits})
		if s.opens(rt, err, func() { c.Inherits = inherits }) {
			return
		}
	case 1, 2:
		agent := one(rt, s.ofKind("agent"), "operator")
		if !s.world.Principal(agent).Active {
			rt.Skip("the agent is disabled")
		}
		_, err = s.r.chat.channels.SetOperator(owner, c.ID, got.Version, chatdomain.OperatorOwn, agent)
		if s.opens(rt, err, func() { c.Operator = agent }) {
			return
		}
	case 3:
		_, err = s.r.chat.channels.SetOperator(owner, c.ID, got.Version, "none", ids.ID{})
		c.Operator = ids.ID{}
	case 4:
		c.ReadOnly = !c.ReadOnly
		source := map[bool]any{true: "manual", false: nil}[c.ReadOnly]
		s.unit(rt, txn.RightsChange{}, func(ctx context.Context, exec execute) error {
			if err := exec("UPDATE channels SET read_only = $2, read_only_source = $3 WHERE id = $1", c.ID, c.ReadOnly, source); err != nil {
				return err
			}
			e, err := s.channelEvent(ctx, "channel.updated", c.ID)
			if err != nil {
				return err
			}
			return s.r.sync.appender.Append(ctx, e)
		})
	default:
		_, err = s.r.chat.channels.Archive(owner, c.ID, got.Version)
		c.Archived = true
	}
	must(rt, "change a channel", err)
}

// actPlace makes a further channel or archives a whole space.
func (s *stage) actPlace(rt *rapid.T) {
	space := one(rt, s.world.Spaces, "space")
	if space.Archived {
		rt.Skip("archived")
	}
	if rapid.IntRange(0, 3).Draw(rt, "what") > 0 {
		if len(s.world.Channels) < 9 {
			s.addChannel(rt, space.ID, rapid.Bool().Draw(rt, "inherits"))
		}
		return
	}
	event := eventlog.Event{
		Type: "space.archived", Place: eventlog.Place{SpaceID: space.ID}, Resource: eventlog.Resource{Type: "space", ID: space.ID},
		Payload: map[string]any{"id": space.ID, "archived": map[string]any{"by": s.owner}},
	}
	s.write(rt, txn.RightsChange{Action: "space.archive", Targets: []txn.Target{{Kind: "space", ID: space.ID}}}, &event,
		"UPDATE spaces SET archived_at = now(), archived_by = $2 WHERE id = $1", space.ID, s.owner)
	space.Archived = true
}

// actDirect begins a conversation or lets somebody leave one.
func (s *stage) actDirect(rt *rapid.T) {
	direct := slices.DeleteFunc(slices.Clone(s.world.Channels), func(c *permissions.Channel) bool { return !c.Direct })
	if len(direct) < 4 && rapid.Bool().Draw(rt, "new") {
		people := rapid.SliceOfNDistinct(rapid.SampledFrom(s.ofKind("person")), 1, 3, rapid.ID[ids.ID]).Draw(rt, "people")
		var operator ids.ID
		if rapid.Bool().Draw(rt, "with an agent") {
			operator = one(rt, s.ofKind("agent"), "agent")
		}
		s.addDirect(rt, people, operator)
		return
	}
	c := one(rt, direct, "conversation")
	if len(c.Participants) == 0 {
		rt.Skip("everybody has left")
	}
	who := one(rt, c.Participants, "who")
	c.Participants = slices.DeleteFunc(c.Participants, func(id ids.ID) bool { return id == who })
	event := directEvent("channel.updated", c)
	s.write(rt, txn.RightsChange{Action: "dm.leave", Principals: []ids.ID{who}, Targets: []txn.Target{{Kind: "channel", ID: c.ID}}}, &event,
		"DELETE FROM model_participants WHERE channel_id = $1 AND principal_id = $2", c.ID, who)
}

// actCatchUp lets the process that acts read the log, as its tail does when it gets to it.
func (s *stage) actCatchUp(rt *rapid.T) {
	must(rt, "load the structure", s.r.authz.service.LoadStructure(s.ctx))
	_, err := s.follow(s.r.authz.service, 0)
	must(rt, "read the log", err)
}

// actRace writes on rights that change before the end: nothing that a change of rights forbids may
// stand behind it in the log (AC-14).
func (s *stage) actRace(rt *rapid.T) {
	var grants []*permissions.Grant
	for _, g := range s.world.Grants {
		if !g.Principal.IsZero() {
			grants = append(grants, g)
		}
	}
	if len(grants) == 0 {
		rt.Skip("nothing is given")
	}
	g, c := one(rt, grants, "grant"), one(rt, s.ordinary(), "channel")
	r := authorize.Thread(ids.New(), c.ID)
	q := permissions.Question{Action: authorize.ActionMessageCreate, Resource: r, Caller: g.Principal, Fresh: true}
	before := s.world.Decide(q).Code == ""
	attempts := 0
	err := s.r.units.Do(s.as(g.Principal), func(ctx context.Context) error {
		attempts++
		if err := s.r.authz.service.Authorize(ctx, q.Action, r); err != nil {
			return err
		}
		if attempts == 1 {
			if err := s.r.authz.service.RevokeGrant(s.as(s.owner), g.ID); err != nil {
				return err
			}
			s.forget(g)
		}
		event, err := s.channelEvent(s.as(s.owner), "channel.updated", c.ID)
		if err != nil {
			return err
		}
		return s.r.sync.appender.Append(ctx, event)
	})
	if want := before && s.world.Decide(q).Code == ""; want != (err == nil) {
		rt.Fatalf("a write behind a revocation: %v after %d attempts, the model says %v (%v)", err, attempts, want, errs.As(err))
	}
	if before && attempts != 2 {
		rt.Fatalf("a write that was overtaken ran %d times", attempts)
	}
}
