// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// register adds a passkey of the authenticator to the account of the client.
func register(t *testing.T, f *identitytest.Fixture, c *identitytest.Client, a *identitytest.Authenticator) app.Passkey {
	t.Helper()
	request, err := f.Service.BeginPasskey(c.Context(t))
	ok(t, err)
	p, err := f.Service.RegisterPasskey(c.Context(t), "Key", a.Create(t, identitytest.AskOf(&request)))
	ok(t, err)
	return p
}

// passkeyLogin begins a login; the function completes it with an answer.
func passkeyLogin(t *testing.T, f *identitytest.Fixture, key *identitytest.Key) (app.BegunLogin, func(json.RawMessage) (app.LoginResult, error)) {
	t.Helper()
	begun, err := f.Service.BeginLogin(f.Request(), app.BeginLoginInput{
		Proof: f.Proof(t, key, "/auth/login"), Driver: app.DriverPasskey, Device: identitytest.Device,
	})
	ok(t, err)
	return begun, func(answer json.RawMessage) (app.LoginResult, error) {
		return f.Service.CompleteLogin(f.Request(), app.CompleteLoginInput{
			Proof: f.Proof(t, key, "/auth/login/complete"), FlowID: begun.Flow.ID, Passkey: answer,
		})
	}
}

func TestPasskeyLogin(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	a := identitytest.NewAuthenticator()
	a.Counts = true
	made := register(t, f, ana, a)
	if made.Name != "Key" || made.LastUsedAt != nil || !slices.Equal(made.Transports, []string{"internal", "hybrid"}) {
		t.Errorf("made %+v", made)
	}
	key := identitytest.NewKey(t)
	begun, complete := passkeyLogin(t, f, key)
	if len(begun.Passkey.Known) != 0 || begun.Passkey.New != nil || begun.Passkey.RelyingPartyID != "chat.example" {
		t.Errorf("asked %+v", begun.Passkey)
	}
	answer := a.Get(t, identitytest.AskOf(begun.Passkey))
	result, err := complete(answer)
	ok(t, err)
	if result.Account.ID != ana.Person || result.StepUpUntil.IsZero() || !slices.Equal(result.Session.AMR, []string{"hwk", "user", "mfa"}) {
		t.Errorf("signed in %+v", result)
	}
	if n := f.DB.Count(t, "SELECT count(*) FROM auth_sessions WHERE id = $1 AND driver = 'passkey' AND step_up_method = 'passkey'", result.Session.ID); n != 1 {
		t.Error("the session does not tell how she proved herself")
	}
	if n := f.DB.Count(t, "SELECT sign_count FROM passkey_credentials WHERE id = $1 AND last_used_at IS NOT NULL", made.ID); n != 1 {
		t.Errorf("the counter is %d", n)
	}
	t.Run("the same answer again", func(t *testing.T) {
		_, err := complete(answer)
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
		_, again := passkeyLogin(t, f, key)
		_, err = again(answer)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	})
	t.Run("one answer, two completions", func(t *testing.T) {
		begun, complete := passkeyLogin(t, f, key)
		answer := a.Get(t, identitytest.AskOf(begun.Passkey))
		results := parallel(2, func() error { _, err := complete(answer); return err })
		if (results[0] == nil) == (results[1] == nil) {
			t.Fatalf("want one winner: %v", results)
		}
	})
	t.Run("nothing at all", func(t *testing.T) {
		_, complete := passkeyLogin(t, f, key)
		_, err := complete(nil)
		identitytest.Is(t, err, errs.CodeValidationFailed, "")
	})
}

