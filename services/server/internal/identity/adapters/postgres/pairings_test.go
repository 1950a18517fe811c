// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

var cli = app.DeviceInfo{Name: "bothy on workbench", Platform: "linux", Client: "cli", ClientVersion: "1.0.0"}

func beginPairing(t *testing.T, f *identitytest.Fixture, key *identitytest.Key) app.BegunPairing {
	t.Helper()
	begun, err := f.Service.BeginPairing(f.Request(), app.BeginPairingInput{Proof: f.Proof(t, key, "/x"), ClientKind: app.PairingCLI, Device: cli})
	ok(t, err)
	return begun
}

func poll(t *testing.T, f *identitytest.Fixture, key *identitytest.Key, code string) (app.PolledPairing, error) {
	t.Helper()
	return f.Service.PollPairing(f.Request(), f.Proof(t, key, "/x"), code)
}

func TestPairing(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	key := identitytest.NewKey(t)
	begun := beginPairing(t, f, key)
	if !strings.HasPrefix(begun.DeviceCode, "bothy_pair_") || begun.AddressWithCode != identitytest.Origin+"/#/pair?code="+begun.UserCode {
		t.Fatalf("begun %+v", begun)
	}
	if n := f.DB.Count(t, "SELECT count(*) FROM device_pairings WHERE device_code_hash = sha256($1::bytea) AND user_code_hash <> sha256($2::bytea)",
		[]byte(begun.DeviceCode), []byte(begun.UserCode)); n != 1 {
		t.Error("the codes are not stored by their hashes")
	}
	t.Run("asking too early grows the interval", func(t *testing.T) {
		first, err := poll(t, f, key, begun.DeviceCode)
		if err != nil || first.Result != nil || first.Interval != 5*time.Second {
			t.Fatalf("%+v, %v", first, err)
		}
		_, err = poll(t, f, key, begun.DeviceCode)
		identitytest.Is(t, err, errs.CodeRateLimited, "")
		f.Clock.Advance(6 * time.Second)
		_, err = poll(t, f, key, begun.DeviceCode)
		identitytest.Is(t, err, errs.CodeRateLimited, "")
		f.Clock.Advance(16 * time.Second)
		again, err := poll(t, f, key, begun.DeviceCode)
		if err != nil || again.Interval != 15*time.Second {
			t.Fatalf("%+v, %v", again, err)
		}
	})
	t.Run("another key learns nothing", func(t *testing.T) {
		for _, code := range []string{begun.DeviceCode, "bothy_pair_x", domain.NewSecret(domain.SecretPairing), domain.NewSecret(domain.SecretPAT)} {
			_, err := poll(t, f, identitytest.NewKey(t), code)
			identitytest.Is(t, err, errs.CodeFlowExpired, "")
		}
	})
	seen, err := f.Service.ResolvePairing(bob.Context(t), strings.ToLower(strings.ReplaceAll(begun.UserCode, "-", "")))
	if err != nil || seen.Device != cli || !seen.SameNetwork || seen.ClientKind != app.PairingCLI {
		t.Fatalf("%+v, %v", seen, err)
	}
	identitytest.Is(t, f.Service.DecidePairing(bob.Context(t), seen.ID, "BCDF-GHJK", true), errs.CodeNotFound, "")
	f.Clock.Advance(5 * time.Minute)
	_, err = f.Service.ResolvePairing(bob.Context(t), begun.UserCode) // To look takes no fresh proof.
	ok(t, err)
	identitytest.Is(t, f.Service.DecidePairing(bob.Context(t), seen.ID, begun.UserCode, true), errs.CodeStepUpRequired, "")
	bob.StepUp(t)
	asBob := bob.Context(t)
	for _, err := range parallel(4, func() error { return f.Service.DecidePairing(asBob, seen.ID, begun.UserCode, true) }) {
		ok(t, err) // The same decision of the same session is its repetition.
	}
	identitytest.Is(t, f.Service.DecidePairing(bob.Context(t), seen.ID, begun.UserCode, false), errs.CodeConflict, "already_decided")
	identitytest.Is(t, f.Service.DecidePairing(ana.Context(t), seen.ID, begun.UserCode, true), errs.CodeStepUpRequired, "")
	_, err = f.Service.ResolvePairing(bob.Context(t), begun.UserCode)
	identitytest.Is(t, err, errs.CodeNotFound, "")
	if n := f.DB.Count(t, "SELECT count(*) FROM devices WHERE principal_id = $1 AND approved_via = 'pairing' AND client = 'cli' AND state = 'active'", bob.Person); n != 1 {
		t.Fatalf("%d devices were made", n)
	}
	var won atomic.Int32
	for _, err := range parallel(4, func() error {
		r, err := poll(t, f, key, begun.DeviceCode)
		if err == nil && r.Result != nil {
			won.Add(1)
			who := r.Result.Session
			if who.PrincipalID != bob.Person || who.Driver != app.DriverPairing || r.Result.StepUpUntil.After(f.Clock.Now()) || r.Result.RefreshToken == "" {
				t.Errorf("collected %+v", r.Result)
			}
		}
		return err
	}) {
		if err != nil {
			identitytest.Is(t, err, errs.CodeFlowExpired, "")
		}
	}
	if won.Load() != 1 {
		t.Fatalf("tokens were handed out %d times", won.Load())
	}
	if allowed, _ := f.Audit.Entries(authorize.ActionDeviceApprove); len(allowed) != 1 {
		t.Errorf("recorded %+v", allowed)
	}
	t.Run("the same key again becomes the same device", func(t *testing.T) {
		again := beginPairing(t, f, key)
		seen, err := f.Service.ResolvePairing(bob.Context(t), again.UserCode)
		ok(t, err)
		ana.StepUp(t)
		identitytest.Is(t, f.Service.DecidePairing(ana.Context(t), seen.ID, again.UserCode, true), errs.CodeConflict, "device_key_in_use")
		ok(t, f.Service.DecidePairing(bob.Context(t), seen.ID, again.UserCode, true))
		r, err := poll(t, f, key, again.DeviceCode)
		if err != nil || r.Result == nil {
			t.Fatalf("%+v, %v", r, err)
		}
		if n := f.DB.Count(t, "SELECT count(*) FROM devices WHERE principal_id = $1 AND client = 'cli'", bob.Person); n != 1 {
			t.Errorf("%d devices", n)
		}
	})
}

