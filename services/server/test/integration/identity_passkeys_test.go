// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/test/harness"
)

// authenticator is one that stands before a page of the server.
func authenticator(s *harness.Server) *identitytest.Authenticator {
	a := identitytest.NewAuthenticator()
	a.Origin = s.URL
	return a
}

// asked is what the answer of an operation asks the authenticator.
func asked(t *testing.T, r *harness.Response) identitytest.Ask {
	t.Helper()
	raw, err := json.Marshal(r.At("passkey_options"))
	harness.Must(t, err)
	return identitytest.AskFrom(t, raw)
}

func addPasskey(t *testing.T, c *harness.Client, a *identitytest.Authenticator) string {
	t.Helper()
	ask := asked(t, c.Call(t, "beginPasskey").Is(t, http.StatusCreated))
	return c.Call(t, "registerPasskey", harness.Body{"name": "Key", "passkey": a.Create(t, ask)}).Is(t, http.StatusCreated).Str("id")
}

func TestAPersonSignsInWithAPasskey(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	a := authenticator(s)
	id := addPasskey(t, ana, a)
	if n := ana.Call(t, "getSelf").OK(t).Int("login.passkeys"); n != 1 {
		t.Errorf("she has %d passkeys", n)
	}
	phone := newDevice(t, s)
	begun := phone.Call(t, "beginLogin", harness.Body{"driver": "passkey", "device": device}).Is(t, http.StatusCreated)
	if list := begun.List("passkey_options.allowCredentials"); len(list) != 0 {
		t.Errorf("the options name credentials before anybody is known: %v", list)
	}
	complete := harness.Body{"passkey": a.Get(t, asked(t, begun))}
	in := phone.Call(t, "completeLogin", begun.Str("flow_id"), complete).Is(t, http.StatusOK)
	if in.Str("principal.id") != ana.ID {
		t.Errorf("signed in as %s", in.Str("principal.id"))
	}
	phone.Call(t, "completeLogin", begun.Str("flow_id"), complete).Refused(t, "flow_expired")
	again := phone.Call(t, "beginLogin", harness.Body{"driver": "passkey", "device": device}).OK(t)
	phone.Call(t, "completeLogin", again.Str("flow_id"), complete).Refused(t, "unauthenticated", "login_failed")
	phone.Call(t, "completeLogin", again.Str("flow_id"), harness.Body{}).Refused(t, "validation_failed")

	if list := ana.Call(t, "listPasskeys").OK(t); list.Str("items.0.id") != id || list.Str("items.0.last_used_at") == "" {
		t.Errorf("listed %s", list.Body)
	}
	if name := ana.Call(t, "renamePasskey", id, harness.Body{"name": "Laptop"}).OK(t).Str("name"); name != "Laptop" {
		t.Errorf("renamed to %q", name)
	}
	ana.Call(t, "revokePasskey", id).Is(t, http.StatusNoContent)
	begun = phone.Call(t, "beginLogin", harness.Body{"driver": "passkey", "device": device}).OK(t)
	phone.Call(t, "completeLogin", begun.Str("flow_id"), harness.Body{"passkey": a.Get(t, asked(t, begun))}).Refused(t, "unauthenticated", "login_failed")
}

func TestANewPersonBeginsWithAPasskey(t *testing.T) {
	s := shared.Use(t)
	_, code := invite(t, s, "zoe")
	laptop, a := newDevice(t, s), authenticator(s)
	begun := laptop.Call(t, "beginLogin", harness.Body{"driver": "enrollment", "code": code, "device": device}).Is(t, http.StatusCreated)
	if begun.Str("methods.0") != "passkey" || begun.Str("methods.1") != "password" {
		t.Errorf("offered %v", begun.At("methods"))
	}
	answer := a.Create(t, asked(t, begun))
	spoiled := authenticator(s)
	spoiled.Origin = "https://evil.example"
	bad := harness.Body{"credential": harness.Body{"kind": "passkey", "passkey": spoiled.Create(t, asked(t, begun))}}
	laptop.Call(t, "completeLogin", begun.Str("flow_id"), bad).Refused(t, "validation_failed")
	good := harness.Body{"credential": harness.Body{"kind": "passkey", "name": "Laptop", "passkey": answer}}
	laptop.Call(t, "completeLogin", begun.Str("flow_id"), good).Is(t, http.StatusOK)
}

func TestAPasskeyProvesPresence(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	ana.Call(t, "beginStepUp", harness.Body{"method": "passkey"}).Refused(t, "conflict", "no_step_up_method")
	a := authenticator(s)
	id := addPasskey(t, ana, a)
	tire(t, ana)
	refuse(t,
		refusal{"tired", ana, "beginPasskey", nil, "step_up_required", ""},
		refusal{"tired", ana, "registerPasskey", with(harness.Body{"name": "x", "passkey": harness.Body{}}), "step_up_required", ""},
		refusal{"tired", ana, "renamePasskey", with(id, harness.Body{"name": "x"}), "step_up_required", ""},
		refusal{"tired", ana, "revokePasskey", with(id), "step_up_required", ""},
		refusal{"tired", ana, "removePassword", nil, "step_up_required", ""},
	)
	begun := ana.Call(t, "beginStepUp", harness.Body{"method": "passkey"}).Is(t, http.StatusCreated)
	flow := begun.Str("flow_id")
	spoiled := a.Clone()
	spoiled.Spoil = true
	refuse(t,
		refusal{"changed signature", ana, "completeStepUp", with(flow, harness.Body{"passkey": spoiled.Get(t, asked(t, begun))}), "unauthenticated", "login_failed"},
		refusal{"a password instead", ana, "completeStepUp", with(flow, harness.Body{"password": ana.Password}), "validation_failed", ""},
	)
	fresh := ana.Call(t, "completeStepUp", flow, harness.Body{"passkey": a.Get(t, asked(t, begun))}).Is(t, http.StatusOK)
	if fresh.Str("step_up_until") == "" {
		t.Error("it is not told how long the proof counts")
	}
	ana.Adopt(fresh)
	ana.Call(t, "removePassword").Is(t, http.StatusNoContent)
	ana.Call(t, "revokePasskey", id).Refused(t, "conflict", "no_login_left")
}

