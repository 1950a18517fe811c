// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

func newGrant(subject ids.ID, kind string, target ids.ID, level string, caps ...string) app.NewGrant {
	return app.NewGrant{
		SubjectKind: app.SubjectPrincipal, SubjectID: subject,
		Target: domain.Target{Kind: domain.TargetKind(kind), ID: target}, Level: level, Capabilities: caps,
	}
}

func TestDecisionsFollowTheOrderOfChecks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.give(b.ana, b.space, "space", "write", "threads.create")
	b.give(b.ben, b.space, "space", "read")
	thread := func(channel ids.ID) authorize.Resource { return authorize.Thread(ids.New(), channel) }
	token := func(p ids.ID, scopes ...string) context.Context {
		return actor.With(context.Background(), actor.Actor{ID: p, Kind: actor.KindPerson, TokenID: ids.New(), Scopes: scopes})
	}
	stale := actor.With(context.Background(), actor.Actor{ID: b.owner, Kind: actor.KindPerson, SessionID: ids.New()})
	inactive := b.person(authz.Principal{Kind: actor.KindPerson})
	for name, c := range map[string]struct {
		ctx    context.Context
		action authorize.Action
		r      authorize.Resource
		code   errs.Code
		reason string
	}{
		"a writer writes":              {b.as(b.ana), authorize.ActionMessageCreate, thread(b.open), "", ""},
		"behind a barrier is nothing":  {b.as(b.ana), authorize.ActionMessageCreate, thread(b.closed), errs.CodeNotFound, ""},
		"an owner passes barriers":     {b.as(b.owner), authorize.ActionMessageCreate, thread(b.closed), "", ""},
		"a reader does not write":      {b.as(b.ben), authorize.ActionMessageCreate, thread(b.open), errs.CodeForbidden, "level_insufficient"},
		"a capability is asked for":    {b.as(b.ana), authorize.ActionThreadCreate, authorize.Channel(b.open), "", ""},
		"a missing thing":              {b.as(b.ana), authorize.ActionChannelRead, authorize.Channel(ids.New()), errs.CodeNotFound, ""},
		"an agent is no person":        {b.as(b.helper), authorize.ActionSpaceCreate, authorize.Instance(), errs.CodeForbidden, "subject_kind_not_allowed"},
		"owner only":                   {b.as(b.ana), authorize.ActionInstanceSettingsRead, authorize.Instance(), errs.CodeForbidden, "not_owner"},
		"a token without the scope":    {token(b.ana, "chat.read"), authorize.ActionMessageCreate, thread(b.open), errs.CodeScopeMissing, ""},
		"a token with the scope":       {token(b.ana, "messaging.write"), authorize.ActionMessageCreate, thread(b.open), "", ""},
		"a token reaches no session":   {token(b.owner, "agents.admin"), authorize.ActionAgentCreate, authorize.Resource{Kind: authorize.ResourceAgent}, errs.CodeScopeMissing, ""},
		"only owners make agents":      {b.as(b.ana), authorize.ActionAgentCreate, authorize.Resource{Kind: authorize.ResourceAgent}, errs.CodeForbidden, "not_owner"},
		"no proof, no new agent":       {stale, authorize.ActionAgentEnable, authorize.Resource{Kind: authorize.ResourceAgent, ID: b.helper}, errs.CodeStepUpRequired, ""},
		"nobody is anonymous":          {context.Background(), authorize.ActionChannelRead, authorize.Channel(b.open), errs.CodeUnauthenticated, ""},
		"everybody may discover":       {context.Background(), authorize.ActionInstanceDiscoveryRead, authorize.Instance(), "", ""},
		"the disabled are signed out":  {b.as(inactive), authorize.ActionInstanceRead, authorize.Instance(), errs.CodeUnauthenticated, ""},
		"one's own run":                {b.as(b.helper), authorize.ActionRunUpdate, authorize.Resource{Kind: authorize.ResourceRun, ID: ids.New(), ChannelID: b.open, OwnerID: b.helper}, "", ""},
		"another agent's run":          {b.as(b.helper), authorize.ActionRunUpdate, authorize.Resource{Kind: authorize.ResourceRun, ID: ids.New(), ChannelID: b.open, OwnerID: ids.New()}, errs.CodeNotFound, ""},
		"an action nobody knows":       {b.as(b.ana), "nothing.do", authorize.Instance(), errs.CodeInternal, ""},
		"the system does its own only": {actor.With(context.Background(), actor.System()), authorize.ActionMessageCreate, thread(b.open), errs.CodeForbidden, "subject_kind_not_allowed"},
	} {
		ctx, log := authorize.WithCheckLog(c.ctx)
		err := b.svc.Authorize(ctx, c.action, c.r)
		t.Run(name, func(t *testing.T) { wantCode(t, err, c.code, c.reason) })
		if log.Covers(c.action) != (c.code == "") {
			t.Errorf("%s: the check log does not tell the outcome", name)
		}
	}
}

