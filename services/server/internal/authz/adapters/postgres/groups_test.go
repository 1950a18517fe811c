// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// group makes one with members, and gives it a level on the space.
func (b *bundle) group(handle, level string, members ...ids.ID) app.GroupRow {
	b.t.Helper()
	g, err := b.svc.CreateGroup(b.as(b.owner), app.NewGroup{Name: handle, Handle: handle, Mentionable: true})
	if err != nil {
		b.t.Fatalf("make a group: %v", err)
	}
	for _, m := range members {
		b.join(g, m, app.NewMember{})
	}
	if level != "" {
		in := newGrant(g.ID, "space", b.space, level)
		in.SubjectKind = app.SubjectGroup
		if _, _, err := b.svc.CreateGrant(b.as(b.owner), in); err != nil {
			b.t.Fatalf("give the group %s: %v", level, err)
		}
	}
	return g
}

func (b *bundle) join(g app.GroupRow, member ids.ID, in app.NewMember) {
	b.t.Helper()
	if _, _, err := b.svc.PutMember(b.as(b.owner), g.ID, member, in); err != nil {
		b.t.Fatalf("add a member: %v", err)
	}
}

// told lists whom events behind a position told of their rights.
func (b *bundle) told(since int) []ids.ID {
	var out []ids.ID
	for _, e := range b.log.all()[since:] {
		if e.Type == app.EventAccessChanged {
			out = append(out, e.PrincipalID)
		}
	}
	return out
}

func TestMembersHaveTheRightsOfTheirGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.group("staff", "write", b.ana)
	thread := authorize.Thread(ids.New(), b.open)
	wantCode(t, b.svc.Authorize(b.as(b.ana), authorize.ActionMessageCreate, thread), "", "")
	wantCode(t, b.svc.Authorize(b.as(b.ben), authorize.ActionMessageCreate, thread), errs.CodeNotFound, "")

	since := len(b.log.all())
	b.join(g, b.ben, app.NewMember{})
	if told := b.told(since); !slices.Equal(told, []ids.ID{b.ben}) {
		t.Errorf("told %v of the new member, want her alone", told)
	}
	wantCode(t, b.svc.Authorize(b.as(b.ben), authorize.ActionMessageCreate, thread), "", "")
	if err := b.svc.RemoveMember(b.as(b.ben), g.ID, b.ben); err != nil {
		t.Errorf("leave a group: %v", err)
	}
	wantCode(t, b.svc.Authorize(b.as(b.ben), authorize.ActionMessageCreate, thread), errs.CodeNotFound, "")

	since = len(b.log.all())
	if err := b.svc.DeleteGroup(b.as(b.owner), g.ID, 1); err != nil {
		t.Fatal(err)
	}
	if told := b.told(since); !slices.Equal(told, []ids.ID{b.ana}) {
		t.Errorf("told %v of the end of the group, want its member alone", told)
	}
	if n := b.db.Count(t, "SELECT (SELECT count(*) FROM grants) + (SELECT count(*) FROM group_memberships)"); n != 0 {
		t.Errorf("%d grants and memberships of the group are left", n)
	}
	wantCode(t, b.svc.Authorize(b.as(b.ana), authorize.ActionMessageCreate, thread), errs.CodeNotFound, "")
	last := (*b.changes)[len(*b.changes)-1]
	if last.Action != authorize.ActionGroupDelete || len(last.Principals) != 1 || last.Principals[0].Lost[0].ID != b.space {
		t.Errorf("published %+v", last)
	}
}

