// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

func TestAccessTokenChecks(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	url := identitytest.Origin + "/api/v1/me"
	credentials := func(edit func(c *identitytest.Claims)) actor.Credentials {
		c := identitytest.Claims{Method: "GET", URL: url, Nonce: f.Proofs.Nonce(), AccessToken: ana.AccessToken, IssuedAt: f.Clock.Now()}
		edit(&c)
		return actor.Credentials{Authorization: "DPoP " + ana.AccessToken, Proof: ana.Key.Proof(t, c), Method: "GET", URL: url}
	}
	for name, c := range map[string]struct {
		credentials actor.Credentials
		code        errs.Code
	}{
		"another method":    {credentials(func(c *identitytest.Claims) { c.Method = "POST" }), errs.CodeInvalidDPoPProof},
		"another address":   {credentials(func(c *identitytest.Claims) { c.URL += "/x" }), errs.CodeInvalidDPoPProof},
		"another token":     {credentials(func(c *identitytest.Claims) { c.AccessToken = "x" }), errs.CodeInvalidDPoPProof},
		"no token in it":    {credentials(func(c *identitytest.Claims) { c.AccessToken = "" }), errs.CodeInvalidDPoPProof},
		"no nonce":          {credentials(func(c *identitytest.Claims) { c.Nonce = "" }), errs.CodeUseDPoPNonce},
		"no proof":          {actor.Credentials{Authorization: "DPoP " + ana.AccessToken, Method: "GET", URL: url}, errs.CodeInvalidDPoPProof},
		"as bearer":         {actor.Credentials{Authorization: "Bearer " + ana.AccessToken, Method: "GET", URL: url}, errs.CodeUnauthenticated},
		"an unknown scheme": {actor.Credentials{Authorization: "Basic YTpi", Method: "GET", URL: url}, errs.CodeUnauthenticated},
		"an order of a person": {func() actor.Credentials {
			c := ana.Credentials(t)
			c.InvocationToken = "x"
			return c
		}(), errs.CodeUnauthenticated},
	} {
		_, err := f.Auth.Authenticate(f.Request(), c.credentials)
		if e := errs.As(err); e == nil || e.Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	t.Run("the key of another device", func(t *testing.T) {
		thief := *ana
		thief.Key = identitytest.NewKey(t)
		_, err := thief.Authenticate(t)
		identitytest.Is(t, err, errs.CodeInvalidDPoPProof, "")
	})
	t.Run("the same proof twice", func(t *testing.T) {
		c := ana.Credentials(t)
		_, err := f.Auth.Authenticate(f.Request(), c)
		ok(t, err)
		_, err = f.Auth.Authenticate(f.Request(), c)
		identitytest.Is(t, err, errs.CodeInvalidDPoPProof, "")
	})
	t.Run("without credentials", func(t *testing.T) {
		who, err := f.Auth.Authenticate(f.Request(), actor.Credentials{Method: "GET", URL: url})
		if err != nil || who.Kind != actor.KindAnonymous {
			t.Errorf("%+v, %v", who, err)
		}
	})
	t.Run("an expired token", func(t *testing.T) {
		f.Clock.Advance(10 * time.Minute)
		_, err := ana.Authenticate(t)
		identitytest.Is(t, err, errs.CodeTokenExpired, "")
	})
}

func TestRefresh(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	first := ana.RefreshToken
	second, err := ana.Refresh(t, first)
	ok(t, err)
	if second.RefreshToken == first || second.Account != nil || second.Session.ID != ana.Session.ID {
		t.Fatalf("refreshed to %+v", second)
	}
	t.Run("a lost answer", func(t *testing.T) {
		again, err := ana.Refresh(t, first)
		ok(t, err)
		third, err := ana.Refresh(t, again.RefreshToken)
		ok(t, err)
		ana.LoginResult = third
		ana.Account = second.Account
	})
	t.Run("the new access token works", func(t *testing.T) {
		_, err := ana.Authenticate(t)
		ok(t, err)
	})
	t.Run("another key", func(t *testing.T) {
		thief := *ana
		thief.Key = identitytest.NewKey(t)
		_, err := thief.Refresh(t, ana.RefreshToken)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	})
	t.Run("a token that never was", func(t *testing.T) {
		_, err := ana.Refresh(t, "bothy_rt_x")
		identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	})
	t.Run("a superseded token ends session and family", func(t *testing.T) {
		_, err := ana.Refresh(t, second.RefreshToken)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
		_, err = ana.Authenticate(t)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
		_, err = ana.Refresh(t, ana.RefreshToken)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
		ended := f.Published.Ended
		if len(ended) != 1 || ended[0].Reason != "token_reuse" || ended[0].SessionID != ana.Session.ID {
			t.Errorf("published %+v", ended)
		}
		if n := len(f.Events.OfType("session.revoked")); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

func TestRefreshRace(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	results := make(chan app.LoginResult, 2)
	for _, err := range parallel(2, func() error {
		r, err := ana.Refresh(t, ana.RefreshToken)
		results <- r
		return err
	}) {
		ok(t, err)
	}
	close(results)
	works := 0
	for r := range results {
		if n := f.DB.Count(t, "SELECT count(*) FROM refresh_tokens WHERE used_at IS NULL AND superseded_at IS NULL AND token_hash = sha256($1::bytea)", []byte(r.RefreshToken)); n == 1 {
			works++
		}
	}
	if works != 1 {
		t.Fatalf("%d of two successors may be exchanged", works)
	}
}

func TestRefreshInMaintenance(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	f.Maintenance.Store(true)
	for range 2 {
		r, err := ana.Refresh(t, ana.RefreshToken)
		ok(t, err)
		if r.RefreshToken != ana.RefreshToken || r.AccessToken == ana.AccessToken {
			t.Fatal("maintenance rotates the refresh token or gives no access token")
		}
		ana.AccessToken = r.AccessToken
		_, err = ana.Authenticate(t)
		ok(t, err)
	}
	_, err := ana.Refresh(t, "bothy_rt_x")
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	f.Maintenance.Store(false)
	_, err = ana.Refresh(t, ana.RefreshToken)
	ok(t, err)
}

func TestSessionLifetime(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		f := setup(t)
		ana := f.Owner(t, "ana")
		f.Clock.Advance(720*time.Hour - time.Second)
		r, err := ana.Refresh(t, ana.RefreshToken)
		ok(t, err)
		if !r.Session.IdleExpiresAt.After(ana.Session.IdleExpiresAt) {
			t.Error("an exchange does not keep the session awake")
		}
		f.Clock.Advance(720 * time.Hour)
		_, err = ana.Refresh(t, r.RefreshToken)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	})
	t.Run("absolute", func(t *testing.T) {
		f := setup(t)
		ana := f.Owner(t, "ana")
		token := ana.RefreshToken
		for f.Clock.Now().Add(500 * time.Hour).Before(ana.Session.ExpiresAt) {
			f.Clock.Advance(500 * time.Hour)
			r, err := ana.Refresh(t, token)
			ok(t, err)
			token = r.RefreshToken
		}
		f.Clock.Advance(500 * time.Hour)
		_, err := ana.Refresh(t, token)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	})
}

func TestStepUp(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	f.Clock.Advance(5 * time.Minute)
	_, err := f.Service.IssueEnrollmentCode(ana.Context(t), bob.Person)
	identitytest.Is(t, err, errs.CodeStepUpRequired, "")
	before := *ana
	begun, err := f.Service.BeginStepUp(ana.Context(t), "password")
	ok(t, err)
	_, err = f.Service.CompleteStepUp(ana.Context(t), begun.Flow.ID, app.StepUpProof{Password: "wrong"})
	identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	_, err = f.Service.CompleteStepUp(bob.Context(t), begun.Flow.ID, app.StepUpProof{Password: identitytest.Password})
	identitytest.Is(t, err, errs.CodeFlowExpired, "")
	result, err := f.Service.CompleteStepUp(ana.Context(t), begun.Flow.ID, app.StepUpProof{Password: identitytest.Password})
	ok(t, err)
	ana.AccessToken = result.AccessToken
	if !result.StepUpUntil.Equal(f.Clock.Now().Add(5 * time.Minute)) {
		t.Errorf("step-up until %v", result.StepUpUntil)
	}
	_, err = before.Authenticate(t)
	identitytest.Is(t, err, errs.CodeTokenExpired, "")
	_, err = f.Service.IssueEnrollmentCode(ana.Context(t), bob.Person)
	ok(t, err)
	_, err = f.Service.CompleteStepUp(ana.Context(t), begun.Flow.ID, app.StepUpProof{Password: identitytest.Password})
	identitytest.Is(t, err, errs.CodeFlowExpired, "")
}

// Some acts take a fresh proof for themselves: whoever comes second proves again.
func TestAStepUpIsTakenOnce(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	take := func() error {
		return f.Units.Do(ana.Context(t), func(ctx context.Context) error { return f.Service.ConsumeStepUp(ctx) })
	}
	identitytest.Is(t, f.Units.Do(f.Request(), func(ctx context.Context) error { return f.Service.ConsumeStepUp(ctx) }), errs.CodeStepUpRequired, "")
	results := parallel(3, take)
	taken := 0
	for _, err := range results {
		if err == nil {
			taken++
			continue
		}
		identitytest.Is(t, err, errs.CodeStepUpRequired, "")
	}
	if taken != 1 {
		t.Errorf("taken %d times", taken)
	}
	_, err := f.Service.BeginPasskey(ana.Context(t))
	identitytest.Is(t, err, errs.CodeStepUpRequired, "")
	ana.StepUp(t)
	f.Clock.Advance(5 * time.Minute)
	identitytest.Is(t, take(), errs.CodeStepUpRequired, "")
	ana.StepUp(t)
	ok(t, take())
}

func TestSetPassword(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	other, err := f.Login(t, identitytest.NewKey(t), "ana", identitytest.Password)
	ok(t, err)
	identitytest.Is(t, f.Service.SetPassword(ana.Context(t), "ana ana ana ana", true), errs.CodeValidationFailed, "")
	ok(t, f.Service.SetPassword(ana.Context(t), "an0ther-Kiln-of-clay", true))
	_, err = other.Authenticate(t)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	_, err = ana.Authenticate(t)
	ok(t, err)
	_, err = f.Login(t, other.Key, "ana", identitytest.Password)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	_, err = f.Login(t, other.Key, "ana", "an0ther-Kiln-of-clay")
	ok(t, err)
	f.Clock.Advance(5 * time.Minute)
	identitytest.Is(t, f.Service.SetPassword(ana.Context(t), "an0ther-Kiln-of-sand", true), errs.CodeStepUpRequired, "")
}

func TestSessionsListAndRevoke(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	f.Clock.Advance(time.Second)
	second, err := f.Login(t, identitytest.NewKey(t), "bob", identitytest.Password)
	ok(t, err)
	list, err := f.Service.ListSessions(bob.Context(t), second.Session.ID, 10)
	ok(t, err)
	if len(list) != 1 || list[0].ID != bob.Session.ID || !list[0].Current || !list[0].SameNetwork || list[0].Device == nil {
		t.Fatalf("listed %+v", list)
	}
	carl := f.Member(t, ana, "carl")
	identitytest.Is(t, f.Service.RevokeSession(carl.Context(t), bob.Session.ID), errs.CodeNotFound, "")
	ok(t, f.Service.RevokeSession(bob.Context(t), second.Session.ID))
	_, err = second.Authenticate(t)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	ok(t, f.Service.RevokeSession(ana.Context(t), bob.Session.ID))
	_, err = bob.Authenticate(t)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	ok(t, f.Service.Logout(carl.Context(t)))
	_, err = carl.Authenticate(t)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	var reasons []string
	for _, e := range f.Published.Ended {
		reasons = append(reasons, e.Reason)
	}
	if got := strings.Join(reasons, " "); got != "revoked owner_revoked logout" {
		t.Errorf("reasons %s", got)
	}
}

func TestRevalidateAndCheckActive(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	who, err := ana.Authenticate(t)
	ok(t, err)
	fresh, err := f.Auth.Revalidate(f.Request(), who)
	if err != nil || fresh.SessionID != who.SessionID || !fresh.CredentialExpiresAt.Equal(who.CredentialExpiresAt) {
		t.Fatalf("%+v, %v", fresh, err)
	}
	check := func() error {
		return f.Units.Do(f.Request(), func(ctx context.Context) error { return f.Sources.CheckActive(ctx, who) })
	}
	ok(t, check())
	ok(t, f.Service.Logout(ana.Context(t)))
	_, err = f.Auth.Revalidate(f.Request(), who)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	identitytest.Is(t, check(), errs.CodeUnauthenticated, "session_ended")
}

// counting counts statements.
type counting struct{ n atomic.Int64 }

func (c *counting) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (*counting) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestAuthenticationIsOneStatement(t *testing.T) {
	t.Parallel()
	statements := &counting{}
	f := identitytest.New(t, pgtest.New(t, pgtest.WithConfig(func(c *pg.Config) { c.Tracer = statements })))
	ana := f.Owner(t, "ana")
	_, _, secret := f.Agent(t, ana, "builder", "runs.write")
	credentials := ana.Credentials(t)
	count := func(fn func() error) int64 {
		before := statements.n.Load()
		ok(t, fn())
		return statements.n.Load() - before
	}
	if n := count(func() error { _, err := f.Auth.Authenticate(f.Request(), credentials); return err }); n != 1 {
		t.Errorf("an access token takes %d statements", n)
	}
	bearer := func() error { _, err := f.Bearer(secret); return err }
	f.Clock.Advance(2 * time.Minute) // what was made a moment ago is not remembered
	if n := count(bearer); n != 1 {
		t.Errorf("an API token takes %d statements", n)
	}
	if n := count(bearer); n != 0 {
		t.Errorf("an API token verified a moment ago takes %d statements", n)
	}
	f.Clock.Advance(2 * time.Second)
	if n := count(bearer); n != 1 {
		t.Errorf("an API token verified two seconds ago takes %d statements", n)
	}
}

// A known and an unknown name take the same statements, so their times tell nothing.
func TestFailedLoginsTakeTheSameStatements(t *testing.T) {
	t.Parallel()
	statements := &counting{}
	f := identitytest.New(t, pgtest.New(t, pgtest.WithConfig(func(c *pg.Config) { c.Tracer = statements })))
	f.Owner(t, "ana")
	count := func(login string) int64 {
		before := statements.n.Load()
		_, err := f.Login(t, identitytest.NewKey(t), login, "wrong")
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
		return statements.n.Load() - before
	}
	if known, unknown := count("ana"), count("nobody"); known != unknown {
		t.Errorf("a known name takes %d statements, an unknown one %d", known, unknown)
	}
}

// A hash takes a core and tens of megabytes for a while. Whoever waits for one must not hold
// a connection or a lock meanwhile: the queue is all there is to wait in.
func TestHashingHoldsNothing(t *testing.T) {
	f := setup(t)
	computed := 0
	f.OnHash = func(ctx context.Context) {
		computed++
		if txn.Current(ctx) != nil {
			t.Error("a unit of work is open while a hash is computed")
		}
		if n := f.DB.Pool.Stat().AcquiredConns(); n != 0 {
			t.Errorf("%d connections are held while a hash is computed", n)
		}
	}
	ana := f.Owner(t, "ana")
	_, err := f.Login(t, identitytest.NewKey(t), "ana", identitytest.Password)
	ok(t, err)
	for _, login := range []string{"ana", "nobody"} {
		_, err = f.Login(t, identitytest.NewKey(t), login, "wrong")
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	}
	ana.StepUp(t)
	ok(t, f.Service.SetPassword(ana.Context(t), "another-Kiln-vowel-9", false))
	if computed != 6 {
		t.Errorf("%d hashes were computed", computed)
	}
}

func TestLastUsesAreNotedBehindRequests(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	_, token, secret := f.Agent(t, ana, "builder", "runs.write")
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Seen.Run(ctx) }()
	f.Clock.Advance(5 * time.Minute)
	_, err := ana.Authenticate(t)
	ok(t, err)
	_, err = f.Bearer(secret)
	ok(t, err)
	eventually(t, func() bool {
		return f.DB.Count(t, "SELECT count(*) FROM auth_sessions WHERE id = $1 AND last_seen_at = $2", ana.Session.ID, f.Clock.Now()) == 1 &&
			f.DB.Count(t, "SELECT count(*) FROM devices WHERE id = $1 AND last_seen_at = $2", ana.LoginResult.Device.ID, f.Clock.Now()) == 1 &&
			f.DB.Count(t, "SELECT count(*) FROM api_tokens WHERE id = $1 AND last_used_at = $2", token, f.Clock.Now()) == 1
	})
	stop()
	ok(t, <-done)
}

// eventually waits for a condition, with a deadline far beyond what it should take.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the condition was not met in time")
		}
	}
}
