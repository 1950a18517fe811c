// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

func set[T any](v T) app.Change[T] { return app.Change[T]{Set: true, Value: v} }

func TestHandleRules(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	create := func(handle string) error {
		_, _, err := f.Service.CreateUser(ana.Context(t), app.CreateUserInput{Handle: handle, DisplayName: "Somebody"})
		return err
	}
	f.Grants.Handles = map[string]bool{"crew": true}
	f.Agent(t, ana, "builder", "runs.write")
	for _, handle := range []string{"bob", "crew", "builder"} {
		identitytest.Is(t, create(handle), errs.CodeConflict, "handle_taken")
	}
	for _, handle := range []string{"Bob", "x", "everyone", "dot."} {
		identitytest.Is(t, create(handle), errs.CodeValidationFailed, "")
	}
	version := func() int64 {
		view, err := f.Service.Self(bob.Context(t))
		ok(t, err)
		return view.Account.Version
	}
	rename := func(handle string) error {
		_, err := f.Service.UpdateSelf(bob.Context(t), app.UpdateSelfInput{Version: version(), Handle: set(handle)})
		return err
	}
	ok(t, rename("robert"))
	t.Run("the old handle is held and leads to her", func(t *testing.T) {
		identitytest.Is(t, create("bob"), errs.CodeConflict, "handle_taken")
		found, err := f.Service.ByHandle(f.Request(), []string{"bob", "robert", "nobody"})
		ok(t, err)
		if len(found) != 2 || found["bob"].ID != bob.Person || found["robert"].ID != bob.Person {
			t.Errorf("found %+v", found)
		}
	})
	t.Run("a second rename waits", func(t *testing.T) {
		identitytest.Is(t, rename("rob"), errs.CodeConflict, "handle_rename_wait")
	})
	t.Run("she takes it back, and then another may have the other one later", func(t *testing.T) {
		f.Clock.Advance(719 * time.Hour)
		fresh, err := f.Login(t, bob.Key, "robert", identitytest.Password)
		ok(t, err)
		*bob = *fresh
		f.Clock.Advance(5 * time.Minute)
		identitytest.Is(t, rename("bob"), errs.CodeConflict, "handle_rename_wait")
		f.Clock.Advance(time.Hour)
		if fresh, err = f.Login(t, bob.Key, "robert", identitytest.Password); err != nil {
			t.Fatal(err)
		}
		*bob = *fresh
		ok(t, rename("bob"))
		f.Clock.Advance(2160 * time.Hour)
		back, err := f.Login(t, ana.Key, "ana", identitytest.Password)
		ok(t, err)
		*ana = *back
		ok(t, create("robert"))
	})
}

func TestHandleRace(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	ctx := ana.Context(t)
	won := 0
	for _, err := range parallel(12, func() error {
		_, _, err := f.Service.CreateUser(ctx, app.CreateUserInput{Handle: "same", DisplayName: "Somebody"})
		return err
	}) {
		if err == nil {
			won++
			continue
		}
		identitytest.Is(t, err, errs.CodeConflict, "handle_taken")
	}
	if won != 1 {
		t.Fatalf("%d takers have the handle", won)
	}
}