func TestReadOnlyAndArchivedPlacesTakeNoWrites(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.places.channels[0].ReadOnly = true
	b.places.channels[1].Archived = true
	wantCode(t, b.svc.Authorize(b.as(b.owner), authorize.ActionMessageCreate, authorize.Thread(ids.New(), b.open)), errs.CodeChannelReadOnly, "")
	wantCode(t, b.svc.Authorize(b.as(b.owner), authorize.ActionMessageCreate, authorize.Thread(ids.New(), b.closed)), errs.CodeForbidden, "target_archived")
	wantCode(t, b.svc.Authorize(b.as(b.owner), authorize.ActionMessageDelete, authorize.Message(ids.New(), b.open, b.ana)), "", "")
	wantCode(t, b.svc.Authorize(b.as(b.owner), authorize.ActionReadStateUpdate, authorize.Thread(ids.New(), b.closed)), "", "")
	wantCode(t, b.svc.Authorize(b.as(b.owner), authorize.ActionChannelUpdate, authorize.Channel(b.open)), "", "")
}

func TestAnAgentOnAnOrderHasNoMoreThanThePerson(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.give(b.helper, b.space, "space", "write")
	b.give(b.ana, b.space, "space", "read")
	ctx := actor.With(context.Background(), actor.Actor{
		ID: b.helper, Kind: actor.KindAgent, TokenID: ids.New(), Scopes: []string{"messaging.write", "messaging.read", "chat.read"},
		ActingFor: &actor.ActingFor{PrincipalID: b.ana, RunID: ids.New()},
	})
	wantCode(t, b.svc.Authorize(ctx, authorize.ActionMessageRead, authorize.Message(ids.New(), b.open, b.ana)), "", "")
	wantCode(t, b.svc.Authorize(ctx, authorize.ActionMessageCreate, authorize.Thread(ids.New(), b.open)), errs.CodeForbidden, "acting_for_limited")
	scope, err := b.svc.Scope(ctx, authorize.ActionChannelRead)
	if err != nil || len(scope.Spaces) != 1 {
		t.Fatalf("scope %+v, %v", scope, err)
	}
	b.give(b.helper, b.closed, "channel", "write")
	wantCode(t, b.svc.Authorize(ctx, authorize.ActionMessageRead, authorize.Message(ids.New(), b.closed, b.ana)), errs.CodeForbidden, "acting_for_limited")
	if scope, err = b.svc.Scope(ctx, authorize.ActionChannelRead); err != nil || slices.Contains(scope.Channels, b.closed) {
		t.Fatalf("scope %+v, %v", scope, err)
	}
}

func TestAPersonalAgentObeysItsHolderAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.agents[b.helper] = authz.AgentPolicy{AgentID: b.helper, BillingMode: "personal", HolderID: b.ana, Active: true}
	b.give(b.ana, b.space, "space", "trigger")
	b.give(b.ben, b.space, "space", "trigger")
	r := authorize.Resource{Kind: authorize.ResourceAgent, ID: b.helper, ChannelID: b.open}
	wantCode(t, b.svc.Authorize(b.as(b.ana), authorize.ActionAgentInvoke, r), "", "")
	wantCode(t, b.svc.Authorize(b.as(b.ben), authorize.ActionAgentInvoke, r), errs.CodeForbidden, "i1_personal")
	wantCode(t, b.svc.Authorize(b.as(b.owner), authorize.ActionAgentInvoke, r), errs.CodeForbidden, "i1_personal")
}

func TestHiddenAndMissingAreTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.give(b.ben, b.space, "space", "read")
	hiddenGrant := b.give(b.ana, b.closed, "channel", "read")
	for name, load := range map[string]bool{"places in memory": true, "places not in memory": false} {
		if load {
			if err := b.svc.LoadStructure(context.Background()); err != nil {
				t.Fatal(err)
			}
			b.observe(b.svc)
		}
		ask := func(action authorize.Action, r authorize.Resource, inUnit bool) (error, []string) {
			ctx := b.as(b.ben)
			_ = b.svc.Authorize(ctx, authorize.ActionChannelRead, authorize.Channel(b.open)) // Warm.
			b.places.taken()
			if !inUnit {
				return b.svc.Authorize(ctx, action, r), b.places.taken()
			}
			err := b.units.Do(ctx, func(ctx context.Context) error { return b.svc.Authorize(ctx, action, r) })
			return err, b.places.taken()
		}
		for _, c := range []struct {
			action          authorize.Action
			hidden, missing authorize.Resource
			unit            bool
		}{
			{authorize.ActionChannelRead, authorize.Channel(b.closed), authorize.Channel(ids.New()), false},
			{authorize.ActionMessageCreate, authorize.Thread(ids.New(), b.closed), authorize.Thread(ids.New(), ids.New()), true},
		} {
			errHidden, hidden := ask(c.action, c.hidden, c.unit)
			errMissing, missing := ask(c.action, c.missing, c.unit)
			if !reflect.DeepEqual(errs.As(errHidden), errs.As(errMissing)) || !errs.Is(errHidden, errs.CodeNotFound) {
				t.Errorf("%s, %s: hidden %v, missing %v", name, c.action, errHidden, errMissing)
			}
			if !slices.Equal(hidden, missing) {
				t.Errorf("%s, %s: a hidden place asks %v, a missing one %v", name, c.action, hidden, missing)
			}
		}
	}
	_, errHidden := b.svc.Grant(b.as(b.ben), hiddenGrant.ID)
	_, errMissing := b.svc.Grant(b.as(b.ben), ids.New())
	if !reflect.DeepEqual(errs.As(errHidden), errs.As(errMissing)) {
		t.Errorf("grants: hidden %v, missing %v", errHidden, errMissing)
	}
}

func TestGrantsAreGivenReplacedAndTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.give(b.ana, b.space, "space", "read")
	_, _, err := b.svc.CreateGrant(b.as(b.owner), newGrant(b.ana, "space", b.space, "write"))
	wantCode(t, err, errs.CodeConflict, "grant_exists")
	if got := errs.As(err).Extensions["grant_id"]; got != first.ID {
		t.Errorf("the conflict names %v", got)
	}
	in := newGrant(b.ana, "space", b.space, "write", "files.upload")
	in.Replaces = first.ID
	second, version, err := b.svc.CreateGrant(b.as(b.owner), in)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := b.inst.Current(context.Background(), instance.CounterPermissionVersion); v != version || v != 2 {
		t.Errorf("version %d, the answer said %d", v, version)
	}
	access, err := b.svc.AccessOf(b.as(b.ana), []ids.ID{b.space, b.open, b.closed})
	if err != nil || access[b.open].Level != authorize.LevelWrite || !slices.Equal(access[b.open].Capabilities, []authorize.Capability{authorize.CapFilesUpload}) {
		t.Errorf("access %+v, %v", access, err)
	}
	if _, visible := access[b.closed]; visible {
		t.Error("the channel behind the barrier shows")
	}
	if err := b.svc.RevokeGrant(b.as(b.ana), second.ID); err != nil {
		t.Errorf("giving up a right: %v", err)
	}
	wantCode(t, b.svc.Authorize(b.as(b.ana), authorize.ActionChannelRead, authorize.Channel(b.open)), errs.CodeNotFound, "")
	var types []string
	for _, e := range b.log.all() {
		types = append(types, e.Type)
	}
	want := []string{"access.changed", "grant.changed", "access.changed", "grant.changed", "access.changed", "grant.changed"}
	if !slices.Equal(types, want) {
		t.Errorf("events %v", types)
	}
	last := (*b.changes)[len(*b.changes)-1]
	if last.Action != authorize.ActionGrantRevoke || len(last.Principals) != 1 || len(last.Principals[0].Lost) != 1 {
		t.Errorf("published %+v", last)
	}
}

