// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestUpdateUser(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	update := func(in app.UpdateUserInput) (app.Shown, error) {
		shown, err := f.Service.User(ana.Context(t), bob.Person)
		ok(t, err)
		in.Version = shown.Version
		return f.Service.UpdateUser(ana.Context(t), bob.Person, in)
	}
	shown, err := update(app.UpdateUserInput{Handle: set("robert"), DisplayName: set("Robert"), Title: set("Painter")})
	if err != nil || shown.Handle != "robert" || shown.DisplayName != "Robert" || shown.Person.Title != "Painter" {
		t.Fatalf("%+v, %v", shown, err)
	}
	if _, err := update(app.UpdateUserInput{Handle: set("bobby")}); err != nil {
		t.Errorf("an owner waits before she renames somebody: %v", err)
	}
	if found, err := f.Service.MemberByHandle(bob.Context(t), "Robert"); err != nil || found.ID != bob.Person || found.Handle != "bobby" {
		t.Errorf("the former handle leads to %+v, %v", found, err)
	}
	_, err = f.Service.MemberByHandle(bob.Context(t), "nobody")
	identitytest.Is(t, err, errs.CodeNotFound, "")
	t.Run("an address is unverified until somebody says otherwise", func(t *testing.T) {
		shown, err := update(app.UpdateUserInput{Email: set("bob@example.org"), EmailVerified: set(true)})
		if err != nil || !shown.Person.EmailVerified {
			t.Fatalf("%+v, %v", shown.Person, err)
		}
		shown, err = update(app.UpdateUserInput{Email: set("bob@example.com")})
		if err != nil || shown.Person.EmailVerified || shown.Person.Email != "bob@example.com" {
			t.Fatalf("%+v, %v", shown.Person, err)
		}
		shown, err = update(app.UpdateUserInput{Email: set("")})
		if err != nil || shown.Person.Email != "" {
			t.Fatalf("%+v, %v", shown.Person, err)
		}
		_, err = update(app.UpdateUserInput{EmailVerified: set(true)})
		identitytest.Is(t, err, errs.CodeValidationFailed, "")
	})
	t.Run("what decides who she is needs a fresh proof", func(t *testing.T) {
		f.Clock.Advance(6 * time.Minute)
		for name, in := range map[string]app.UpdateUserInput{
			"address": {Email: set("b@example.org")}, "guest": {Guest: set(true)},
		} {
			if _, err := update(in); !errs.Is(err, errs.CodeStepUpRequired) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := update(app.UpdateUserInput{Guest: set(false), Title: set("")}); err != nil {
			t.Errorf("what stays as it is: %v", err)
		}
		ana.StepUp(t)
		shown, err := update(app.UpdateUserInput{Guest: set(true)})
		if err != nil || !shown.Person.Guest {
			t.Errorf("%+v, %v", shown.Person, err)
		}
	})
	_, err = f.Service.UpdateUser(bob.Context(t), ana.Person, app.UpdateUserInput{Version: 1, Title: set("x")})
	identitytest.Is(t, err, errs.CodeForbidden, "")
	_, err = f.Service.UpdateUser(ana.Context(t), bob.Person, app.UpdateUserInput{Version: 1, Title: set("x")})
	identitytest.Is(t, err, errs.CodeVersionConflict, "")
	allowed, _ := f.Audit.Entries(authorize.ActionUserUpdate)
	if len(allowed) == 0 || len(allowed[0].Details["changed"].([]string)) != 3 {
		t.Errorf("audited %+v", allowed)
	}
}