func TestPasskeysAreRefused(t *testing.T) {
	s := shared.Use(t)
	ana, bob, owner := s.Person(t, "ana"), s.Person(t, "bob"), s.Owner(t)
	a := authenticator(s)
	id := addPasskey(t, ana, a)
	ask := asked(t, ana.Call(t, "beginPasskey").OK(t))
	mine := authenticator(s).Create(t, ask)
	unverified := authenticator(s)
	unverified.NoVerification = true
	refuse(t,
		refusal{"another's challenge", bob, "registerPasskey", with(harness.Body{"name": "x", "passkey": mine}), "flow_expired", ""},
		refusal{"not verified", ana, "registerPasskey", with(harness.Body{"name": "x", "passkey": unverified.Create(t, ask)}), "validation_failed", ""},
		refusal{"no answer", ana, "registerPasskey", with(harness.Body{"name": "x", "passkey": harness.Body{}}), "validation_failed", ""},
		refusal{"another's", bob, "renamePasskey", with(id, harness.Body{"name": "x"}), "not_found", ""},
		refusal{"no name", ana, "renamePasskey", with(id, harness.Body{"name": ""}), "validation_failed", ""},
		refusal{"another's", bob, "revokePasskey", with(id), "not_found", ""},
		refusal{"not an owner", bob, "revokeUserPasskey", with(ana.ID, id), "not_found", ""},
		refusal{"unknown", owner, "revokeUserPasskey", with(ana.ID, harness.NewID()), "not_found", ""},
		refusal{"the last way in", bob, "removePassword", nil, "conflict", "no_login_left"},
	)
	second := ana.Call(t, "registerPasskey", harness.Body{"name": "x", "passkey": mine}).Is(t, http.StatusCreated).Str("id")
	ana.Call(t, "registerPasskey", harness.Body{"name": "x", "passkey": mine}).Refused(t, "flow_expired")
	owner.Call(t, "revokeUserPasskey", ana.ID, id).Is(t, http.StatusNoContent)

	s.DB.Exec(t, "DELETE FROM local_credentials WHERE principal_id = $1", ana.ID)
	s.DB.Exec(t, "INSERT INTO owners (principal_id, added_at) VALUES ($1, now())", ana.ID)
	owner.Call(t, "revokeUserPasskey", ana.ID, second).Refused(t, "conflict", "no_login_left")
	s.DB.Exec(t, "DELETE FROM owners WHERE principal_id = $1", ana.ID)
	owner.Call(t, "revokeUserPasskey", ana.ID, second).Is(t, http.StatusNoContent)
	tire(t, owner)
	owner.Call(t, "revokeUserPasskey", ana.ID, second).Refused(t, "step_up_required")
	owner.StepUp(t)
}

func TestAccountsHaveALimitOfPasskeys(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	for range 19 {
		addPasskey(t, ana, authenticator(s))
	}
	late := asked(t, ana.Call(t, "beginPasskey").OK(t))
	addPasskey(t, ana, authenticator(s))
	ana.Call(t, "registerPasskey", harness.Body{"name": "x", "passkey": authenticator(s).Create(t, late)}).Refused(t, "conflict", "passkey_limit")
	ana.Call(t, "beginPasskey").Refused(t, "conflict", "passkey_limit")
}

// An owner may switch drivers off, but never so that one of them could not come back.
func TestWaysInAreSwitchedOff(t *testing.T) {
	s := harness.Start(t)
	owner := s.Owner(t)
	set := func(values harness.Body) *harness.Response {
		version := owner.Call(t, "getInstanceSettings").OK(t).Version(t)
		return owner.Call(t, "updateInstanceSettings", version, values)
	}
	local := harness.Body{"driver": "local", "device": device}
	waiting := newDevice(t, s)
	begun := waiting.Call(t, "beginLogin", local).OK(t).Str("flow_id")

	set(harness.Body{"auth.local.enabled": false}).Refused(t, "conflict", "no_login_left")
	id := addPasskey(t, owner, authenticator(s))
	set(harness.Body{"auth.local.enabled": false}).OK(t)
	set(harness.Body{"auth.passkey.enabled": false}).Refused(t, "conflict", "no_login_left")
	owner.Call(t, "revokePasskey", id).Refused(t, "conflict", "no_login_left")

	options := s.Anonymous().Call(t, "getDiscovery").OK(t).List("login_options")
	if len(options) != 1 || harness.At(options[0], "driver") != "passkey" {
		t.Errorf("offered %v", options)
	}
	newDevice(t, s).Call(t, "beginLogin", local).Refused(t, "validation_failed")
	waiting.Call(t, "completeLogin", begun, harness.Body{"login": owner.Handle, "password": owner.Password}).Refused(t, "flow_expired")
	_, code := invite(t, s, "ana")
	flow := newDevice(t, s).Call(t, "beginLogin", harness.Body{"driver": "enrollment", "code": code, "device": device}).OK(t)
	if methods := flow.List("methods"); len(methods) != 1 || methods[0] != "passkey" {
		t.Errorf("a code sets %v", methods)
	}
	set(harness.Body{"auth.local.enabled": nil}).OK(t)
	owner.Call(t, "revokePasskey", id).OK(t)
}