func TestNobodyGivesMoreThanSheHas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.give(b.ana, b.space, "space", "write", "members.manage")
	manager := b.give(b.owner, b.space, "space", "manage")
	_, _, err := b.svc.CreateGrant(b.as(b.ana), newGrant(b.ben, "space", b.space, "write"))
	wantCode(t, err, "", "")
	_, _, err = b.svc.CreateGrant(b.as(b.ana), newGrant(b.ben, "channel", b.open, "trigger"))
	wantCode(t, err, errs.CodeForbidden, "level_insufficient")
	_, _, err = b.svc.CreateGrant(b.as(b.ana), newGrant(b.ben, "instance", ids.ID{}, "read"))
	wantCode(t, err, errs.CodeForbidden, "level_insufficient")
	wantCode(t, b.svc.RevokeGrant(b.as(b.ana), manager.ID), errs.CodeForbidden, "level_insufficient")
	_, _, err = b.svc.CreateGrant(b.as(b.ben), newGrant(b.ben, "channel", b.open, "read"))
	wantCode(t, err, errs.CodeForbidden, "level_insufficient")
	weak := actor.With(context.Background(), actor.Actor{ID: b.owner, Kind: actor.KindPerson, SessionID: ids.New()})
	_, _, err = b.svc.CreateGrant(weak, newGrant(b.ben, "channel", b.open, "manage"))
	wantCode(t, err, errs.CodeStepUpRequired, "")
	if len(b.audit.denied) < 4 {
		t.Errorf("%d denials were recorded", len(b.audit.denied))
	}
}

func TestAGrantEndsAtItsTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.give(b.ana, b.space, "space", "read")
	r := authorize.Channel(b.open)
	wantCode(t, b.svc.Authorize(b.as(b.ana), authorize.ActionChannelRead, r), "", "")
	b.db.Exec(t, "UPDATE grants SET expires_at = now() + interval '150 milliseconds' WHERE id = $1", g.ID)
	fresh := b.newService()
	wantCode(t, fresh.Authorize(b.as(b.ana), authorize.ActionChannelRead, r), "", "")
	deadline := time.Now().Add(5 * time.Second)
	for fresh.Authorize(b.as(b.ana), authorize.ActionChannelRead, r) == nil {
		if time.Now().After(deadline) {
			t.Fatal("the grant does not end")
		}
	}
}

func TestTheGroupOfAllMembersIsComputed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	guest := b.person(authz.Principal{Kind: actor.KindPerson, Active: true, Guest: true})
	err := b.units.Do(b.as(b.owner), func(ctx context.Context) error {
		first, err := b.svc.CreateEveryone(ctx)
		if err != nil {
			return err
		}
		if again, err := b.svc.CreateEveryone(ctx); err != nil || again != first {
			return errors.Join(err, errors.New("made twice"))
		}
		return b.svc.GrantEveryone(ctx, authz.Target{Kind: "space", ID: b.space}, authorize.LevelTrigger, []authorize.Capability{authorize.CapFilesUpload})
	}, txn.WithRightsChange(txn.RightsChange{Action: "instance.bootstrap", Everyone: true}))
	if err != nil {
		t.Fatal(err)
	}
	for p, visible := range map[ids.ID]bool{b.ana: true, b.ben: true, guest: false, b.helper: false} {
		access, err := b.svc.PrincipalAccess(context.Background(), p, b.open)
		if err != nil || (access.Level == authorize.LevelTrigger) != visible {
			t.Errorf("%v: %+v, %v", p, access, err)
		}
	}
	holders, err := b.svc.WithTrigger(context.Background(), b.open)
	if err != nil || len(holders) != 3 || slices.Contains(holders, guest) {
		t.Errorf("with trigger %v, %v", holders, err)
	}
	if taken, err := b.svc.HandleTaken(context.Background(), "everyone"); err != nil || !taken {
		t.Errorf("handle taken %v, %v", taken, err)
	}
	groups, more, err := b.svc.Groups(b.as(b.ana), app.GroupQuery{Limit: 10})
	if err != nil || more || len(groups) != 1 || groups[0].MyRole != "member" {
		t.Errorf("groups %+v, %v", groups, err)
	}
	if groups, _, err = b.svc.Groups(b.as(guest), app.GroupQuery{Limit: 10}); err != nil || len(groups) != 0 {
		t.Errorf("groups of a guest %+v, %v", groups, err)
	}
}