// Every way to fail has one answer, and none costs the passkey.
func TestPasskeyLoginIsRefused(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	good := identitytest.NewAuthenticator()
	good.Counts = true
	register(t, f, ana, good)
	bobs := identitytest.NewAuthenticator()
	register(t, f, bob, bobs)
	revoked := identitytest.NewAuthenticator()
	gone := register(t, f, ana, revoked)
	ok(t, f.Service.RevokePasskey(ana.Context(t), ana.Person, gone.ID))
	unknown := identitytest.NewAuthenticator()
	unknown.Create(t, identitytest.Ask{Challenge: make([]byte, 32), RPID: "chat.example", UserID: domain.UserHandle(ana.Person)})
	for name, spoil := range map[string]func(a **identitytest.Authenticator, ask *identitytest.Ask){
		"wrong origin":        func(a **identitytest.Authenticator, _ *identitytest.Ask) { (*a).Origin = "https://evil.example" },
		"wrong relying party": func(a **identitytest.Authenticator, _ *identitytest.Ask) { (*a).RPID = "evil.example" },
		"not verified":        func(a **identitytest.Authenticator, _ *identitytest.Ask) { (*a).NoVerification = true },
		"not present":         func(a **identitytest.Authenticator, _ *identitytest.Ask) { (*a).NoUser = true },
		"changed signature":   func(a **identitytest.Authenticator, _ *identitytest.Ask) { (*a).Spoil = true },
		"another's user handle": func(a **identitytest.Authenticator, _ *identitytest.Ask) {
			(*a).UserHandle = domain.UserHandle(bob.Person)
		},
		"no user handle": func(a **identitytest.Authenticator, _ *identitytest.Ask) { (*a).UserHandle = []byte{} },
		"a challenge we never made": func(_ **identitytest.Authenticator, ask *identitytest.Ask) {
			ask.Challenge = make([]byte, 32)
		},
		"the challenge of another login": func(_ **identitytest.Authenticator, ask *identitytest.Ask) {
			other, _ := passkeyLogin(t, f, identitytest.NewKey(t))
			ask.Challenge = other.Passkey.Challenge[:]
		},
		"the challenge of a registration": func(_ **identitytest.Authenticator, ask *identitytest.Ask) {
			request, err := f.Service.BeginPasskey(ana.Context(t))
			ok(t, err)
			ask.Challenge = request.Challenge[:]
		},
		"a revoked passkey":  func(a **identitytest.Authenticator, _ *identitytest.Ask) { *a = revoked },
		"an unknown passkey": func(a **identitytest.Authenticator, _ *identitytest.Ask) { *a = unknown },
	} {
		t.Run(name, func(t *testing.T) {
			begun, complete := passkeyLogin(t, f, identitytest.NewKey(t))
			ask, a := identitytest.AskOf(begun.Passkey), good.Clone()
			spoil(&a, &ask)
			_, err := complete(a.Get(t, ask))
			identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
			if n := f.DB.Count(t, "SELECT attempts FROM auth_login_flows WHERE id = $1", begun.Flow.ID); n != 1 {
				t.Errorf("%d attempts are counted", n)
			}
		})
	}
	t.Run("a person who was disabled", func(t *testing.T) {
		begun, complete := passkeyLogin(t, f, identitytest.NewKey(t))
		f.DB.Exec(t, "UPDATE principals SET status = 'disabled', disabled_at = now(), disabled_reason = 'x' WHERE id = $1", bob.Person)
		_, err := complete(bobs.Get(t, identitytest.AskOf(begun.Passkey)))
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	})
	t.Run("five wrong answers end the flow", func(t *testing.T) {
		begun, complete := passkeyLogin(t, f, identitytest.NewKey(t))
		bad := good.Clone()
		bad.Spoil = true
		for range 5 {
			_, err := complete(bad.Get(t, identitytest.AskOf(begun.Passkey)))
			identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
		}
		_, err := complete(good.Clone().Get(t, identitytest.AskOf(begun.Passkey)))
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
	})
	t.Run("after five minutes", func(t *testing.T) {
		begun, complete := passkeyLogin(t, f, identitytest.NewKey(t))
		f.Clock.Advance(domain.PasskeyTimeout)
		_, err := complete(good.Clone().Get(t, identitytest.AskOf(begun.Passkey)))
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	})
	t.Run("none of it cost the passkey", func(t *testing.T) {
		begun, complete := passkeyLogin(t, f, identitytest.NewKey(t))
		_, err := complete(good.Get(t, identitytest.AskOf(begun.Passkey)))
		ok(t, err)
	})
}

func TestACopiedPasskeyIsNoticed(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	original := identitytest.NewAuthenticator()
	original.Counts = true
	register(t, f, ana, original)
	login := func(a *identitytest.Authenticator) error {
		begun, complete := passkeyLogin(t, f, identitytest.NewKey(t))
		_, err := complete(a.Get(t, identitytest.AskOf(begun.Passkey)))
		return err
	}
	ok(t, login(original))
	thief := original.Clone()
	ok(t, login(thief))
	identitytest.Is(t, login(original), errs.CodeUnauthenticated, "login_failed")
	_, denied := f.Audit.Entries(authorize.ActionAuthLoginComplete)
	found := false
	for _, e := range denied {
		found = found || e.Reason == "passkey_clone_suspected" && e.ResourceID == ana.Person
	}
	if !found {
		t.Errorf("nobody is told: %+v", denied)
	}
	t.Run("two copies with one counter at once", func(t *testing.T) {
		one, two := thief.Clone(), thief.Clone()
		begun1, complete1 := passkeyLogin(t, f, identitytest.NewKey(t))
		begun2, complete2 := passkeyLogin(t, f, identitytest.NewKey(t))
		answers := []json.RawMessage{one.Get(t, identitytest.AskOf(begun1.Passkey)), two.Get(t, identitytest.AskOf(begun2.Passkey))}
		done := make(chan error, 2)
		go func() { _, err := complete1(answers[0]); done <- err }()
		go func() { _, err := complete2(answers[1]); done <- err }()
		first, second := <-done, <-done
		if (first == nil) == (second == nil) {
			t.Errorf("want one winner: %v, %v", first, second)
		}
	})
}

