// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

func setup(t *testing.T, change ...func(*app.Config)) *identitytest.Fixture {
	t.Helper()
	t.Parallel()
	return identitytest.New(t, pgtest.New(t, pgtest.AsApp()), change...)
}

func TestFirstOwner(t *testing.T) {
	f := setup(t)
	ctx := context.Background()
	early, err := f.Service.BootstrapOwner(ctx, app.BootstrapInput{Handle: "ana", DisplayName: "Ana"})
	ok(t, err)
	code, err := f.Service.BootstrapOwner(ctx, app.BootstrapInput{Handle: "ana", DisplayName: "Ana Silva", Email: "ana@example.org"})
	ok(t, err)
	if code.URL != identitytest.Origin+"/#/enroll?code="+code.Code || !code.ExpiresAt.Equal(f.Clock.Now().Add(72*time.Hour)) {
		t.Fatalf("issued %+v", code)
	}
	if f.Grants.Everyone == 0 {
		t.Error("the group of all members was not made")
	}
	t.Run("a code that was replaced is refused", func(t *testing.T) {
		_, err := f.Service.BeginLogin(f.Request(), beginEnrollment(t, f, identitytest.NewKey(t), early.Code))
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	})
	if _, err := f.Service.RecoverOwner(ctx, "ana", false); !errors.Is(err, app.ErrSetupNotComplete) {
		t.Fatalf("recovery before the setup: %v", err)
	}
	ana := f.Enroll(t, strings.ToLower(code.Code))
	if done, _ := f.Instance.SetupComplete(ctx); !done || len(f.Published.Setup) != 1 || f.Published.Setup[0].OwnerID != ana.Person {
		t.Fatalf("setup complete: %v, published %+v", done, f.Published.Setup)
	}
	who, err := ana.Authenticate(t)
	ok(t, err)
	if !who.Owner || who.Kind != actor.KindPerson || who.ID != ana.Person || !who.IsSession() || who.Scopes != nil {
		t.Errorf("authenticated as %+v", who)
	}
	if ana.Account.DisplayName != "Ana Silva" || ana.Account.Person.Email != "ana@example.org" {
		t.Errorf("the second run did not update the person: %+v", ana.Account)
	}
	if _, err := f.Service.BootstrapOwner(ctx, app.BootstrapInput{Handle: "eve", DisplayName: "Eve"}); !errors.Is(err, app.ErrSetupComplete) {
		t.Fatalf("bootstrap after the setup: %v", err)
	}
	_, err = f.Service.BeginLogin(f.Request(), beginEnrollment(t, f, identitytest.NewKey(t), code.Code))
	identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
}

func TestLocalLogin(t *testing.T) {
	f := setup(t)
	owner := f.Owner(t, "ana")
	bob := f.Member(t, owner, "bob")
	t.Run("a known device keeps its row and its session is replaced", func(t *testing.T) {
		again, err := f.Login(t, bob.Key, "Bob", identitytest.Password)
		ok(t, err)
		if again.LoginResult.Device.ID != bob.LoginResult.Device.ID || again.Session.ID == bob.Session.ID {
			t.Fatalf("device %v, session %v", again.LoginResult.Device, again.Session.ID)
		}
		_, err = bob.Authenticate(t)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	})
	t.Run("a second device of the person is active at once", func(t *testing.T) {
		other, err := f.Login(t, identitytest.NewKey(t), "bob", identitytest.Password)
		ok(t, err)
		if other.LoginResult.Device.State != "active" || other.StepUpUntil.IsZero() {
			t.Fatalf("%+v", other.LoginResult)
		}
		if n := f.DB.Count(t, "SELECT count(*) FROM devices WHERE principal_id = $1 AND approved_via = 'policy'", bob.Person); n != 1 {
			t.Errorf("%d devices by policy", n)
		}
	})
	t.Run("a key of somebody else's device", func(t *testing.T) {
		_, err := f.Login(t, owner.Key, "bob", identitytest.Password)
		identitytest.Is(t, err, errs.CodeConflict, "device_key_in_use")
	})
	t.Run("an unverified address is no login name, a verified one is", func(t *testing.T) {
		f.DB.Exec(t, "UPDATE users SET email = 'Bob@Example.org' WHERE principal_id = $1", bob.Person)
		_, err := f.Login(t, identitytest.NewKey(t), "bob@example.org", identitytest.Password)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
		f.DB.Exec(t, "UPDATE users SET email_verified = true WHERE principal_id = $1", bob.Person)
		_, err = f.Login(t, identitytest.NewKey(t), "BOB@example.org", identitytest.Password)
		ok(t, err)
	})
	t.Run("too many devices", func(t *testing.T) {
		small := identitytest.New(t, f.DB, func(c *app.Config) { c.MaxDevices = 1 })
		_, err := small.Login(t, identitytest.NewKey(t), "bob", identitytest.Password)
		identitytest.Is(t, err, errs.CodeConflict, "device_limit")
	})
}