// A unit whose rights change between its decision and the end is repeated and then refused.
func TestAWriteBehindARevocationIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.give(b.ana, b.space, "space", "write")
	attempts := 0
	err := b.units.Do(b.as(b.ana), func(ctx context.Context) error {
		attempts++
		if err := b.svc.Authorize(ctx, authorize.ActionMessageCreate, authorize.Thread(ids.New(), b.open)); err != nil {
			return err
		}
		if attempts == 1 {
			if err := b.svc.RevokeGrant(b.as(b.owner), g.ID); err != nil {
				return err
			}
		}
		return b.log.Append(ctx, eventlog.Event{Type: "message.created"})
	})
	if attempts != 2 {
		t.Errorf("%d attempts", attempts)
	}
	wantCode(t, err, errs.CodeNotFound, "")
	for _, e := range b.log.all() {
		if e.Type == "message.created" {
			t.Error("the message stands in the log")
		}
	}
}

func TestDeliveryFollowsTheLogWithoutQueries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.give(b.ben, b.space, "space", "read")
	admit := func(version int64) authorize.Verdict {
		return b.svc.Admit(b.ana, authorize.ActionMessageRead, authorize.Message(ids.New(), b.open, b.ben), version)
	}
	if got := admit(1); got != authorize.Unknown {
		t.Errorf("before anything is known: %v", got)
	}
	if err := b.svc.LoadStructure(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.svc.Fill(ctx, b.ana); err != nil {
		t.Fatal(err)
	}
	seen := len(b.log.all())
	if got := admit(1); got != authorize.Denied {
		t.Errorf("without a grant: %v", got)
	}
	g := b.give(b.ana, b.space, "space", "read")
	if got := admit(2); got != authorize.Unknown {
		t.Errorf("behind the log: %v", got)
	}
	b.places.taken()
	next := func() {
		for _, e := range b.log.all()[seen:] {
			b.svc.Observe(ctx, e)
			seen++
		}
	}
	next()
	if got := admit(2); got != authorize.Admitted {
		t.Errorf("after the grant: %v", got)
	}
	if err := b.svc.RevokeGrant(b.as(b.owner), g.ID); err != nil {
		t.Fatal(err)
	}
	b.places.taken()
	next()
	if got := admit(3); got != authorize.Denied {
		t.Errorf("after the revocation: %v", got)
	}
	if asked := b.places.taken(); len(asked) > 0 {
		t.Errorf("the way of events asked %v", asked)
	}
	// A channel made later is delivered to who reads its space.
	g = b.give(b.ana, b.space, "space", "read")
	next()
	made := ids.New()
	b.svc.Observe(ctx, authorize.Observed{
		Type: "channel.created", PermissionVersion: 4,
		Payload: []byte(`{"id":"` + made.String() + `","kind":"text","space_id":"` + b.space.String() + `","inherits":true,"read_only":null,"archived":null,"operator":{"agent_id":null}}`),
	})
	if got := b.svc.Admit(b.ana, authorize.ActionChannelRead, authorize.Channel(made), 4); got != authorize.Admitted {
		t.Errorf("a new channel: %v", got)
	}
	scope, ok := b.svc.Visible(b.ana)
	if !ok || !slices.Equal(scope.Spaces, []ids.ID{b.space}) {
		t.Errorf("visible %+v %v", scope, ok)
	}
	b.svc.Release(b.ana)
	_ = g
}

