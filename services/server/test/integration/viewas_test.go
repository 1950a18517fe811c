// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/api/routes"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/test/harness"
)

// look has the owner look at the instance as somebody, from a session of its own.
func look(t *testing.T, s *harness.Server, as *harness.Client) (owner, view *harness.Client) {
	t.Helper()
	owner = s.Owner(t).Login(t)
	r := owner.Call(t, "startViewAs", harness.Body{"principal_id": as.ID}).Is(t, http.StatusCreated)
	return owner, owner.WithAccess(r.Str("access_token"), r.Str("session_id"))
}

func TestAnOwnerLooksAsSomebodyElse(t *testing.T) {
	s := shared.Use(t)
	ana, bob := s.Person(t, "ana"), s.Person(t, "bob")
	hers, his := s.Space(t, "write", ana), s.Space(t, "write", bob)
	ana.Say(t, hers.Thread, "visible")
	watching := ana.Connect(t)
	owner, view := look(t, s, ana)
	if me := view.Call(t, "getSelf").OK(t); me.Str("view_as") != ana.ID || me.Str("id") != ana.ID {
		t.Errorf("self %s", me.Body)
	}
	view.Call(t, "getSpace", hers.Space).OK(t)
	if list := view.Call(t, "listMessages", hers.Thread).OK(t); len(list.List("items")) == 0 {
		t.Errorf("messages %s", list.Body)
	}
	view.Call(t, "getSpace", his.Space).Refused(t, "not_found") // She sees what the person sees.
	owner.Call(t, "getSpace", his.Space).OK(t)
	spaces := view.Call(t, "listSpaces").OK(t)
	for _, x := range spaces.List("items") {
		if harness.At(x, "id") == his.Space {
			t.Error("a list shows the space of somebody else")
		}
	}
	// The person finds the session and whose it is.
	found := ""
	for _, x := range ana.Call(t, "listSessions").OK(t).List("items") {
		if harness.At(x, "view_as_by") == owner.ID {
			found, _ = harness.At(x, "id").(string)
		}
	}
	if found != view.Session {
		t.Errorf("the person finds the view %q, want %q", found, view.Session)
	}
	refuse(t,
		refusal{"write", view, "createMessage", with(hers.Thread, harness.Message("as her")), "forbidden", "view_as_read_only"},
		refusal{"personal", view, "listSessions", nil, "forbidden", "view_as_read_only"},
		refusal{"personal", view, "getSnapshot", nil, "forbidden", "view_as_read_only"},
		refusal{"another view", view, "startViewAs", with(harness.Body{"principal_id": bob.ID}), "forbidden", ""},
		refusal{"already", owner, "startViewAs", with(harness.Body{"principal_id": bob.ID}), "conflict", "already_viewing"},
		refusal{"of others", bob, "endViewAs", with(view.Session), "not_found", ""},
		refusal{"no view", ana, "endViewAs", with(ana.Session), "not_found", ""},
	)
	socket := view.Dial(t)
	socket.Send(t, "identify", harness.Body{"token": view.Access(), "protocol_version": 1, "client": harness.Body{"name": "t", "version": "1", "platform": "linux"}})
	if code := socket.Closed(t); code != 4018 && code != 4004 {
		t.Errorf("the gateway closed with %d", code)
	}
	// She ends it; the connection of hers hears of it, and the owner's token is worth nothing.
	ana.Call(t, "endViewAs", view.Session).Is(t, http.StatusNoContent)
	watching.Event(t, "session.revoked", func(e harness.Event) bool { return e.Str("data.session_id") == view.Session })
	view.Call(t, "getSpace", hers.Space).Refused(t, "unauthenticated")
	ana.Call(t, "endViewAs", view.Session).Refused(t, "not_found")
	rows := s.DB.Count(t, `SELECT count(*) FROM audit_events
		WHERE action = 'access.view_as' AND actor_id = $1 AND resource_id = $2 AND outcome = 'allow'`, owner.ID, ana.ID)
	if rows != 1 {
		t.Errorf("%d audit rows of the beginning", rows)
	}
}