// Who is already entitled otherwise hears nothing of a target, but a guest must learn that the
// group has become visible.
func TestAMembershipThatOpensNothingNamesNoTarget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.give(b.ana, b.space, "space", "write")
	g := b.group("readers", "read")
	guest := b.person(authz.Principal{Kind: actor.KindPerson, Active: true, Guest: true})
	before := len(*b.changes)
	b.join(g, b.ana, app.NewMember{})
	if len(*b.changes) != before {
		t.Errorf("published %+v although no right has changed", (*b.changes)[before:])
	}
	if _, err := b.svc.Group(b.as(guest), g.ID); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("a guest reads a group of others: %v", err)
	}
	b.join(g, guest, app.NewMember{})
	d, err := b.svc.Group(b.as(guest), g.ID)
	if err != nil || d.MyRole != app.RoleMember || d.Members != 2 || d.Grants != 1 {
		t.Errorf("the group of a guest %+v, %v", d, err)
	}
	// The same decision on the way of an event, from memory alone.
	process := b.newService()
	if err := process.LoadStructure(context.Background()); err != nil {
		t.Fatal(err)
	}
	other := b.group("others", "")
	b.observe(process)
	if err := process.Fill(context.Background(), guest); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[ids.ID]authorize.Verdict{g.ID: authorize.Admitted, other.ID: authorize.Denied} {
		if got := process.Admit(guest, authorize.ActionGroupRead, authorize.Resource{Kind: authorize.ResourceGroup, ID: id}, 0); got != want {
			t.Errorf("an event of %s is %v for the guest, want %v", id, got, want)
		}
	}
	b.join(other, guest, app.NewMember{})
	b.observe(process)
	if got := process.Admit(guest, authorize.ActionGroupRead, authorize.Resource{Kind: authorize.ResourceGroup, ID: other.ID}, 0); got != authorize.Admitted {
		t.Errorf("the log has not told memory of the new group: %v", got)
	}
}

func TestGroupsAreChangedByThoseWhoMay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.group("staff", "", b.ana, b.ben)
	b.join(g, b.ana, app.NewMember{Role: app.RoleManager})
	claimed, err := b.svc.CreateGroup(b.as(b.owner), app.NewGroup{Name: "It", Handle: "it", ProviderID: ids.New(), ClaimValue: "it"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := b.everyone()
	if err != nil {
		t.Fatal(err)
	}
	strong := b.group("admins", "manage")
	b.join(strong, b.ana, app.NewMember{Role: app.RoleManager})
	stale := actor.With(context.Background(), actor.Actor{ID: b.ana, Kind: actor.KindPerson, SessionID: ids.New()})
	name := "New"
	put := func(ctx context.Context, group, p ids.ID) error {
		_, _, err := b.svc.PutMember(ctx, group, p, app.NewMember{})
		return err
	}
	update := func(ctx context.Context, group ids.ID, c app.GroupChange) error {
		_, err := b.svc.UpdateGroup(ctx, group, c)
		return err
	}
	create := func(ctx context.Context, in app.NewGroup) error { _, err := b.svc.CreateGroup(ctx, in); return err }
	missing := ids.New()
	handle := "all-of-us"
	for what, c := range map[string]struct {
		err    error
		code   errs.Code
		reason string
	}{
		"a manager adds":                    {put(b.as(b.ana), g.ID, b.helper), "", ""},
		"a member does not":                 {put(b.as(b.ben), g.ID, b.helper), errs.CodeForbidden, "not_owner"},
		"a manager renames nothing":         {update(b.as(b.ana), g.ID, app.GroupChange{Version: 1, Name: &name}), errs.CodeForbidden, "not_owner"},
		"a member does not remove another":  {b.svc.RemoveMember(b.as(b.ben), g.ID, b.ana), errs.CodeForbidden, "not_owner"},
		"nobody leaves what she is not in":  {b.svc.RemoveMember(b.as(b.ben), strong.ID, b.ben), errs.CodeNotFound, ""},
		"an agent changes no group":         {put(b.as(b.helper), g.ID, b.ben), errs.CodeForbidden, "subject_kind_not_allowed"},
		"a missing group":                   {put(b.as(b.owner), missing, b.ben), errs.CodeNotFound, ""},
		"a missing group for a member":      {put(b.as(b.ben), missing, b.ben), errs.CodeForbidden, "not_owner"},
		"a missing member":                  {put(b.as(b.owner), g.ID, missing), errs.CodeNotFound, ""},
		"an old version":                    {update(b.as(b.owner), g.ID, app.GroupChange{Version: 7, Name: &name}), errs.CodeVersionConflict, ""},
		"an old version, deleting":          {b.svc.DeleteGroup(b.as(b.owner), g.ID, 7), errs.CodeVersionConflict, ""},
		"members by claim":                  {put(b.as(b.owner), claimed.ID, b.ben), errs.CodeConflict, "managed_by_claims"},
		"members by claim, removing":        {b.svc.RemoveMember(b.as(b.owner), claimed.ID, b.ben), errs.CodeConflict, "managed_by_claims"},
		"everybody is in the group of all":  {put(b.as(b.owner), all, b.ben), errs.CodeConflict, "system_group"},
		"the group of all stays":            {b.svc.DeleteGroup(b.as(b.owner), all, 1), errs.CodeConflict, "system_group"},
		"the group of all keeps its handle": {update(b.as(b.owner), all, app.GroupChange{Version: 1, Handle: &handle}), errs.CodeConflict, "system_group"},
		"a handle of a group":               {create(b.as(b.owner), app.NewGroup{Name: "x", Handle: "staff"}), errs.CodeConflict, "handle_taken"},
		"a handle of a person":              {create(b.as(b.owner), app.NewGroup{Name: "x", Handle: "ana"}), errs.CodeConflict, "handle_taken"},
		"a reserved handle":                 {create(b.as(b.owner), app.NewGroup{Name: "x", Handle: "admin"}), errs.CodeValidationFailed, ""},
		"a name that reorders":              {create(b.as(b.owner), app.NewGroup{Name: "x\u202ey", Handle: "x"}), errs.CodeValidationFailed, ""},
		"a claim of a group":                {create(b.as(b.owner), app.NewGroup{Name: "x", Handle: "x", ProviderID: claimed.ProviderID, ClaimValue: "it"}), errs.CodeConflict, "claim_taken"},
		"no proof, no member with strength": {put(stale, strong.ID, b.ben), errs.CodeStepUpRequired, ""},
		"no proof for a weak group":         {put(stale, g.ID, b.owner), "", ""},
	} {
		t.Run(what, func(t *testing.T) { wantCode(t, c.err, c.code, c.reason) })
	}
}

// everyone makes the group of all members in a unit that changes rights, as the setup does.
func (b *bundle) everyone() (id ids.ID, err error) {
	err = b.units.Do(b.as(b.owner), func(ctx context.Context) error {
		id, err = b.svc.CreateEveryone(ctx)
		return err
	})
	return id, err
}

func TestLimitsOfGroupsHoldAgainstTheClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cfg := app.DefaultConfig()
	cfg.MaxGroups, cfg.MaxGroupMembers = 3, 3
	b.svc = b.newServiceWith(cfg)
	g := b.group("g", "")
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	try := func(fn func() error) {
		wg.Go(func() {
			err := fn()
			mu.Lock()
			defer mu.Unlock()
			if e := errs.As(err); err != nil && (e == nil || e.Reason != "limit_reached") {
				t.Errorf("refused otherwise: %v", err)
			}
			if err != nil {
				refused++
			}
		})
	}
	for i := range 5 {
		try(func() error {
			_, err := b.svc.CreateGroup(b.as(b.owner), app.NewGroup{Name: "n", Handle: fmt.Sprintf("g%d", i)})
			return err
		})
		p := b.person(authz.Principal{Kind: actor.KindPerson, Active: true})
		try(func() error { _, _, err := b.svc.PutMember(b.as(b.owner), g.ID, p, app.NewMember{}); return err })
	}
	wg.Wait()
	if refused != 3+2 {
		t.Errorf("%d were refused, want the 3 groups and the 2 members too many", refused)
	}
}

func TestTwoManagersChangeOneGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.group("staff", "write")
	for _, p := range []ids.ID{b.ana, b.ben} {
		b.join(g, p, app.NewMember{Role: app.RoleManager})
	}
	// Each removes the other at the same time: one of them is a manager no more when she acts.
	var wg sync.WaitGroup
	results := make([]error, 2)
	pair := []ids.ID{b.ana, b.ben}
	for i := range pair {
		wg.Go(func() { results[i] = b.svc.RemoveMember(b.as(pair[i]), g.ID, pair[1-i]) })
	}
	wg.Wait()
	failed := 0
	for _, err := range results {
		if err != nil {
			failed++
			wantCode(t, err, errs.CodeForbidden, "not_owner")
		}
	}
	if failed != 1 {
		t.Errorf("%d of two removals failed, want one", failed)
	}
	// Two changes from the same version: the second is told.
	names := []string{"A", "B"}
	for i := range names {
		wg.Go(func() {
			_, results[i] = b.svc.UpdateGroup(b.as(b.owner), g.ID, app.GroupChange{Version: 1, Name: &names[i]})
		})
	}
	wg.Wait()
	if (results[0] == nil) == (results[1] == nil) || !errs.Is(errors.Join(results...), errs.CodeVersionConflict) {
		t.Errorf("two changes from one version: %v", results)
	}
}

func TestAMembershipEndsByItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.group("staff", "write")
	b.join(g, b.ana, app.NewMember{ExpiresAt: time.Now().Add(time.Hour)})
	b.join(g, b.ben, app.NewMember{})
	ended := b.give(b.ana, b.closed, "channel", "read")
	b.db.Exec(t, "UPDATE group_memberships SET expires_at = now() - interval '1 second' WHERE principal_id = $1", b.ana)
	b.db.Exec(t, "UPDATE grants SET expires_at = now() - interval '1 second' WHERE id = $1", ended.ID)
	fresh := b.newService()
	wantCode(t, fresh.Authorize(b.as(b.ana), authorize.ActionMessageCreate, authorize.Thread(ids.New(), b.open)), errs.CodeNotFound, "")
	since := len(b.log.all())
	for range 2 {
		if err := b.svc.ExpirySweep().Run(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	types := map[string]int{}
	for _, e := range b.log.all()[since:] {
		types[e.Type]++
	}
	if types[app.EventAccessChanged] != 1 || types[app.EventGroupChanged] != 1 || types[app.EventGrantChanged] != 1 {
		t.Errorf("events %v, want one of each: the end is told once", types)
	}
	last := (*b.changes)[len(*b.changes)-1]
	if len(last.Principals) != 1 || last.Principals[0].PrincipalID != b.ana || len(last.Principals[0].Lost) != 2 {
		t.Errorf("published %+v", last)
	}
	if got := b.audited(authorize.ActionGroupMemberExpire); got != 1 {
		t.Errorf("%d audit rows of ended memberships", got)
	}
}

func (b *bundle) audited(action authorize.Action) int {
	b.audit.mu.Lock()
	defer b.audit.mu.Unlock()
	n := 0
	for _, e := range b.audit.allowed {
		if e.Action == string(action) {
			n++
		}
	}
	return n
}

func TestEndsAreRemindedOfOncePerStage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.group("staff", "")
	b.join(g, b.ben, app.NewMember{Role: app.RoleManager})
	b.join(g, b.ana, app.NewMember{ExpiresAt: time.Now().Add(30 * 24 * time.Hour)})
	in := newGrant(b.ana, "space", b.space, "read")
	in.ExpiresAt = time.Now().Add(3 * 24 * time.Hour) // Behind the first stage from the start.
	if _, _, err := b.svc.CreateGrant(b.as(b.owner), in); err != nil {
		t.Fatal(err)
	}
	remind := func() map[ids.ID]int {
		t.Helper()
		since := len(b.log.all())
		for range 2 {
			if err := b.svc.RemindExpiry(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		out := map[ids.ID]int{}
		for _, e := range b.log.all()[since:] {
			if e.Type == app.EventAccessExpiring {
				out[e.PrincipalID]++
			}
		}
		return out
	}
	if got := remind(); len(got) != 0 {
		t.Errorf("reminded %v too early", got)
	}
	shift := func(d string) {
		b.db.Exec(t, "UPDATE group_memberships SET expires_at = now() + $1::interval WHERE expires_at IS NOT NULL", d)
		b.db.Exec(t, "UPDATE grants SET expires_at = now() + $1::interval", d)
		// The end moves, not the promise about it: the stages stay those of the same end.
		b.db.Exec(t, "UPDATE group_memberships SET reminded_for = expires_at WHERE reminded_for IS NOT NULL")
		b.db.Exec(t, "UPDATE grants SET reminded_for = expires_at")
	}
	shift("6 days")
	if got := remind(); got[b.ana] != 1 || got[b.owner] != 1 || len(got) != 2 {
		t.Errorf("a week before: %v, want the member and who added her", got)
	}
	shift("20 hours")
	if got := remind(); got[b.ana] != 1 || got[b.owner] != 1 || len(got) != 2 {
		t.Errorf("a day before: %v, want one event for grant and membership together", got)
	}
	b.db.Exec(t, "UPDATE group_memberships SET expires_at = now() + interval '2 days' WHERE principal_id = $1", b.ana)
	if got := remind(); got[b.ana] != 1 {
		t.Errorf("after another end was set: %v", got)
	}
}

func TestMembershipsFollowTheClaimsOfALogin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	provider := ids.New()
	groups := map[string]app.GroupRow{}
	for _, name := range []string{"dev", "ops"} {
		g, err := b.svc.CreateGroup(b.as(b.owner), app.NewGroup{Name: name, Handle: name, ProviderID: provider, ClaimValue: "c-" + name})
		if err != nil {
			t.Fatal(err)
		}
		in := newGrant(g.ID, "space", b.space, "read")
		in.SubjectKind = app.SubjectGroup
		if _, _, err := b.svc.CreateGrant(b.as(b.owner), in); err != nil {
			t.Fatal(err)
		}
		groups[name] = g
	}
	login := func(values ...string) error {
		claims := authz.Claims{PrincipalID: b.ana, ProviderID: provider, Values: values, ValidFor: 720 * time.Hour}
		opts, err := b.svc.Declare(context.Background(), claims)
		if err != nil {
			return err
		}
		return b.units.Do(context.Background(), func(ctx context.Context) error { return b.svc.Sync(ctx, claims) }, opts...)
	}
	in := func() []string {
		var out []string
		for name, g := range groups {
			list, _, err := b.svc.Members(b.as(b.owner), g.ID, ids.ID{}, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range list {
				if m.PrincipalID == b.ana && m.Source == "claim" {
					out = append(out, name)
				}
			}
		}
		slices.Sort(out)
		return out
	}
	steps := []struct {
		values []string
		want   []string
		told   int
	}{
		{[]string{"c-dev", "unknown"}, []string{"dev"}, 1},
		{[]string{"c-dev"}, []string{"dev"}, 0},
		{nil, []string{"dev"}, 0},
		{[]string{"c-ops"}, []string{"ops"}, 1},
		{[]string{"c-dev", "c-ops"}, []string{"dev", "ops"}, 1},
		{[]string{}, nil, 1},
	}
	for i, s := range steps {
		since := len(b.log.all())
		var err error
		if s.values == nil {
			claims := authz.Claims{PrincipalID: b.ana, ProviderID: provider}
			err = b.units.Do(context.Background(), func(ctx context.Context) error { return b.svc.Sync(ctx, claims) })
		} else {
			err = login(s.values...)
			if len(s.values) == 0 {
				claims := authz.Claims{PrincipalID: b.ana, ProviderID: provider, Values: []string{}, ValidFor: time.Hour}
				opts, _ := b.svc.Declare(context.Background(), claims)
				err = b.units.Do(context.Background(), func(ctx context.Context) error { return b.svc.Sync(ctx, claims) }, opts...)
			}
		}
		if err != nil {
			t.Fatalf("login %d: %v", i, err)
		}
		if got := in(); !slices.Equal(got, s.want) {
			t.Errorf("login %d: in %v, want %v", i, got, s.want)
		}
		if got := len(b.told(since)); got != s.told {
			t.Errorf("login %d told %d of their rights, want %d", i, got, s.told)
		}
	}
	if got := b.audited(authorize.ActionGroupMemberSync); got != 4 {
		t.Errorf("%d audit rows, want one for each login that changed something", got)
	}
	// What has moved since it was declared is not done in a unit that cannot tell it.
	claims := authz.Claims{PrincipalID: b.ana, ProviderID: provider, Values: []string{"c-dev"}, ValidFor: time.Hour}
	err := b.units.Do(context.Background(), func(ctx context.Context) error { return b.svc.Sync(ctx, claims) })
	if !errors.Is(err, authz.ErrClaimsMoved) {
		t.Errorf("an undeclared change: %v", err)
	}
}

func TestTheGroupOfAllListsWhoIsNoGuest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, err := b.everyone()
	if err != nil {
		t.Fatal(err)
	}
	guest := b.person(authz.Principal{Kind: actor.KindPerson, Active: true, Guest: true})
	var seen []ids.ID
	var after ids.ID
	for more := true; more; {
		var page []app.MemberRow
		page, more, err = b.svc.Members(b.as(b.ana), id, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			seen, after = append(seen, m.PrincipalID), m.PrincipalID
		}
	}
	if len(seen) != 3 || slices.Contains(seen, guest) || slices.Contains(seen, b.helper) {
		t.Errorf("members %v", seen)
	}
	if _, err := b.svc.Group(b.as(guest), id); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("a guest reads the group of all: %v", err)
	}
}