func TestRegisteringPasskeys(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	begin := func(c *identitytest.Client) identitytest.Ask {
		request, err := f.Service.BeginPasskey(c.Context(t))
		ok(t, err)
		return identitytest.AskOf(&request)
	}
	t.Run("the challenge of another session", func(t *testing.T) {
		_, err := f.Service.RegisterPasskey(bob.Context(t), "x", identitytest.NewAuthenticator().Create(t, begin(ana)))
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
	})
	t.Run("a challenge twice", func(t *testing.T) {
		ask := begin(ana)
		_, err := f.Service.RegisterPasskey(ana.Context(t), "x", identitytest.NewAuthenticator().Create(t, ask))
		ok(t, err)
		_, err = f.Service.RegisterPasskey(ana.Context(t), "x", identitytest.NewAuthenticator().Create(t, ask))
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
	})
	t.Run("a bad answer is a fault and costs nothing", func(t *testing.T) {
		ask, a := begin(ana), identitytest.NewAuthenticator()
		a.NoVerification = true
		_, err := f.Service.RegisterPasskey(ana.Context(t), "x", a.Create(t, ask))
		identitytest.Is(t, err, errs.CodeValidationFailed, "")
		a.NoVerification = false
		_, err = f.Service.RegisterPasskey(ana.Context(t), "x", a.Create(t, ask))
		ok(t, err)
	})
	t.Run("a bad name", func(t *testing.T) {
		_, err := f.Service.RegisterPasskey(ana.Context(t), "\u202e", identitytest.NewAuthenticator().Create(t, begin(ana)))
		identitytest.Is(t, err, errs.CodeValidationFailed, "")
	})
	t.Run("a passkey that is known", func(t *testing.T) {
		made := register(t, f, bob, identitytest.NewAuthenticator())
		request, err := f.Service.BeginPasskey(ana.Context(t))
		ok(t, err)
		answer := identitytest.NewAuthenticator().Create(t, identitytest.AskOf(&request))
		_, credential, err := f.Ceremonies.Read(answer)
		ok(t, err)
		f.DB.Exec(t, "UPDATE passkey_credentials SET credential_id = $2 WHERE id = $1", made.ID, credential)
		_, err = f.Service.RegisterPasskey(ana.Context(t), "x", answer)
		identitytest.Is(t, err, errs.CodeConflict, "passkey_in_use")
	})
	t.Run("twenty are enough", func(t *testing.T) {
		carl := f.Member(t, ana, "carl")
		for range domain.PasskeyMax - 1 {
			register(t, f, carl, identitytest.NewAuthenticator())
		}
		late := begin(carl)
		register(t, f, carl, identitytest.NewAuthenticator())
		_, err := f.Service.RegisterPasskey(carl.Context(t), "x", identitytest.NewAuthenticator().Create(t, late))
		identitytest.Is(t, err, errs.CodeConflict, "passkey_limit")
		_, err = f.Service.BeginPasskey(carl.Context(t))
		identitytest.Is(t, err, errs.CodeConflict, "passkey_limit")
	})
}

// Who has a credential needs a fresh proof; who has none yet may set the first right after
// a login.
func TestTheFirstCredentialNeedsARecentLogin(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	f.Clock.Advance(5 * time.Minute)
	_, err := f.Service.BeginPasskey(ana.Context(t))
	identitytest.Is(t, err, errs.CodeStepUpRequired, "")
	if _, denied := f.Audit.Entries(authorize.ActionPasskeyRegister); len(denied) != 1 || denied[0].Reason != "step_up_missing" {
		t.Errorf("recorded %+v", denied)
	}
	f.DB.Exec(t, "DELETE FROM local_credentials WHERE principal_id = $1", ana.Person)
	_, err = f.Service.BeginPasskey(ana.Context(t))
	identitytest.Is(t, err, errs.CodeStepUpRequired, "")
	f.DB.Exec(t, "UPDATE auth_sessions SET auth_time = $2 WHERE id = $1", ana.Session.ID, f.Clock.Now().Add(-time.Minute))
	identitytest.Is(t, f.Service.RemovePassword(context.Background()), errs.CodeUnauthenticated, "")
	ok(t, f.Service.SetPassword(ana.Context(t), "another-Kiln-vowel-9", false))
	_, err = f.Service.BeginPasskey(ana.Context(t))
	identitytest.Is(t, err, errs.CodeStepUpRequired, "")
}

