// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
)

func TestWhatIsOverIsRemovedInTheEnd(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	expires := f.Clock.Now().Add(time.Hour)
	_, _, err := f.Service.CreateToken(bob.Context(t), app.CreateTokenInput{Name: "cli", Scopes: []string{"identity.read"}, ExpiresAt: &expires})
	ok(t, err)
	gone, err := f.Login(t, identitytest.NewKey(t), "bob", identitytest.Password)
	ok(t, err)
	ok(t, f.Service.RevokeDevice(bob.Context(t), gone.Device.ID))
	// Bob uses his session now and then for longer than anything is kept.
	refresh := func() {
		r, err := bob.Refresh(t, bob.RefreshToken)
		ok(t, err)
		bob.LoginResult.AccessToken, bob.LoginResult.RefreshToken = r.AccessToken, r.RefreshToken
	}
	kept := f.Config.SecurityRetention
	for passed := time.Duration(0); passed < kept; passed += 700 * time.Hour {
		refresh()
		f.Clock.Advance(700 * time.Hour)
	}
	refresh()
	count := func(sql string) int64 { return f.DB.Count(t, sql) }
	if count("SELECT count(*) FROM refresh_tokens") < 6 || count("SELECT count(*) FROM auth_sessions") != 3 {
		t.Fatal("something is gone before its time")
	}
	ok(t, f.Service.Cleanup(context.Background()))
	ok(t, f.Service.Cleanup(context.Background()))
	for table, want := range map[string]int64{
		// Of Ana's session, which ended by disuse, the end counts from its last day.
		"auth_sessions": 2, "devices": 2, "device_keys": 2, "api_tokens": 0, "enrollment_codes": 0, "refresh_token_families": 2,
	} {
		if n := count("SELECT count(*) FROM " + table); n != want {
			t.Errorf("%d rows of %s are left, want %d", n, table, want)
		}
	}
	refresh()
	_, err = bob.Authenticate(t)
	ok(t, err)
}

func TestNothingIsRemovedWhenEverythingIsKept(t *testing.T) {
	f := setup(t, func(c *app.Config) { c.SecurityRetention = 0 })
	ana := f.Owner(t, "ana")
	ok(t, f.Service.Logout(ana.Context(t)))
	f.Clock.Advance(100_000 * time.Hour)
	ok(t, f.Service.Cleanup(context.Background()))
	if n := f.DB.Count(t, "SELECT count(*) FROM auth_sessions"); n != 1 {
		t.Errorf("%d sessions are left", n)
	}
}