// Every way to fail looks the same from outside, and unknown names cost as many statements.
func TestLoginTellsNothing(t *testing.T) {
	f := setup(t)
	owner := f.Owner(t, "ana")
	bob := f.Member(t, owner, "bob")
	nopass, _, err := f.Service.CreateUser(owner.Context(t), app.CreateUserInput{Handle: "carl", DisplayName: "Carl"})
	ok(t, err)
	f.DB.Exec(t, "UPDATE principals SET status = 'disabled', disabled_at = now(), disabled_reason = 'x' WHERE id = $1", bob.Person)
	var texts []string
	for _, attempt := range []struct{ login, password string }{
		{"nobody", identitytest.Password}, {"ana", "wrong"}, {"bob", identitytest.Password}, {nopass.Handle, identitytest.Password},
	} {
		_, err := f.Login(t, identitytest.NewKey(t), attempt.login, attempt.password)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
		e := errs.As(err)
		raw, _ := json.Marshal([]any{e.Code, e.Message, e.Reason, e.Extensions})
		texts = append(texts, string(raw))
	}
	for _, text := range texts {
		if text != texts[0] {
			t.Errorf("answers differ: %s and %s", texts[0], text)
		}
	}
	if _, denied := f.Audit.Entries(authorize.ActionAuthLoginComplete); len(denied) != len(texts) {
		t.Errorf("%d denials recorded for %d attempts", len(denied), len(texts))
	}
}

func TestFlowRules(t *testing.T) {
	f := setup(t)
	f.Owner(t, "ana")
	begin := func(key *identitytest.Key) app.BegunLogin {
		begun, err := f.Service.BeginLogin(f.Request(), app.BeginLoginInput{
			Proof: f.Proof(t, key, "/auth/login"), Driver: app.DriverLocal, Device: identitytest.Device,
		})
		ok(t, err)
		return begun
	}
	complete := func(key *identitytest.Key, begun app.BegunLogin, password string) error {
		_, err := f.Service.CompleteLogin(f.Request(), app.CompleteLoginInput{
			Proof: f.Proof(t, key, "/c"), FlowID: begun.Flow.ID, Login: "ana", Password: password,
		})
		return err
	}
	t.Run("another key", func(t *testing.T) {
		begun := begin(identitytest.NewKey(t))
		identitytest.Is(t, complete(identitytest.NewKey(t), begun, identitytest.Password), errs.CodeUnauthenticated, "login_failed")
	})
	t.Run("too late", func(t *testing.T) {
		key := identitytest.NewKey(t)
		begun := begin(key)
		f.Clock.Advance(10 * time.Minute)
		identitytest.Is(t, complete(key, begun, identitytest.Password), errs.CodeFlowExpired, "")
	})
	t.Run("five wrong attempts", func(t *testing.T) {
		key := identitytest.NewKey(t)
		begun := begin(key)
		for range 5 {
			identitytest.Is(t, complete(key, begun, "wrong"), errs.CodeUnauthenticated, "login_failed")
		}
		identitytest.Is(t, complete(key, begun, identitytest.Password), errs.CodeFlowExpired, "")
	})
	t.Run("two completions in parallel", func(t *testing.T) {
		key := identitytest.NewKey(t)
		begun := begin(key)
		errors := parallel(2, func() error { return complete(key, begun, identitytest.Password) })
		if (errors[0] == nil) == (errors[1] == nil) {
			t.Fatalf("want one winner: %v", errors)
		}
		for _, err := range errors {
			if err != nil {
				identitytest.Is(t, err, errs.CodeFlowExpired, "")
			}
		}
	})
	t.Run("over the throttle nothing is compared", func(t *testing.T) {
		f.Throttle.Block(true)
		defer f.Throttle.Block(false)
		key := identitytest.NewKey(t)
		identitytest.Is(t, complete(key, begin(key), identitytest.Password), errs.CodeRateLimited, "")
	})
}