func TestStepUpByPasskey(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	_, err := f.Service.BeginStepUp(ana.Context(t), "passkey")
	identitytest.Is(t, err, errs.CodeConflict, "no_step_up_method")
	a, bobs := identitytest.NewAuthenticator(), identitytest.NewAuthenticator()
	register(t, f, ana, a)
	register(t, f, bob, bobs)
	begin := func() app.BegunStepUp {
		begun, err := f.Service.BeginStepUp(ana.Context(t), "passkey")
		ok(t, err)
		if len(begun.Passkey.Known) != 1 {
			t.Fatalf("asked %+v", begun.Passkey)
		}
		return begun
	}
	complete := func(begun app.BegunStepUp, answer json.RawMessage) (app.StepUpResult, error) {
		return f.Service.CompleteStepUp(ana.Context(t), begun.Flow.ID, app.StepUpProof{Passkey: answer})
	}
	f.Clock.Advance(5 * time.Minute)
	t.Run("the passkey of another person", func(t *testing.T) {
		begun := begin()
		ask := identitytest.AskOf(begun.Passkey)
		ask.Allow = nil
		_, err := complete(begun, bobs.Get(t, ask))
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	})
	t.Run("a password where a passkey was asked", func(t *testing.T) {
		_, err := f.Service.CompleteStepUp(ana.Context(t), begin().Flow.ID, app.StepUpProof{Password: identitytest.Password})
		identitytest.Is(t, err, errs.CodeValidationFailed, "")
	})
	t.Run("the answer of a login", func(t *testing.T) {
		login, _ := passkeyLogin(t, f, identitytest.NewKey(t))
		_, err := complete(begin(), a.Get(t, identitytest.AskOf(login.Passkey)))
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	})
	begun := begin()
	result, err := complete(begun, a.Get(t, identitytest.AskOf(begun.Passkey)))
	ok(t, err)
	_, err = ana.Authenticate(t)
	identitytest.Is(t, err, errs.CodeTokenExpired, "")
	ana.AccessToken = result.AccessToken
	if n := f.DB.Count(t, "SELECT count(*) FROM auth_sessions WHERE id = $1 AND step_up_method = 'passkey' AND token_epoch = 2", ana.Session.ID); n != 1 {
		t.Error("the session does not tell the method")
	}
}

func TestEnrollmentWithAPasskey(t *testing.T) {
	f := setup(t)
	ctx := context.Background()
	code, err := f.Service.BootstrapOwner(ctx, app.BootstrapInput{Handle: "ana", DisplayName: "Ana"})
	ok(t, err)
	key, a := identitytest.NewKey(t), identitytest.NewAuthenticator()
	a.BackedUp = true
	enroll := func(code string, spoil bool) (app.LoginResult, error) {
		begun, err := f.Service.BeginLogin(f.Request(), beginEnrollment(t, f, key, code))
		ok(t, err)
		if !slices.Equal(begun.Methods, []string{"passkey", "password"}) || begun.Passkey.New.Handle != "ana" || begun.Passkey.New.InstanceName != "Rivendell" {
			t.Fatalf("begun %+v", begun)
		}
		maker := a
		if spoil {
			maker = identitytest.NewAuthenticator()
			maker.Origin = "https://evil.example"
		}
		return f.Service.CompleteLogin(f.Request(), app.CompleteLoginInput{
			Proof: f.Proof(t, key, "/c"), FlowID: begun.Flow.ID, CredentialKind: "passkey", NewPasskey: maker.Create(t, identitytest.AskOf(begun.Passkey)),
		})
	}
	_, err = enroll(code.Code, true)
	identitytest.Is(t, err, errs.CodeValidationFailed, "")
	result, err := enroll(code.Code, false)
	ok(t, err)
	if !slices.Equal(result.Session.AMR, []string{"swk", "user", "mfa"}) || result.Account.Person.Passkeys != 1 || result.Account.Person.HasPassword {
		t.Errorf("signed in %+v", result)
	}
	if n := f.DB.Count(t, "SELECT count(*) FROM passkey_credentials WHERE name = $1", identitytest.Device.Name); n != 1 {
		t.Error("the passkey is not named after the device")
	}
	t.Run("a recovery takes the passkeys away", func(t *testing.T) {
		code, err := f.Service.RecoverOwner(ctx, "ana", false)
		ok(t, err)
		begun, complete := passkeyLogin(t, f, identitytest.NewKey(t))
		old := a.Clone()
		_, err = enroll(code.Code, false)
		ok(t, err)
		_, err = complete(old.Get(t, identitytest.AskOf(begun.Passkey)))
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
		if n := f.DB.Count(t, "SELECT count(*) FROM passkey_credentials WHERE revoked_at IS NULL"); n != 1 {
			t.Errorf("%d passkeys are left", n)
		}
	})
	t.Run("a passkey is a way in for owners", func(t *testing.T) {
		_, err := f.Service.RecoverOwner(ctx, "ana", true)
		ok(t, err)
		if able := f.DB.Count(t, "SELECT count(*) FROM local_credentials"); able != 0 {
			t.Fatal("a password is there")
		}
	})
}