func TestProfile(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	view, err := f.Service.Self(bob.Context(t))
	ok(t, err)
	emoji, until := "🌲", f.Clock.Now().Add(time.Hour).Truncate(time.Microsecond)
	in := app.UpdateSelfInput{
		Version: view.Account.Version, DisplayName: set("Bob Ross"), Bio: set("two\nlines"), TimeZone: set("Europe/Berlin"),
		Status: set(&app.CustomStatus{Emoji: &emoji, Text: "painting", Until: &until}),
	}
	view, err = f.Service.UpdateSelf(bob.Context(t), in)
	ok(t, err)
	p := view.Account.Person
	if view.Account.DisplayName != "Bob Ross" || p.Bio != "two\nlines" || p.TimeZone != "Europe/Berlin" || p.Status == nil || p.Status.Text != "painting" {
		t.Fatalf("%+v %+v", view.Account, p)
	}
	_, err = f.Service.UpdateSelf(bob.Context(t), in)
	identitytest.Is(t, err, errs.CodeVersionConflict, "")
	_, err = f.Service.UpdateSelf(bob.Context(t), app.UpdateSelfInput{Version: view.Account.Version, DisplayName: set("0wner аna")})
	identitytest.Is(t, err, errs.CodeConflict, "name_confusable")
	_, err = f.Service.UpdateSelf(bob.Context(t), app.UpdateSelfInput{Version: view.Account.Version, DisplayName: set("Ana\u202eevil"), Locale: set("no locale")})
	if identitytest.Is(t, err, errs.CodeValidationFailed, ""); len(errs.As(err).Fields) != 2 {
		t.Errorf("faults %+v", errs.As(err).Fields)
	}
	events := f.Events.OfType("user.updated")
	last := events[len(events)-2:]
	if last[0].PrincipalID != (ids.ID{}) || last[1].PrincipalID != bob.Person {
		t.Fatalf("audiences %v, %v", last[0].PrincipalID, last[1].PrincipalID)
	}
	everybody, _ := json.Marshal(last[0].Payload)
	if strings.Contains(string(everybody), "self") || strings.Contains(string(everybody), "email") || !strings.Contains(string(everybody), `"custom_status":{"emoji":"🌲"`) {
		t.Errorf("everybody gets %s", everybody)
	}
}

func TestDisableEndsEverything(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	expires := f.Clock.Now().Add(24 * time.Hour)
	_, secret, err := f.Service.CreateToken(bob.Context(t), app.CreateTokenInput{Name: "cli", Scopes: []string{"identity.read"}, ExpiresAt: &expires})
	ok(t, err)
	f.Clock.Advance(2 * time.Minute)
	_, err = f.Bearer(secret)
	ok(t, err) // remembered from here on
	shown, err := f.Service.User(ana.Context(t), bob.Person)
	ok(t, err)
	_, err = f.Service.DisableUser(bob.Context(t), bob.Person, shown.Version, "")
	identitytest.Is(t, err, errs.CodeForbidden, "")
	_, err = f.Service.DisableUser(ana.Context(t), bob.Person, shown.Version+1, "")
	identitytest.Is(t, err, errs.CodeVersionConflict, "")
	gone, err := f.Service.DisableUser(ana.Context(t), bob.Person, shown.Version, "left")
	ok(t, err)
	if gone.Status != identity.StatusDisabled {
		t.Fatalf("%+v", gone)
	}
	_, err = bob.Authenticate(t)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	_, err = bob.Refresh(t, bob.RefreshToken)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	_, err = f.Bearer(secret)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "")
	_, err = f.Login(t, bob.Key, "bob", identitytest.Password)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	if len(f.Published.Ended) != 1 || len(f.Published.Revoked) != 1 || f.Published.Ended[0].Reason != "user_disabled" {
		t.Errorf("published %+v %+v", f.Published.Ended, f.Published.Revoked)
	}
	t.Run("enabled again, nothing comes back but the person", func(t *testing.T) {
		f.Clock.Advance(5 * time.Minute)
		_, err := f.Service.EnableUser(ana.Context(t), bob.Person, gone.Version)
		identitytest.Is(t, err, errs.CodeStepUpRequired, "")
		ana.StepUp(t)
		back, err := f.Service.EnableUser(ana.Context(t), bob.Person, gone.Version)
		if err != nil || back.Status != identity.StatusActive {
			t.Fatalf("%+v, %v", back, err)
		}
		_, err = f.Bearer(secret)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "")
		_, err = f.Login(t, bob.Key, "bob", identitytest.Password)
		ok(t, err)
	})
	t.Run("the last owner stays", func(t *testing.T) {
		shown, err := f.Service.User(ana.Context(t), ana.Person)
		ok(t, err)
		_, err = f.Service.DisableUser(ana.Context(t), ana.Person, shown.Version, "")
		identitytest.Is(t, err, errs.CodeLastOwner, "")
	})
}