func TestLockout(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	for range 20 {
		_, err := f.Login(t, identitytest.NewKey(t), "ana", "wrong")
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	}
	_, err := f.Login(t, identitytest.NewKey(t), "ana", identitytest.Password)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	if _, err := f.Login(t, ana.Key, "ana", identitytest.Password); err != nil {
		t.Fatalf("a known device is shut out: %v", err)
	}
	if n := f.DB.Count(t, "SELECT failed_count FROM local_credentials WHERE principal_id = $1", ana.Person); n != 0 {
		t.Errorf("a success leaves %d failures", n)
	}
	for range 20 {
		_, _ = f.Login(t, identitytest.NewKey(t), "ana", "wrong")
	}
	f.Clock.Advance(15 * time.Minute)
	if _, err := f.Login(t, identitytest.NewKey(t), "ana", identitytest.Password); err != nil {
		t.Fatalf("still locked after the duration: %v", err)
	}
}

func TestProofNonceAndReplay(t *testing.T) {
	f := setup(t)
	key := identitytest.NewKey(t)
	url := identitytest.Origin + "/api/v1/auth/login"
	begin := func(c identitytest.Claims) error {
		c.Method, c.URL, c.IssuedAt = "POST", url, f.Clock.Now()
		_, err := f.Service.BeginLogin(f.Request(), app.BeginLoginInput{
			Proof:  app.ProofInput{Compact: key.Proof(t, c), Method: "POST", URL: url},
			Driver: app.DriverLocal, Device: identitytest.Device,
		})
		return err
	}
	err := begin(identitytest.Claims{})
	identitytest.Is(t, err, errs.CodeUseDPoPNonce, "")
	nonce, _ := errs.As(err).Extensions["dpop_nonce"].(string)
	ok(t, begin(identitytest.Claims{Nonce: nonce, JTI: "0123456789abcdef0"}))
	identitytest.Is(t, begin(identitytest.Claims{Nonce: nonce, JTI: "0123456789abcdef0"}), errs.CodeInvalidDPoPProof, "")
	ok(t, begin(identitytest.Claims{Nonce: nonce, JTI: "another-identifier"}))
	if fresh, needed := f.Proofs.Renewal(nonce); fresh != "" || needed {
		t.Error("a young nonce is renewed")
	}
	f.Clock.Advance(time.Minute)
	if fresh, needed := f.Proofs.Renewal(nonce); fresh == "" || needed {
		t.Error("a nonce of a minute is not renewed")
	}
	f.Clock.Advance(2 * time.Minute)
	identitytest.Is(t, begin(identitytest.Claims{Nonce: nonce}), errs.CodeUseDPoPNonce, "")
	t.Run("a nonce from before the start", func(t *testing.T) {
		early := f.Proofs.Nonce()
		f.Clock.Advance(time.Second)
		restarted := identitytest.New(t, f.DB)
		restarted.Clock.Advance(f.Clock.Now().Sub(identitytest.Start))
		late, err := app.NewProofs(f.Config, restarted.Clock)
		ok(t, err)
		proof := key.Proof(t, identitytest.Claims{Method: "POST", URL: url, Nonce: early, IssuedAt: f.Clock.Now()})
		_, err = late.Verify(proof, domain.ProofRequest{Method: "POST", URL: url})
		identitytest.Is(t, err, errs.CodeUseDPoPNonce, "")
	})
}

// At its bound the memory forgets the oldest nonces and refuses them from then on.
func TestReplayMemoryIsBounded(t *testing.T) {
	f := setup(t, func(c *app.Config) { c.DPoPReplayMax = 10 })
	key := identitytest.NewKey(t)
	url := identitytest.Origin + "/x"
	verify := func(nonce string) error {
		proof := key.Proof(t, identitytest.Claims{Method: "GET", URL: url, Nonce: nonce, IssuedAt: f.Clock.Now()})
		_, err := f.Proofs.Verify(proof, domain.ProofRequest{Method: "GET", URL: url})
		return err
	}
	old := f.Proofs.Nonce()
	for range 10 {
		ok(t, verify(old))
	}
	f.Clock.Advance(2 * time.Second)
	ok(t, verify(f.Proofs.Nonce()))
	identitytest.Is(t, verify(old), errs.CodeUseDPoPNonce, "")
}

