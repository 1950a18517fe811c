// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/harness"
)

func TestMembersAreMadeAndFound(t *testing.T) {
	s := shared.Use(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	handle := s.Unique("new")
	made := owner.Call(t, "createUser", harness.Body{"handle": handle, "display_name": "New Member", "email": handle + "@example.org"}).Is(t, http.StatusCreated)
	ana.Call(t, "getUser", made.Str("id")).OK(t)
	ana.Call(t, "getPrincipal", made.Str("id")).OK(t)
	ana.Call(t, "listUsers", harness.Query{"query": handle, "status": "active", "owner": "false", "guest": "false", "limit": "1"}).OK(t)
	owner.Call(t, "listUsers").OK(t)
	if found := ana.Call(t, "searchDirectory", harness.Query{"query": handle, "kinds": "person"}).OK(t); found.Str("items.0.handle") != handle {
		t.Errorf("the directory does not begin with the exact handle: %s", found.Body)
	}
	refuse(t,
		refusal{"handle", owner, "createUser", with(harness.Body{"handle": handle, "display_name": "X"}), "conflict", "handle_taken"},
		refusal{"email", owner, "createUser", with(harness.Body{"handle": s.Unique("x"), "display_name": "X", "email": handle + "@example.org"}), "conflict", "email_taken"},
		refusal{"looks like an owner", owner, "createUser", with(harness.Body{"handle": s.Unique("x"), "display_name": "Olga Owner"}), "conflict", "name_confusable"},
		refusal{"member", ana, "createUser", with(harness.Body{"handle": s.Unique("x"), "display_name": "X"}), "forbidden", ""},
		refusal{"missing", ana, "getUser", with(harness.NewID()), "not_found", ""},
		refusal{"missing", ana, "getPrincipal", with(harness.NewID()), "not_found", ""},
		refusal{"bad cursor", ana, "listUsers", with(harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"no query", ana, "searchDirectory", nil, "validation_failed", ""},
	)
}

func TestMembersChangeThemselves(t *testing.T) {
	s := shared.Use(t)
	ana, bob := s.Person(t, "ana"), s.Person(t, "bob")
	watching := bob.Connect(t)
	self := ana.Call(t, "getSelf").OK(t)
	changed := ana.Call(t, "updateSelf", self.Version(t), harness.Body{"title": "Captain", "bio": nil, "custom_status": harness.Body{"text": "at sea"}}).OK(t)
	watching.Event(t, "user.updated", func(e harness.Event) bool { return e.Str("data.user.title") == "Captain" })
	refuse(t,
		refusal{"old version", ana, "updateSelf", with(self.Version(t), harness.Body{"title": "x"}), "version_conflict", ""},
		refusal{"no version", ana, "updateSelf", with(harness.Body{"title": "x"}), "precondition_required", ""},
		refusal{"handle of another", ana, "updateSelf", with(changed.Version(t), harness.Body{"handle": bob.Handle}), "conflict", "handle_taken"},
	)
}

func TestMembersAreDisabledAndEnabled(t *testing.T) {
	s := shared.Use(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	tired := owner.Login(t)
	tire(t, tired)
	socket := ana.Connect(t)
	version := owner.Call(t, "getUser", ana.ID).OK(t)
	self := owner.Call(t, "getSelf").OK(t)
	owner.StepUp(t)
	refuse(t,
		refusal{"old version", owner, "disableUser", with(ana.ID, stale, harness.Body{}), "version_conflict", ""},
		refusal{"no version", owner, "disableUser", with(ana.ID, harness.Body{}), "precondition_required", ""},
		refusal{"missing", owner, "disableUser", with(harness.NewID(), stale, harness.Body{}), "not_found", ""},
		refusal{"last owner", owner, "disableUser", with(owner.ID, self.Version(t), harness.Body{}), "last_owner", ""},
		refusal{"owner without presence", tired, "disableUser", with(owner.ID, self.Version(t), harness.Body{}), "step_up_required", ""},
		refusal{"of an owner", owner, "issueEnrollmentCode", with(owner.ID), "forbidden", "target_is_owner"},
		refusal{"without presence", tired, "issueEnrollmentCode", with(ana.ID), "step_up_required", ""},
		refusal{"missing", owner, "issueEnrollmentCode", with(harness.NewID()), "not_found", ""},
	)
	code := owner.Call(t, "issueEnrollmentCode", ana.ID).Is(t, http.StatusCreated).Str("code")
	s.Enroll(t, code).Call(t, "getSelf").OK(t)
	disabled := owner.Call(t, "disableUser", ana.ID, version.Version(t), harness.Body{"reason": "left"}).OK(t)
	if code := socket.Closed(t); code != 4010 {
		t.Errorf("the connection was closed with %d", code)
	}
	ana.Call(t, "getSelf").Refused(t, "unauthenticated")
	refuse(t,
		refusal{"old version", owner, "enableUser", with(ana.ID, version.Version(t)), "version_conflict", ""},
		refusal{"no version", owner, "enableUser", with(ana.ID), "precondition_required", ""},
		refusal{"without presence", tired, "enableUser", with(ana.ID, disabled.Version(t)), "step_up_required", ""},
		refusal{"missing", owner, "enableUser", with(harness.NewID(), stale), "not_found", ""},
	)
	owner.Call(t, "enableUser", ana.ID, disabled.Version(t)).OK(t)
	ana.Call(t, "getSelf").Refused(t, "unauthenticated")
	ana.Login(t).Call(t, "getSelf").OK(t)
}

func TestSessionsAreListedAndRevoked(t *testing.T) {
	s := shared.Use(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	other := ana.Login(t)
	if list := ana.Call(t, "listSessions", harness.Query{"limit": "1"}).OK(t); list.Str("next_cursor") == "" {
		t.Errorf("two sessions, one page: %s", list.Body)
	} else {
		ana.Call(t, "listSessions", harness.Query{"cursor": list.Str("next_cursor")}).OK(t)
	}
	tired := owner.Login(t)
	tire(t, tired)
	socket := other.Connect(t)
	watching := ana.Connect(t)
	refuse(t,
		refusal{"bad cursor", ana, "listSessions", with(harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"missing", ana, "revokeSession", with(harness.NewID()), "not_found", ""},
		refusal{"of another", s.Person(t, "eve"), "revokeSession", with(other.Session), "not_found", ""},
		refusal{"owner without presence", tired, "revokeSession", with(other.Session), "step_up_required", ""},
	)
	ana.Call(t, "revokeSession", other.Session).Is(t, http.StatusNoContent)
	if code := socket.Closed(t); code != 4010 {
		t.Errorf("the connection was closed with %d", code)
	}
	watching.Event(t, "session.revoked", func(e harness.Event) bool { return e.Str("data.session_id") == other.Session })
	owner.StepUp(t)
	owner.Call(t, "revokeSession", ana.Session).Is(t, http.StatusNoContent)
	ana.Call(t, "getSelf").Refused(t, "unauthenticated")
}

func TestTokensAreMadeAndRevoked(t *testing.T) {
	s := shared.Use(t)
	ana, eve := s.Person(t, "ana"), s.Person(t, "eve")
	agent := s.Agent(t, "aida")
	owner := s.Owner(t)
	body := harness.Body{"name": "script", "scopes": []string{"chat.read", "identity.read"}, "expires_at": s.In(24 * time.Hour)}
	made := ana.Call(t, "createToken", body, harness.Key("one")).Is(t, http.StatusCreated)
	token := &harness.Client{Server: s, Bearer: made.Str("secret")}
	token.Call(t, "getSelf").OK(t)
	token.Call(t, "listSpaces").OK(t)
	token.Call(t, "getInstanceSettings").Refused(t, "scope_missing")
	ana.Call(t, "listTokens").OK(t)
	owner.Call(t, "listTokens", harness.Query{"principal_id": agent.ID}).OK(t)
	owner.StepUp(t)
	owner.Call(t, "createToken", harness.Body{"principal_id": agent.ID, "name": "second", "scopes": []string{"runs.read"}}).Is(t, http.StatusCreated)
	tired := ana.Login(t)
	tire(t, tired)
	refuse(t,
		refusal{"secret", ana, "createToken", with(body, harness.Key("one")), "conflict", "secret_already_shown"},
		refusal{"other request", ana, "createToken", with(harness.Body{"name": "x", "scopes": []string{"chat.read", "identity.read"}, "expires_at": body["expires_at"]}, harness.Key("one")), "idempotency_key_reuse", ""},
		refusal{"without presence", tired, "createToken", with(body), "step_up_required", ""},
		refusal{"unknown scope", ana, "createToken", with(harness.Body{"name": "x", "scopes": []string{"moon"}, "expires_at": body["expires_at"]}), "validation_failed", ""},
		refusal{"without end", ana, "createToken", with(harness.Body{"name": "x", "scopes": []string{"chat.read", "identity.read"}}), "validation_failed", ""},
		refusal{"of another", ana, "createToken", with(harness.Body{"principal_id": eve.ID, "name": "x", "scopes": []string{"chat.read", "identity.read"}, "expires_at": body["expires_at"]}), "not_found", ""},
		refusal{"of another", ana, "listTokens", with(harness.Query{"principal_id": eve.ID}), "not_found", ""},
		refusal{"bad cursor", ana, "listTokens", with(harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"of another", eve, "revokeToken", with(made.Str("id")), "not_found", ""},
		refusal{"missing", ana, "revokeToken", with(harness.NewID()), "not_found", ""},
	)
	ana.Call(t, "revokeToken", made.Str("id")).Is(t, http.StatusNoContent)
	token.Call(t, "getSelf").Refused(t, "unauthenticated")
}