// Whatever runs beside it, nothing of a disabled person goes on behind the commit.
func TestDisableBesideRefreshes(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	ctx := ana.Context(t)
	shown, err := f.Service.User(ctx, bob.Person)
	ok(t, err)
	var turn atomic.Int32
	results := parallel(5, func() error {
		if turn.Add(1) == 3 {
			_, err := f.Service.DisableUser(ctx, bob.Person, shown.Version, "left")
			return err
		}
		_, _ = bob.Refresh(t, bob.RefreshToken)
		return nil
	})
	for _, err := range results {
		ok(t, err)
	}
	if live := f.DB.Count(t, "SELECT count(*) FROM auth_sessions WHERE principal_id = $1 AND ended_at IS NULL", bob.Person); live != 0 {
		t.Fatalf("%d sessions live on", live)
	}
	if live := f.DB.Count(t, "SELECT count(*) FROM refresh_token_families WHERE state = 'active' AND session_id = $1", bob.Session.ID); live != 0 {
		t.Fatalf("%d families live on", live)
	}
}

func TestTokens(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	expires := f.Clock.Now().Add(90 * 24 * time.Hour)
	good := app.CreateTokenInput{Name: "cli", Scopes: []string{"messaging.write", "identity.read", "messaging.write"}, ExpiresAt: &expires}
	t.Run("faults", func(t *testing.T) {
		far := f.Clock.Now().Add(9000 * time.Hour)
		for want, in := range map[string]app.CreateTokenInput{
			"/expires_at":    {Name: "x", Scopes: good.Scopes},
			"/expires_at ":   {Name: "x", Scopes: good.Scopes, ExpiresAt: &far},
			"/scopes":        {Name: "x", ExpiresAt: &expires},
			"/scopes ":       {Name: "x", Scopes: []string{"session"}, ExpiresAt: &expires},
			"/name":          {Name: " ", Scopes: good.Scopes, ExpiresAt: &expires},
			"/allowed_cidrs": {Name: "x", Scopes: good.Scopes, ExpiresAt: &expires, Networks: []string{"home"}},
			"/overlap_ms":    {Name: "x", Scopes: good.Scopes, ExpiresAt: &expires, Overlap: time.Hour},
			"/replaces":      {Name: "x", Scopes: good.Scopes, ExpiresAt: &expires, Replaces: ids.New()},
		} {
			_, _, err := f.Service.CreateToken(bob.Context(t), in)
			identitytest.Is(t, err, errs.CodeValidationFailed, "")
			if got := errs.As(err).Fields[0].Pointer; got != strings.TrimSpace(want) {
				t.Errorf("%s: %+v", want, errs.As(err).Fields)
			}
		}
	})
	ctx, mark := idempotency.WithSecretMark(bob.Context(t))
	token, secret, err := f.Service.CreateToken(ctx, good)
	ok(t, err)
	if !mark.Shown || mark.ResourceID != token.ID || !strings.HasPrefix(secret, "bothy_pat_") || token.Hint != secret[len(secret)-4:] {
		t.Fatalf("mark %+v, token %+v", mark, token)
	}
	if n := f.DB.Count(t, "SELECT count(*) FROM api_tokens WHERE token_hash = sha256($1::bytea)", []byte(secret)); n != 1 {
		t.Error("the token is not stored by its hash")
	}
	who, err := f.Bearer(secret)
	ok(t, err)
	if who.ID != bob.Person || who.TokenID != token.ID || strings.Join(who.Scopes, " ") != "identity.read messaging.write" || who.IsSession() {
		t.Errorf("authenticated as %+v", who)
	}
	t.Run("lists show no secret and only to the holder", func(t *testing.T) {
		list, err := f.Service.ListTokens(bob.Context(t), ids.ID{}, ids.ID{}, 10)
		if err != nil || len(list) != 1 || list[0].ID != token.ID || list[0].ExpiresSoon(f.Clock.Now()) {
			t.Fatalf("%+v, %v", list, err)
		}
		_, err = f.Service.ListTokens(ana.Context(t), bob.Person, ids.ID{}, 10)
		identitytest.Is(t, err, errs.CodeNotFound, "")
		_, _, err = f.Service.CreateToken(ana.Context(t), app.CreateTokenInput{PrincipalID: bob.Person, Name: "x", Scopes: good.Scopes, ExpiresAt: &expires})
		identitytest.Is(t, err, errs.CodeNotFound, "")
	})
	t.Run("rotation with an overlap", func(t *testing.T) {
		next := good
		next.Replaces, next.Overlap = token.ID, time.Hour
		_, newer, err := f.Service.CreateToken(bob.Context(t), next)
		ok(t, err)
		_, err = f.Bearer(secret)
		ok(t, err)
		f.Clock.Advance(time.Hour)
		_, err = f.Bearer(secret)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "")
		_, err = f.Bearer(newer)
		ok(t, err)
		fresh, err := f.Login(t, bob.Key, "bob", identitytest.Password)
		ok(t, err)
		*bob = *fresh
	})
	t.Run("allowed networks", func(t *testing.T) {
		in := good
		in.Networks = []string{"198.51.100.0/24", "2001:db8::/32"}
		_, secret, err := f.Service.CreateToken(bob.Context(t), in)
		ok(t, err)
		_, err = f.Bearer(secret)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "")
		f.IP = netip.MustParseAddr("::ffff:198.51.100.9")
		_, err = f.Bearer(secret)
		ok(t, err)
	})
	t.Run("a token may end itself, and counts no more at once", func(t *testing.T) {
		token, secret, err := f.Service.CreateToken(bob.Context(t), good)
		ok(t, err)
		f.Clock.Advance(2 * time.Minute)
		who, err := f.Bearer(secret)
		ok(t, err)
		ok(t, f.Service.RevokeToken(actor.With(f.Request(), who), token.ID))
		if _, told := f.TokensEnded.Load(bob.Person); !told {
			t.Error("holders of connections were not told")
		}
		_, err = f.Bearer(secret)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "")
	})
	t.Run("limit", func(t *testing.T) {
		f.DB.Exec(t, `INSERT INTO api_tokens (id, principal_id, kind, name, hint, token_hash, scopes, expires_at, created_by, created_at)
			SELECT gen_random_uuid(), $1, 'pat', 'x', 'abcd', sha256(i::text::bytea), '{identity.read}', $2, $1, $3 FROM generate_series(1, 50) i`,
			bob.Person, expires, f.Clock.Now())
		_, _, err := f.Service.CreateToken(bob.Context(t), good)
		identitytest.Is(t, err, errs.CodeConflict, "token_limit")
	})
}