func TestPairingIsRefusedAndEnds(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	pair := func(decide bool) (*identitytest.Key, app.BegunPairing) {
		key := identitytest.NewKey(t)
		begun := beginPairing(t, f, key)
		seen, err := f.Service.ResolvePairing(bob.Context(t), begun.UserCode)
		ok(t, err)
		ok(t, f.Service.DecidePairing(bob.Context(t), seen.ID, begun.UserCode, decide))
		return key, begun
	}
	key, begun := pair(false)
	_, err := poll(t, f, key, begun.DeviceCode)
	identitytest.Is(t, err, errs.CodeForbidden, "pairing_denied")
	t.Run("nobody decided in time", func(t *testing.T) {
		key := identitytest.NewKey(t)
		begun := beginPairing(t, f, key)
		seen, err := f.Service.ResolvePairing(bob.Context(t), begun.UserCode)
		ok(t, err)
		f.Clock.Advance(10 * time.Minute)
		fresh, err := f.Login(t, bob.Key, "bob", identitytest.Password)
		ok(t, err)
		*bob = *fresh
		_, err = f.Service.ResolvePairing(bob.Context(t), begun.UserCode)
		identitytest.Is(t, err, errs.CodeNotFound, "")
		identitytest.Is(t, f.Service.DecidePairing(bob.Context(t), seen.ID, begun.UserCode, true), errs.CodeFlowExpired, "")
		_, err = poll(t, f, key, begun.DeviceCode)
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
		f.Clock.Advance(time.Second)
		ok(t, f.Service.Cleanup(context.Background()))
		if n := f.DB.Count(t, "SELECT count(*) FROM device_pairings"); n != 0 {
			t.Errorf("%d pairings are left", n)
		}
	})
	t.Run("her device was revoked before it came", func(t *testing.T) {
		key, begun := pair(true)
		list, err := f.Service.ListDevices(bob.Context(t), app.DeviceFilter{Limit: 10})
		ok(t, err)
		for _, d := range list {
			if d.Client == "cli" {
				ok(t, f.Service.RevokeDevice(bob.Context(t), d.ID))
			}
		}
		_, err = poll(t, f, key, begun.DeviceCode)
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
	})
	t.Run("a disabled person lets nobody in", func(t *testing.T) {
		key, begun := pair(true)
		fresh, err := f.Login(t, ana.Key, "ana", identitytest.Password)
		ok(t, err)
		shown, err := f.Service.User(fresh.Context(t), bob.Person)
		ok(t, err)
		_, err = f.Service.DisableUser(fresh.Context(t), bob.Person, shown.Version, "")
		ok(t, err)
		_, err = poll(t, f, key, begun.DeviceCode)
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
	})
}

func TestWrongPairingCodesAreCounted(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	begun := beginPairing(t, f, identitytest.NewKey(t))
	for i := range 10 {
		_, err := f.Service.ResolvePairing(bob.Context(t), []string{"BCDF-GHJK", "nonsense"}[i%2])
		identitytest.Is(t, err, errs.CodeNotFound, "")
	}
	_, err := f.Service.ResolvePairing(bob.Context(t), begun.UserCode)
	identitytest.Is(t, err, errs.CodeRateLimited, "")
	_, err = f.Service.ResolvePairing(ana.Context(t), begun.UserCode)
	ok(t, err)
	f.Clock.Advance(9 * time.Minute)
	_, err = f.Service.ResolvePairing(bob.Context(t), begun.UserCode)
	identitytest.Is(t, err, errs.CodeRateLimited, "")
}