func TestEnrollment(t *testing.T) {
	f := setup(t)
	owner := f.Owner(t, "ana")
	_, code, err := f.Service.CreateUser(owner.Context(t), app.CreateUserInput{Handle: "bob", DisplayName: "Bob", IssueCode: true})
	ok(t, err)
	key := identitytest.NewKey(t)
	begun, err := f.Service.BeginLogin(f.Request(), beginEnrollment(t, f, key, code.Code))
	ok(t, err)
	if begun.Purpose != domain.PurposeInvite || begun.Handle != "bob" {
		t.Fatalf("begun %+v", begun)
	}
	complete := func(password string) error {
		_, err := f.Service.CompleteLogin(f.Request(), app.CompleteLoginInput{
			Proof: f.Proof(t, key, "/c"), FlowID: begun.Flow.ID, CredentialKind: "password", NewPassword: password,
		})
		return err
	}
	for password, want := range map[string]string{"short": "too_short", "passwordpassword": "too_common", "i am rivendell too": "contains_context"} {
		err := complete(password)
		identitytest.Is(t, err, errs.CodeValidationFailed, "")
		if fields := errs.As(err).Fields; len(fields) != 1 || fields[0].Code != want || fields[0].Pointer != "/credential/password" {
			t.Errorf("%q: %+v", password, fields)
		}
	}
	results := parallel(2, func() error { return complete(identitytest.Password) })
	if (results[0] == nil) == (results[1] == nil) {
		t.Fatalf("want one redemption: %v", results)
	}
	t.Run("an expired code", func(t *testing.T) {
		_, code, err := f.Service.CreateUser(owner.Context(t), app.CreateUserInput{Handle: "carl", DisplayName: "Carl", IssueCode: true})
		ok(t, err)
		f.Clock.Advance(72 * time.Hour)
		_, err = f.Service.BeginLogin(f.Request(), beginEnrollment(t, f, identitytest.NewKey(t), code.Code))
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	})
}

func TestRecoveryStartsOver(t *testing.T) {
	f := setup(t)
	owner := f.Owner(t, "ana")
	bob := f.Member(t, owner, "bob")
	_, err := f.Service.IssueEnrollmentCode(owner.Context(t), owner.Person)
	identitytest.Is(t, err, errs.CodeForbidden, "target_is_owner")
	code, err := f.Service.IssueEnrollmentCode(owner.Context(t), bob.Person)
	ok(t, err)
	again := f.Enroll(t, code.Code)
	if again.Person != bob.Person || again.LoginResult.Device.ID == bob.LoginResult.Device.ID {
		t.Fatalf("recovered %+v", again.LoginResult)
	}
	_, err = bob.Authenticate(t)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	if len(f.Published.Revoked) != 1 || f.Published.Revoked[0].Reason != "recovered" {
		t.Errorf("published %+v", f.Published.Revoked)
	}
	t.Run("the operator recovers an owner", func(t *testing.T) {
		code, err := f.Service.RecoverOwner(context.Background(), "ana", false)
		ok(t, err)
		if !code.ExpiresAt.Equal(f.Clock.Now().Add(time.Hour)) {
			t.Errorf("a recovery lives until %v", code.ExpiresAt)
		}
		if f.Enroll(t, code.Code).Person != owner.Person {
			t.Error("somebody else was recovered")
		}
		_, err = f.Service.RecoverOwner(context.Background(), "bob", true)
		identitytest.Is(t, err, errs.CodeConflict, "owner_exists")
		_, err = f.Service.RecoverOwner(context.Background(), "bob", false)
		identitytest.Is(t, err, errs.CodeConflict, "not_owner")
		_, err = f.Service.RecoverOwner(context.Background(), "nobody", false)
		identitytest.Is(t, err, errs.CodeNotFound, "")
	})
	t.Run("promotion when no owner can sign in", func(t *testing.T) {
		f.DB.Exec(t, "DELETE FROM local_credentials WHERE principal_id = $1", owner.Person)
		_, err := f.Service.RecoverOwner(context.Background(), "bob", true)
		ok(t, err)
		if owners, _ := f.Sources.ActiveOwners(context.Background()); len(owners) != 2 {
			t.Errorf("owners %v", owners)
		}
	})
}

// beginEnrollment is the input of a login by code.
func beginEnrollment(t *testing.T, f *identitytest.Fixture, key *identitytest.Key, code string) app.BeginLoginInput {
	return app.BeginLoginInput{
		Proof: f.Proof(t, key, "/auth/login"), Driver: app.DriverEnrollment, Code: code, Device: identitytest.Device,
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parallel runs fn n times at once and gives the errors.
func parallel(n int, fn func() error) []error {
	out := make([]error, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			out[i] = fn()
		})
	}
	close(start)
	wg.Wait()
	return out
}