func TestAgentPrincipals(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	id, _, secret := f.Agent(t, ana, "builder", "runs.write")
	who, err := f.Bearer(secret)
	if err != nil || who.Kind != actor.KindAgent || who.ID != id {
		t.Fatalf("%+v, %v", who, err)
	}
	in := func(fn func(ctx context.Context) error) error { return f.Units.Do(ana.Context(t), fn) }
	ok(t, in(func(ctx context.Context) error {
		p, err := f.Service.Rename(ctx, id, "maker", "Maker")
		if err == nil && (p.Handle != "maker" || p.Version != 2) {
			t.Errorf("%+v", p)
		}
		return err
	}))
	ok(t, in(func(ctx context.Context) error { _, err := f.Service.SetActive(ctx, id, false, "disabled"); return err }))
	_, err = f.Bearer(secret)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "")
	identitytest.Is(t, in(func(ctx context.Context) error {
		_, err := f.Service.SetActive(ctx, ana.Person, false, "x")
		return err
	}), errs.CodeInternal, "")
	states, err := f.Sources.Principals(f.Request(), []ids.ID{id, ana.Person, ids.New()})
	if err != nil || len(states) != 2 {
		t.Fatalf("%+v, %v", states, err)
	}
}

// The prefix tells a scanner and a person what a token is; the kind follows from its holder.
func TestTokensOfEveryKind(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	until := f.Clock.Now().Add(24 * time.Hour)
	_, pat, err := f.Service.CreateToken(ana.Context(t), app.CreateTokenInput{Name: "mine", Scopes: []string{"identity.read"}, ExpiresAt: &until})
	ok(t, err)
	_, _, agent := f.Agent(t, ana, "robot", "identity.read")
	var bridge string
	ok(t, f.Units.Do(ana.Context(t), func(ctx context.Context) error {
		p, err := f.Service.Create(ctx, identity.NewPrincipal{Kind: actor.KindApp, Handle: "bridge", DisplayName: "Bridge", CreatedBy: ana.Person})
		if err != nil {
			return err
		}
		_, bridge, err = f.Service.CreateFirst(ctx, p.ID, "first", []string{"identity.read"}, nil)
		return err
	}))
	for _, c := range []struct {
		secret, prefix, stored string
		kind                   actor.Kind
	}{
		{pat, "bothy_pat_", "pat", actor.KindPerson}, {agent, "bothy_agent_", "agent", actor.KindAgent}, {bridge, "bothy_app_", "app", actor.KindApp},
	} {
		t.Run(c.stored, func(t *testing.T) {
			if !strings.HasPrefix(c.secret, c.prefix) {
				t.Errorf("the secret begins with %.12s", c.secret)
			}
			who, err := f.Bearer(c.secret)
			ok(t, err)
			if who.Kind != c.kind || who.IsSession() || !slices.Equal(who.Scopes, []string{"identity.read"}) {
				t.Errorf("authenticated as %+v", who)
			}
			if n := f.DB.Count(t, "SELECT count(*) FROM api_tokens WHERE id = $1 AND kind = $2", who.TokenID, c.stored); n != 1 {
				t.Error("stored as another kind")
			}
			_, err = f.Auth.Authenticate(f.Request(), actor.Credentials{Authorization: "DPoP " + c.secret, Method: "GET", URL: identitytest.Origin + "/api/v1/me"})
			identitytest.Is(t, err, errs.CodeInvalidDPoPProof, "")
			_, err = f.Bearer(c.prefix + strings.Repeat("0", 49))
			identitytest.Is(t, err, errs.CodeUnauthenticated, "")
		})
	}
}