func TestOwnersComeAndGo(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	identitytest.Is(t, f.Service.AddOwner(bob.Context(t), bob.Person), errs.CodeForbidden, "")
	identitytest.Is(t, f.Service.RemoveOwner(ana.Context(t), ana.Person), errs.CodeLastOwner, "")
	identitytest.Is(t, f.Service.RemoveOwner(ana.Context(t), bob.Person), errs.CodeNotFound, "")
	ok(t, f.Service.AddOwner(ana.Context(t), bob.Person))
	ok(t, f.Service.AddOwner(ana.Context(t), bob.Person))
	if allowed, _ := f.Audit.Entries(authorize.ActionOwnerAdd); len(allowed) != 1 {
		t.Errorf("%d changes recorded", len(allowed))
	}
	_, err := f.Service.UpdateUser(ana.Context(t), bob.Person, app.UpdateUserInput{Version: 1, Guest: set(true)})
	identitytest.Is(t, err, errs.CodeConflict, "guest")
	ok(t, f.Service.RemoveOwner(bob.Context(t), bob.Person))
	t.Run("who cannot be one", func(t *testing.T) {
		guest, _, err := f.Service.CreateUser(ana.Context(t), app.CreateUserInput{Handle: "gil", DisplayName: "Gil", Guest: true})
		ok(t, err)
		identitytest.Is(t, f.Service.AddOwner(ana.Context(t), guest.ID), errs.CodeConflict, "guest")
		gone, _, err := f.Service.CreateUser(ana.Context(t), app.CreateUserInput{Handle: "ed", DisplayName: "Ed"})
		ok(t, err)
		_, err = f.Service.DisableUser(ana.Context(t), gone.ID, gone.Version, "")
		ok(t, err)
		identitytest.Is(t, f.Service.AddOwner(ana.Context(t), gone.ID), errs.CodeConflict, "not_active")
	})
}

// Two owners who remove each other at the same time leave one.
func TestOneOwnerRemains(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	for range 25 {
		ok(t, f.Service.AddOwner(ana.Context(t), bob.Person))
		asAna, asBob := ana.Context(t), bob.Context(t)
		results := make(chan error, 2)
		go func() { results <- f.Service.RemoveOwner(asAna, bob.Person) }()
		go func() { results <- f.Service.RemoveOwner(asBob, ana.Person) }()
		refused := 0
		for range 2 {
			if err := <-results; err != nil {
				identitytest.Is(t, err, errs.CodeLastOwner, "")
				refused++
			}
		}
		if n := f.DB.Count(t, "SELECT count(*) FROM owners"); n != 1 || refused != 1 {
			t.Fatalf("%d owners, %d refused", n, refused)
		}
		if f.DB.Count(t, "SELECT count(*) FROM owners WHERE principal_id = $1", ana.Person) == 0 {
			ana, bob = bob, ana
		}
	}
}

func TestSessionsEndTogether(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	login := func() *identitytest.Client {
		c, err := f.Login(t, identitytest.NewKey(t), "bob", identitytest.Password)
		ok(t, err)
		return c
	}
	second, third := login(), login()
	list, err := f.Service.ListUserSessions(ana.Context(t), bob.Person, ids.ID{}, 10)
	if err != nil || len(list) != 3 || list[0].Current {
		t.Fatalf("%+v, %v", list, err)
	}
	_, err = f.Service.ListUserSessions(bob.Context(t), ana.Person, ids.ID{}, 10)
	identitytest.Is(t, err, errs.CodeNotFound, "")
	ended, err := f.Service.RevokeOtherSessions(second.Context(t))
	if err != nil || ended != 2 {
		t.Fatalf("%d ended, %v", ended, err)
	}
	if _, err := third.Authenticate(t); err == nil {
		t.Error("another session lives on")
	}
	_, err = second.Authenticate(t)
	ok(t, err)
	t.Run("maintenance does not protect a thief", func(t *testing.T) {
		f.Maintenance.Store(true)
		defer f.Maintenance.Store(false)
		ended, err := f.Service.RevokeUserSessions(ana.Context(t), bob.Person)
		if err != nil || ended != 1 {
			t.Fatalf("%d ended, %v", ended, err)
		}
	})
	_, err = second.Authenticate(t)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	fresh := login()
	f.Clock.Advance(6 * time.Minute)
	_, err = f.Service.RevokeOtherSessions(fresh.Context(t))
	identitytest.Is(t, err, errs.CodeStepUpRequired, "")
	_, err = f.Service.RevokeUserSessions(fresh.Context(t), ana.Person)
	identitytest.Is(t, err, errs.CodeNotFound, "")
}