func TestViewsEnd(t *testing.T) {
	s := harness.Start(t)
	ana := s.Person(t, "ana")
	// From the view itself.
	_, view := look(t, s, ana)
	view.Call(t, "endViewAs", view.Session).Is(t, http.StatusNoContent)
	view.Call(t, "getInstance").Refused(t, "unauthenticated")
	if n := s.DB.Count(t, "SELECT count(*) FROM audit_events WHERE action = 'access.view_as.end' AND actor_id = $1 AND view_as_id = $2", s.Owner(t).ID, ana.ID); n != 1 {
		t.Errorf("%d audit rows name the owner behind the view", n)
	}
	// By logging out of it.
	_, view = look(t, s, ana)
	view.Call(t, "logout").Is(t, http.StatusNoContent)
	view.Call(t, "getInstance").Refused(t, "unauthenticated")
	ana.Call(t, "getInstance").OK(t)
	// By the owner's logout.
	owner, view := look(t, s, ana)
	owner.Call(t, "logout").Is(t, http.StatusNoContent)
	view.Call(t, "getInstance").Refused(t, "unauthenticated")
	for _, x := range ana.Call(t, "listSessions").OK(t).List("items") {
		if harness.At(x, "id") == view.Session {
			t.Error("a view that has ended is still listed")
		}
	}
	// By the person being disabled, and by the clock.
	bob := s.Person(t, "bob")
	owner, view = look(t, s, bob)
	owner.Call(t, "disableUser", bob.ID, owner.Call(t, "getUser", bob.ID).OK(t).Version(t), harness.Body{"reason": "left"}).OK(t)
	view.Call(t, "getInstance").Refused(t, "unauthenticated")
	_, view = look(t, s, ana)
	s.Clock.Advance(14 * time.Minute)
	view.Call(t, "getInstance").OK(t)
	s.Clock.Advance(2 * time.Minute)
	view.Call(t, "getInstance").Refused(t, "token_expired")
}

func TestViewsAreRefused(t *testing.T) {
	s := harness.Start(t)
	owner, ana, agent := s.Owner(t), s.Person(t, "ana"), s.Agent(t, "helper")
	as := func(id string) harness.Body { return harness.Body{"principal_id": id} }
	tired := owner.Login(t)
	tire(t, tired)
	refuse(t,
		refusal{"no owner", ana, "startViewAs", with(as(owner.ID)), "forbidden", "not_owner"},
		refusal{"an agent", owner, "startViewAs", with(as(agent.ID)), "not_found", ""},
		refusal{"nobody", owner, "startViewAs", with(as(harness.NewID())), "not_found", ""},
		refusal{"herself", owner, "startViewAs", with(as(owner.ID)), "validation_failed", ""},
		refusal{"without presence", tired, "startViewAs", with(as(ana.ID)), "step_up_required", ""},
		refusal{"with a token", owner.Token(t, "authz.admin"), "startViewAs", with(as(ana.ID)), "scope_missing", ""},
	)
	fresh := owner.Login(t)
	first := fresh.Call(t, "startViewAs", as(ana.ID), harness.Key("view")).Is(t, http.StatusCreated)
	fresh.Call(t, "startViewAs", as(ana.ID), harness.Key("view")).Refused(t, "conflict", "secret_already_shown")
	fresh.Call(t, "endViewAs", first.Str("session_id")).Is(t, http.StatusNoContent)
	settings := owner.Call(t, "getInstanceSettings").OK(t)
	owner.StepUp(t)
	owner.Call(t, "updateInstanceSettings", settings.Version(t), harness.Body{"access.view_as_enabled": false}).OK(t)
	owner.Call(t, "startViewAs", as(ana.ID)).Refused(t, "forbidden", "view_as_disabled")
}

// TestAViewWritesNothing calls every operation whose action is not open to a view.
func TestAViewWritesNothing(t *testing.T) {
	s := shared.Use(t)
	w := newTeam(t, s)
	_, view := look(t, s, w.caller)
	message := w.caller.Say(t, w.place.Thread, "visible")
	visible := map[string]string{"space_id": w.place.Space, "channel_id": w.place.Channel, "thread_id": w.place.Thread, "message_id": message.Str("id"), "agent_id": w.agent.ID, "user_id": w.caller.ID, "principal_id": w.caller.ID}
	for _, op := range routes.Operations {
		spec, _ := authorize.SpecOf(authorize.Action(op.Action))
		if open[op.ID] || spec.ViewAs {
			continue
		}
		parts := append(named(op, func(name string) string {
			if id := visible[name]; id != "" {
				return id
			}
			return unknown(name)
		}), harness.IfMatch(1), bodyFor(op))
		if r := view.Call(t, op.ID, parts...); r.Status < 400 {
			t.Errorf("a view has done %s: %s", op.ID, r.Body)
		}
	}
}