func TestDirectory(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	for _, handle := range []string{"bob", "bobby", "carl_x"} {
		_, _, err := f.Service.CreateUser(ana.Context(t), app.CreateUserInput{Handle: handle, DisplayName: "Member " + handle, Email: handle + "@example.org"})
		ok(t, err)
	}
	bob := f.Member(t, ana, "zoe")
	agent, _, secret := f.Agent(t, ana, "bot", "identity.read")
	names := func(list []app.Shown) string {
		var out []string
		for _, s := range list {
			out = append(out, s.Handle)
		}
		return strings.Join(out, " ")
	}
	search := func(ctx context.Context, query string) string {
		list, err := f.Service.SearchDirectory(ctx, query, nil, 50)
		ok(t, err)
		return names(list)
	}
	for query, want := range map[string]string{"@bob": "bob bobby", "BO": "bob bobby bot", "carl_": "carl_x", "c_rl": "", "%": "", "member z": "zoe"} {
		if got := search(bob.Context(t), query); got != want {
			t.Errorf("search %q: %s, want %s", query, got, want)
		}
	}
	t.Run("pages", func(t *testing.T) {
		first, next, err := f.Service.ListUsers(bob.Context(t), app.ListUsersInput{Limit: 2})
		ok(t, err)
		rest, end, err := f.Service.ListUsers(bob.Context(t), app.ListUsersInput{Limit: 10, After: next})
		ok(t, err)
		if names(first) != "ana bob" || next != "bob" || names(rest) != "bobby carl_x zoe" || end != "" {
			t.Errorf("%s | %s | %s %q", names(first), next, names(rest), end)
		}
	})
	t.Run("addresses are for owners and oneself", func(t *testing.T) {
		for who, want := range map[*identitytest.Client]bool{ana: true, bob: false} {
			list, _, err := f.Service.ListUsers(who.Context(t), app.ListUsersInput{Limit: 1, Query: "carl"})
			ok(t, err)
			if list[0].ShowEmail != want {
				t.Errorf("shown to %s: %v", who.Handle, list[0].ShowEmail)
			}
		}
	})
	t.Run("agents see whom the authorizer shows them", func(t *testing.T) {
		who, err := f.Bearer(secret)
		ok(t, err)
		f.Authorizer.Hide[bob.Person] = true
		list, complete, err := f.Service.Visible(actor.With(f.Request(), who), 100)
		if err != nil || !complete {
			t.Fatal(err)
		}
		for _, p := range list {
			if p.ID == bob.Person {
				t.Error("a hidden person is listed")
			}
		}
		if len(list) != 5 || list[3].ID != agent {
			t.Errorf("listed %+v", list)
		}
	})
	t.Run("kinds", func(t *testing.T) {
		_, err := f.Service.User(bob.Context(t), agent)
		identitytest.Is(t, err, errs.CodeNotFound, "")
		_, err = f.Service.Member(bob.Context(t), agent)
		ok(t, err)
		_, err = f.Service.Member(bob.Context(t), ids.New())
		identitytest.Is(t, err, errs.CodeNotFound, "")
	})
}

