// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"sync"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

func TestPeopleAreChangedByOwners(t *testing.T) {
	s := shared.Use(t)
	owner, ana, bob := s.Owner(t), s.Person(t, "ana"), s.Person(t, "bob")
	owner.StepUp(t)
	tired := owner.Login(t)
	tire(t, tired)
	watching := bob.Connect(t)
	before := owner.Call(t, "getUser", ana.ID).OK(t)
	self := owner.Call(t, "getUser", owner.ID).OK(t)
	refuse(t,
		refusal{"member", bob, "updateUser", with(ana.ID, before.Version(t), harness.Body{"title": "x"}), "forbidden", ""},
		refusal{"old version", owner, "updateUser", with(ana.ID, stale, harness.Body{"title": "x"}), "version_conflict", ""},
		refusal{"no version", owner, "updateUser", with(ana.ID, harness.Body{"title": "x"}), "precondition_required", ""},
		refusal{"missing", owner, "updateUser", with(harness.NewID(), stale, harness.Body{"title": "x"}), "not_found", ""},
		refusal{"handle of another", owner, "updateUser", with(ana.ID, before.Version(t), harness.Body{"handle": bob.Handle}), "conflict", "handle_taken"},
		refusal{"owner as a guest", owner, "updateUser", with(owner.ID, self.Version(t), harness.Body{"guest": true}), "conflict", "guest"},
		refusal{"address without presence", tired, "updateUser", with(ana.ID, before.Version(t), harness.Body{"email": "x@example.org"}), "step_up_required", ""},
		refusal{"null for a truth", owner, "updateUser", with(ana.ID, before.Version(t), harness.Body{"guest": nil}), "validation_failed", ""},
	)
	handle := s.Unique("anna")
	after := tired.Call(t, "updateUser", ana.ID, before.Version(t), harness.Body{"handle": handle, "title": "Mate"}).OK(t)
	watching.Event(t, "user.updated", func(e harness.Event) bool { return e.Str("data.user.handle") == handle })
	guest := owner.Call(t, "updateUser", ana.ID, after.Version(t), harness.Body{"guest": true, "email": s.Unique("a") + "@example.org"}).OK(t)
	if guest.At("guest") != true || guest.At("title") != "Mate" {
		t.Errorf("after two patches: %s", guest.Body)
	}
	ana.Call(t, "getSelf").OK(t)
	if found := bob.Call(t, "getPrincipalByHandle", ana.Handle).OK(t); found.Str("handle") != handle {
		t.Errorf("the former handle leads to %s", found.Body)
	}
	bob.Call(t, "getPrincipalByHandle", "nobody-there").Refused(t, "not_found")
}

func TestOwnersAreMadeAndRemoved(t *testing.T) {
	s := harness.Start(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	guest := owner.Call(t, "createUser", harness.Body{"handle": "gil", "display_name": "Gil", "guest": true}).OK(t).Str("id")
	tired := owner.Login(t)
	tire(t, tired)
	owner.StepUp(t)
	refuse(t,
		refusal{"last owner", owner, "removeOwner", with(owner.ID), "last_owner", ""},
		refusal{"no owner", owner, "removeOwner", with(ana.ID), "not_found", ""},
		refusal{"without presence", tired, "addOwner", with(ana.ID), "step_up_required", ""},
		refusal{"without presence", tired, "removeOwner", with(owner.ID), "step_up_required", ""},
		refusal{"member", ana, "addOwner", with(ana.ID), "forbidden", ""},
		refusal{"guest", owner, "addOwner", with(guest), "conflict", "guest"},
		refusal{"missing", owner, "addOwner", with(harness.NewID()), "not_found", ""},
	)
	socket := ana.Connect(t)
	owner.Call(t, "addOwner", ana.ID).Is(t, http.StatusNoContent)
	socket.Event(t, "user.updated", func(e harness.Event) bool { return harness.At(e.Body, "data.user.owner") == true })
	for range 5 {
		ana.StepUp(t)
		owner.StepUp(t)
		ana.Call(t, "addOwner", owner.ID).Is(t, http.StatusNoContent)
		var both sync.WaitGroup
		answers := make([]*harness.Response, 2)
		both.Go(func() { answers[0] = owner.Call(t, "removeOwner", ana.ID) })
		both.Go(func() { answers[1] = ana.Call(t, "removeOwner", owner.ID) })
		both.Wait()
		if n := s.DB.Count(t, "SELECT count(*) FROM owners"); n != 1 {
			t.Fatalf("%d owners remain after %d and %d", n, answers[0].Status, answers[1].Status)
		}
		if answers[0].Status == http.StatusNoContent {
			owner.Call(t, "addOwner", ana.ID).Is(t, http.StatusNoContent)
		}
	}
}

// A session that is ended has no connection any more, and no access token of it counts.
func TestSessionsEndTogether(t *testing.T) {
	s := shared.Use(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	owner.StepUp(t)
	ana.StepUp(t)
	second, third := ana.Login(t), ana.Login(t)
	if list := owner.Call(t, "listUserSessions", ana.ID, harness.Query{"limit": "2"}).OK(t); len(list.List("items")) != 2 || list.Str("next_cursor") == "" {
		t.Errorf("three sessions, pages of two: %s", list.Body)
	}
	tired := owner.Login(t)
	tire(t, tired)
	refuse(t,
		refusal{"bad cursor", owner, "listUserSessions", with(ana.ID, harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"of another", ana, "listUserSessions", with(owner.ID), "not_found", ""},
		refusal{"missing", owner, "listUserSessions", with(harness.NewID()), "not_found", ""},
		refusal{"of another", ana, "revokeUserSessions", with(owner.ID), "not_found", ""},
		refusal{"missing", owner, "revokeUserSessions", with(harness.NewID()), "not_found", ""},
		refusal{"without presence", tired, "revokeUserSessions", with(ana.ID), "step_up_required", ""},
		refusal{"without presence", tired, "revokeOtherSessions", nil, "step_up_required", ""},
	)
	own, others := ana.Connect(t), []*harness.Socket{second.Connect(t), third.Connect(t)}
	if r := ana.Call(t, "revokeOtherSessions").OK(t); r.Int("ended") != 2 {
		t.Errorf("ended %s", r.Body)
	}
	for _, socket := range others {
		if code := socket.Closed(t); code != 4010 {
			t.Errorf("a connection was closed with %d", code)
		}
	}
	second.Call(t, "getSelf").Refused(t, "unauthenticated")
	second.Call(t, "refreshToken", harness.Body{"refresh_token": second.Refresh()}).Refused(t, "unauthenticated", "session_ended")
	ana.Call(t, "getSelf").OK(t)
	if r := owner.Call(t, "revokeUserSessions", ana.ID).OK(t); r.Int("ended") != 1 {
		t.Errorf("ended %s", r.Body)
	}
	if code := own.Closed(t); code != 4010 {
		t.Errorf("the connection was closed with %d", code)
	}
	ana.Call(t, "getSelf").Refused(t, "unauthenticated")
}