func TestRevokingPasskeys(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	list := func(c *identitytest.Client) []app.Passkey {
		l, err := f.Service.ListPasskeys(c.Context(t))
		ok(t, err)
		return l
	}
	first := register(t, f, bob, identitytest.NewAuthenticator())
	f.Clock.Advance(time.Second)
	second := register(t, f, bob, identitytest.NewAuthenticator())
	if l := list(bob); len(l) != 2 || l[0].ID != second.ID {
		t.Fatalf("listed %+v", l)
	}
	renamed, err := f.Service.RenamePasskey(bob.Context(t), first.ID, "Laptop")
	ok(t, err)
	if renamed.Name != "Laptop" || renamed.ID != first.ID {
		t.Errorf("renamed %+v", renamed)
	}
	_, err = f.Service.RenamePasskey(ana.Context(t), first.ID, "Mine")
	identitytest.Is(t, err, errs.CodeNotFound, "")
	identitytest.Is(t, f.Service.RevokePasskey(bob.Context(t), ana.Person, first.ID), errs.CodeNotFound, "")
	identitytest.Is(t, f.Service.RevokePasskey(ana.Context(t), ana.Person, first.ID), errs.CodeNotFound, "")
	ok(t, f.Service.RevokePasskey(bob.Context(t), bob.Person, first.ID))
	identitytest.Is(t, f.Service.RevokePasskey(bob.Context(t), bob.Person, first.ID), errs.CodeNotFound, "")
	ok(t, f.Service.RemovePassword(bob.Context(t)))
	ok(t, f.Service.RemovePassword(bob.Context(t)))
	identitytest.Is(t, f.Service.RevokePasskey(bob.Context(t), bob.Person, second.ID), errs.CodeConflict, "no_login_left")
	ok(t, f.Service.RevokePasskey(ana.Context(t), bob.Person, second.ID))
	if len(list(bob)) != 0 {
		t.Error("a passkey is left")
	}
	identitytest.Is(t, f.Service.RemovePassword(ana.Context(t)), errs.CodeConflict, "no_login_left")
	last := register(t, f, ana, identitytest.NewAuthenticator())
	ok(t, f.Service.RemovePassword(ana.Context(t)))
	f.DB.Exec(t, "INSERT INTO owners (principal_id, added_at) VALUES ($1, now())", bob.Person)
	identitytest.Is(t, f.Service.RevokePasskey(bob.Context(t), ana.Person, last.ID), errs.CodeConflict, "no_login_left")
	t.Run("two removals at once leave one", func(t *testing.T) {
		register(t, f, ana, identitytest.NewAuthenticator())
		keys := list(ana)
		done := make(chan error, 2)
		for _, k := range keys {
			go func() { done <- f.Service.RevokePasskey(ana.Context(t), ana.Person, k.ID) }()
		}
		one, two := <-done, <-done
		if (one == nil) == (two == nil) {
			t.Errorf("want one winner: %v, %v", one, two)
		}
	})
}

func TestChallengesAreCleanedUp(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	passkeyLogin(t, f, identitytest.NewKey(t))
	_, err := f.Service.BeginPasskey(ana.Context(t))
	ok(t, err)
	f.Clock.Advance(domain.PasskeyTimeout)
	ok(t, f.Service.Cleanup(context.Background()))
	if n := f.DB.Count(t, "SELECT count(*) FROM auth_challenges"); n != 0 {
		t.Errorf("%d challenges are left", n)
	}
}