func TestCleanup(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	key := identitytest.NewKey(t)
	_, err := f.Service.BeginLogin(f.Request(), app.BeginLoginInput{Proof: f.Proof(t, key, "/x"), Driver: app.DriverLocal, Device: identitytest.Device})
	ok(t, err)
	ok(t, f.Service.Cleanup(context.Background()))
	if n := f.DB.Count(t, "SELECT count(*) FROM auth_login_flows"); n != 2 {
		t.Fatalf("%d flows left", n)
	}
	f.Clock.Advance(2161 * time.Hour)
	ok(t, f.Service.Cleanup(context.Background()))
	ok(t, f.Service.Cleanup(context.Background()))
	if n := f.DB.Count(t, "SELECT count(*) FROM auth_login_flows"); n != 0 {
		t.Errorf("%d expired flows left", n)
	}
	if n := f.DB.Count(t, "SELECT count(*) FROM devices WHERE state = 'revoked'"); n != 1 {
		t.Errorf("%d devices revoked", n)
	}
	allowed, _ := f.Audit.Entries(authorize.ActionDeviceExpire)
	if len(allowed) != 1 || len(f.Published.Ended) != 1 || f.Published.Ended[0].SessionID != ana.Session.ID {
		t.Errorf("audited %d, ended %+v", len(allowed), f.Published.Ended)
	}
}

// Nothing secret reaches events or the audit log.
func TestNothingSecretLeaves(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	shown, code, err := f.Service.CreateUser(ana.Context(t), app.CreateUserInput{Handle: "bob", DisplayName: "Bob", Email: "canary@example.org", IssueCode: true})
	ok(t, err)
	bob := f.Enroll(t, code.Code)
	expires := f.Clock.Now().Add(time.Hour)
	_, secret, err := f.Service.CreateToken(bob.Context(t), app.CreateTokenInput{Name: "cli", Scopes: []string{"identity.read"}, ExpiresAt: &expires})
	ok(t, err)
	_, err = f.Login(t, identitytest.NewKey(t), "bob", "canary-wrong-password")
	identitytest.Is(t, err, errs.CodeUnauthenticated, "")
	var everything []any
	for _, e := range append(f.Events.OfType("user.updated"), f.Events.OfType("session.revoked")...) {
		if e.PrincipalID.IsZero() {
			everything = append(everything, e.Payload)
		}
	}
	for _, a := range []authorize.Action{
		authorize.ActionUserCreate, authorize.ActionTokenCreate, authorize.ActionAuthLoginComplete, authorize.ActionInstanceBootstrap,
	} {
		allowed, denied := f.Audit.Entries(a)
		everything = append(everything, allowed, denied)
	}
	raw, err := json.Marshal(everything)
	ok(t, err)
	for name, canary := range map[string]string{
		"code": code.Code, "token": secret, "refresh token": bob.RefreshToken, "access token": bob.AccessToken,
		"password": identitytest.Password, "wrong password": "canary-wrong-password", "address": shown.Person.Email,
	} {
		if strings.Contains(string(raw), canary) {
			t.Errorf("the %s leaves", name)
		}
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	f := identitytest.New(b, benchDB(b))
	ana := f.Owner(b, "ana")
	_, _, secret := f.Agent(b, ana, "builder", "runs.write")
	f.Clock.Advance(2 * time.Minute)
	b.Run("API token, remembered", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.Bearer(secret); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("API token, read", func(b *testing.B) {
		for b.Loop() {
			f.Clock.Advance(2 * time.Second)
			if _, err := f.Bearer(secret); err != nil {
				b.Fatal(err)
			}
		}
	})
	fresh, err := f.Login(b, ana.Key, "ana", identitytest.Password)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("access token with proof", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			c := fresh.Credentials(b)
			b.StartTimer()
			if _, err := f.Auth.Authenticate(f.Request(), c); err != nil {
				b.Fatal(fmt.Errorf("authenticate: %w", err))
			}
		}
	})
}

func benchDB(b *testing.B) *pgtest.DB {
	b.Helper()
	return pgtest.New(b)
}