// Whatever happens to grants, a process that only followed the log and one that has just
// started decide the same.
func TestFollowingTheLogEqualsReadingAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	follower := b.newService()
	if err := follower.LoadStructure(ctx); err != nil {
		t.Fatal(err)
	}
	for _, p := range []ids.ID{b.ana, b.ben, b.helper} {
		if err := follower.Fill(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	targets := []struct {
		kind string
		id   ids.ID
	}{{"instance", ids.ID{}}, {"space", b.space}, {"channel", b.open}, {"channel", b.closed}}
	held := map[[2]int]ids.ID{}
	seen := 0
	seed := uint32(7)
	random := func(n int) int { seed = seed*1664525 + 1013904223; return int(seed>>8) % n }
	people := []ids.ID{b.ana, b.ben, b.helper}
	for step := range 60 {
		p, at := random(len(people)), random(len(targets))
		key := [2]int{p, at}
		if old, ok := held[key]; ok && random(2) == 0 {
			if err := b.svc.RevokeGrant(b.as(b.owner), old); err != nil {
				t.Fatal(err)
			}
			delete(held, key)
		} else {
			in := newGrant(people[p], targets[at].kind, targets[at].id, []string{"read", "write", "trigger", "manage"}[random(4)])
			if random(2) == 0 {
				in.Capabilities = []string{"files.upload", "export"}[:1+random(2)]
			}
			in.Replaces = old
			g, _, err := b.svc.CreateGrant(b.as(b.owner), in)
			if err != nil {
				t.Fatal(err)
			}
			held[key] = g.ID
		}
		for _, e := range b.log.all()[seen:] {
			follower.Observe(ctx, e)
			seen++
		}
		fresh := b.newService()
		if err := fresh.LoadStructure(ctx); err != nil {
			t.Fatal(err)
		}
		version, err := b.inst.Current(ctx, instance.CounterPermissionVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range people {
			if err := fresh.Fill(ctx, who); err != nil {
				t.Fatal(err)
			}
			for _, place := range []ids.ID{b.open, b.closed} {
				for _, action := range []authorize.Action{authorize.ActionMessageRead, authorize.ActionMessageCreate, authorize.ActionThreadCreate} {
					r := authorize.Message(ids.New(), place, ids.New())
					got, want := follower.Admit(who, action, r, version), fresh.Admit(who, action, r, version)
					if got != want {
						t.Fatalf("step %d: %s by %v: followed %v, read %v", step, action, who, got, want)
					}
				}
			}
		}
	}
}

// AuthorizeCached is the cost of a decision for a read whose rights are in memory.
func BenchmarkAuthorizeCached(bench *testing.B) {
	b := setup(bench)
	b.give(b.ana, b.space, "space", "write")
	if err := b.svc.LoadStructure(context.Background()); err != nil {
		bench.Fatal(err)
	}
	b.observe(b.svc)
	ctx := app.WithRequest(b.as(b.ana))
	r := authorize.Thread(ids.New(), b.open)
	bench.ReportAllocs()
	for bench.Loop() {
		if err := b.svc.Authorize(ctx, authorize.ActionMessageCreate, r); err != nil {
			bench.Fatal(err)
		}
	}
}

// Admit is the cost of one decision of the hub.
func BenchmarkAdmit(bench *testing.B) {
	b := setup(bench)
	b.give(b.ana, b.space, "space", "write")
	if err := b.svc.LoadStructure(context.Background()); err != nil {
		bench.Fatal(err)
	}
	if err := b.svc.Fill(context.Background(), b.ana); err != nil {
		bench.Fatal(err)
	}
	b.observe(b.svc)
	r := authorize.Thread(ids.New(), b.open)
	bench.ReportAllocs()
	for bench.Loop() {
		if b.svc.Admit(b.ana, authorize.ActionMessageRead, r, 1) != authorize.Admitted {
			bench.Fatal("denied")
		}
	}
}

func TestAnOrderThatIsOverAllowsItsEndAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.give(b.helper, b.space, "space", "write")
	b.give(b.ana, b.space, "space", "write")
	order := func(ended bool) context.Context {
		return actor.With(context.Background(), actor.Actor{
			ID: b.helper, Kind: actor.KindAgent, TokenID: ids.New(), Scopes: []string{"messaging.write", "messaging.read", "chat.read", "runs.write"},
			ActingFor: &actor.ActingFor{PrincipalID: b.ana, RunID: ids.New(), Ended: ended},
		})
	}
	thread := authorize.Thread(ids.New(), b.open)
	wantCode(t, b.svc.Authorize(order(false), authorize.ActionMessageCreate, thread), "", "")
	wantCode(t, b.svc.Authorize(order(true), authorize.ActionMessageCreate, thread), errs.CodeForbidden, "invocation_token_invalid")
	if _, err := b.svc.Scope(order(true), authorize.ActionChannelRead); !errs.Is(err, errs.CodeForbidden) {
		t.Errorf("a list on an order that is over: %v", err)
	}
}
