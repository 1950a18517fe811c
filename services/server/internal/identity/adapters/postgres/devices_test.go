// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// asksForApproval sets the policy of the instance.
func asksForApproval(f *identitytest.Fixture, policy domain.ApprovalPolicy) {
	f.Instance.Strings = map[string]string{instance.SettingDeviceApproval: string(policy)}
}

// waits signs in by password with a new key and gives what the waiting device got.
func waits(t *testing.T, f *identitytest.Fixture, key *identitytest.Key, login string) *app.WaitingDevice {
	t.Helper()
	begun, err := f.Service.BeginLogin(f.Request(), app.BeginLoginInput{Proof: f.Proof(t, key, "/auth/login"), Driver: app.DriverLocal, Device: identitytest.Device})
	ok(t, err)
	r, err := f.Service.CompleteLogin(f.Request(), app.CompleteLoginInput{
		Proof: f.Proof(t, key, "/x"), FlowID: begun.Flow.ID, Login: login, Password: identitytest.Password,
	})
	ok(t, err)
	if r.Waiting == nil || r.AccessToken != "" || r.RefreshToken != "" || r.Waiting.FlowID != begun.Flow.ID {
		t.Fatalf("the device does not wait: %+v", r)
	}
	return r.Waiting
}

// asks lets a waiting device ask whether it was approved.
func asks(t *testing.T, f *identitytest.Fixture, key *identitytest.Key, w *app.WaitingDevice) (app.LoginResult, error) {
	t.Helper()
	return f.Service.CompleteLogin(f.Request(), app.CompleteLoginInput{Proof: f.Proof(t, key, "/x"), FlowID: w.FlowID})
}

func TestADeviceWaitsForApproval(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	asksForApproval(f, domain.ApprovalPassword)
	key := identitytest.NewKey(t)
	w := waits(t, f, key, "bob")
	if again, err := asks(t, f, key, w); err != nil || again.Waiting == nil || *again.Waiting != *w {
		t.Fatalf("asked too early: %+v, %v", again, err)
	}
	list, err := f.Service.ListDevices(bob.Context(t), app.DeviceFilter{Limit: 10})
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	var seen app.DeviceView
	for _, d := range list {
		if d.ID == w.DeviceID {
			seen = d
		}
	}
	if seen.State != "pending" || seen.VerificationCode() != w.VerificationCode || len(w.VerificationCode) != 6 || seen.Current || !seen.SameNetwork {
		t.Errorf("the list shows %+v", seen)
	}
	t.Run("who must be told is told", func(t *testing.T) {
		told := map[ids.ID]bool{}
		for _, e := range f.Events.OfType(app.EventDevicePending) {
			told[e.PrincipalID] = true
		}
		if len(told) != 2 || !told[bob.Person] || !told[ana.Person] {
			t.Errorf("told %v", told)
		}
	})
	t.Run("what does not approve", func(t *testing.T) {
		eve := f.Member(t, ana, "eve")
		_, err := f.Service.ApproveDevice(eve.Context(t), w.DeviceID, w.VerificationCode)
		identitytest.Is(t, err, errs.CodeNotFound, "")
		_, err = f.Service.ApproveDevice(bob.Context(t), w.DeviceID, "000000")
		identitytest.Is(t, err, errs.CodeValidationFailed, "")
		_, err = f.Service.ApproveDevice(bob.Context(t), bob.Device.ID, w.VerificationCode)
		identitytest.Is(t, err, errs.CodeConflict, "not_pending")
		_, err = asks(t, f, identitytest.NewKey(t), w)
		identitytest.Is(t, err, errs.CodeUnauthenticated, "login_failed")
	})
	f.Clock.Advance(6 * time.Minute)
	_, err = f.Service.ApproveDevice(bob.Context(t), w.DeviceID, w.VerificationCode)
	identitytest.Is(t, err, errs.CodeStepUpRequired, "")
	bob.StepUp(t)
	approved, err := f.Service.ApproveDevice(bob.Context(t), w.DeviceID, w.VerificationCode)
	if err != nil || approved.State != "active" || approved.ApprovedVia != domain.ApprovedApproval || approved.VerificationCode() != "" {
		t.Fatalf("%+v, %v", approved, err)
	}
	results := parallel(4, func() error {
		r, err := asks(t, f, key, w)
		if err == nil && (r.AccessToken == "" || r.Device.ID != w.DeviceID) {
			t.Errorf("%+v", r)
		}
		return err
	})
	won := 0
	for _, err := range results {
		if err == nil {
			won++
			continue
		}
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
	}
	if won != 1 {
		t.Fatalf("%d sessions for one approval", won)
	}
	// The proof was given when the password was, not when somebody approved.
	if n := f.DB.Count(t, "SELECT count(*) FROM auth_sessions WHERE device_id = $1 AND auth_time = $2 AND step_up_at = $2 AND amr = '{pwd}'", w.DeviceID, identitytest.Start); n != 1 {
		t.Error("the session does not say when the person was proven")
	}
	_, err = f.Login(t, key, "bob", identitytest.Password)
	ok(t, err) // A known device waits no more.
}

func TestAnOwnerApprovesAndDenies(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	asksForApproval(f, domain.ApprovalRequired)
	first, second := identitytest.NewKey(t), identitytest.NewKey(t)
	a, b := waits(t, f, first, "bob"), waits(t, f, second, "bob")
	_, err := f.Service.ApproveDevice(ana.Context(t), a.DeviceID, b.VerificationCode)
	identitytest.Is(t, err, errs.CodeValidationFailed, "")
	_, err = f.Service.ApproveDevice(ana.Context(t), a.DeviceID, a.VerificationCode)
	ok(t, err)
	r, err := asks(t, f, first, a)
	if err != nil || r.Session.PrincipalID != bob.Person {
		t.Fatalf("%+v, %v", r, err)
	}
	f.Clock.Advance(6 * time.Minute)
	ok(t, f.Service.RevokeDevice(bob.Context(t), b.DeviceID)) // To refuse takes no fresh proof.
	_, err = asks(t, f, second, b)
	identitytest.Is(t, err, errs.CodeForbidden, "device_denied")
	identitytest.Is(t, f.Service.RevokeDevice(bob.Context(t), a.DeviceID), errs.CodeStepUpRequired, "")
	_, err = f.Service.ApproveDevice(ana.Context(t), b.DeviceID, b.VerificationCode)
	identitytest.Is(t, err, errs.CodeStepUpRequired, "")
	ana.StepUp(t)
	_, err = f.Service.ApproveDevice(ana.Context(t), b.DeviceID, b.VerificationCode)
	identitytest.Is(t, err, errs.CodeConflict, "not_pending")
	if allowed, _ := f.Audit.Entries(authorize.ActionDeviceApprove); len(allowed) != 1 || allowed[0].ResourceID != bob.Person {
		t.Errorf("recorded %+v", allowed)
	}
}

func TestWaitingHasBounds(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	asksForApproval(f, domain.ApprovalPassword)
	pending := func() int64 {
		return f.DB.Count(t, "SELECT count(*) FROM devices WHERE principal_id = $1 AND state = 'pending'", bob.Person)
	}
	oldestKey := identitytest.NewKey(t)
	oldest := waits(t, f, oldestKey, "bob")
	for range domain.MaxPendingDevices {
		f.Clock.Advance(time.Second)
		waits(t, f, identitytest.NewKey(t), "bob")
	}
	if n := pending(); n != domain.MaxPendingDevices {
		t.Errorf("%d devices wait", n)
	}
	_, err := asks(t, f, oldestKey, oldest)
	identitytest.Is(t, err, errs.CodeFlowExpired, "")
	t.Run("a client that begins again waits once", func(t *testing.T) {
		key := identitytest.NewKey(t)
		first := waits(t, f, key, "bob")
		second := waits(t, f, key, "bob")
		if n := pending(); n != domain.MaxPendingDevices {
			t.Errorf("%d devices wait", n)
		}
		_, err := asks(t, f, key, first)
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
		_, err = asks(t, f, key, second)
		ok(t, err)
	})
	t.Run("in vain, and let in without coming", func(t *testing.T) {
		key := identitytest.NewKey(t)
		late := waits(t, f, key, "bob")
		bob.StepUp(t)
		_, err := f.Service.ApproveDevice(bob.Context(t), late.DeviceID, late.VerificationCode)
		ok(t, err)
		f.Clock.Advance(24*time.Hour - time.Second)
		ok(t, f.Service.Cleanup(context.Background()))
		if n := f.DB.Count(t, "SELECT count(*) FROM devices WHERE id = $1 AND state = 'active'", late.DeviceID); n != 1 {
			t.Error("a device that was let in a day ago is gone before the day is over")
		}
		f.Clock.Advance(2 * time.Second)
		ok(t, f.Service.Cleanup(context.Background()))
		ok(t, f.Service.Cleanup(context.Background()))
		if n := pending(); n != 0 {
			t.Errorf("%d devices wait on", n)
		}
		if n := f.DB.Count(t, "SELECT count(*) FROM devices WHERE id = $1 AND state = 'revoked'", late.DeviceID); n != 1 {
			t.Error("a device that never came stays")
		}
		_, err = asks(t, f, key, late)
		identitytest.Is(t, err, errs.CodeFlowExpired, "")
	})
	resolved := 0
	for _, e := range f.Events.OfType(app.EventDevicePending) {
		if e.PrincipalID == bob.Person {
			resolved++
		}
	}
	if resolved%2 != 0 {
		t.Errorf("%d events: a device that waited was not told to wait no longer", resolved)
	}
}

func TestDevicesAreListedRenamedAndRevoked(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	second, err := f.Login(t, identitytest.NewKey(t), "bob", identitytest.Password)
	ok(t, err)
	renamed, err := f.Service.RenameDevice(second.Context(t), second.Device.ID, 1, "Laptop")
	if err != nil || renamed.Name != "Laptop" || renamed.Version != 2 || !renamed.Current {
		t.Fatalf("%+v, %v", renamed, err)
	}
	_, err = f.Service.RenameDevice(second.Context(t), second.Device.ID, 1, "Other")
	identitytest.Is(t, err, errs.CodeVersionConflict, "")
	_, err = f.Service.RenameDevice(second.Context(t), second.Device.ID, 2, " ")
	identitytest.Is(t, err, errs.CodeValidationFailed, "")
	_, err = f.Service.RenameDevice(ana.Context(t), second.Device.ID, 2, "Mine")
	identitytest.Is(t, err, errs.CodeNotFound, "")
	identitytest.Is(t, f.Service.RevokeDevice(bob.Context(t), ana.Device.ID), errs.CodeNotFound, "")
	f.Maintenance.Store(true)
	ok(t, f.Service.RevokeDevice(bob.Context(t), second.Device.ID))
	ok(t, f.Service.RevokeDevice(bob.Context(t), second.Device.ID))
	f.Maintenance.Store(false)
	_, err = second.Authenticate(t)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	_, err = second.Refresh(t, second.RefreshToken)
	identitytest.Is(t, err, errs.CodeUnauthenticated, "session_ended")
	if len(f.Published.Revoked) != 1 || f.Published.Revoked[0].DeviceID != second.Device.ID || len(f.Published.Ended) != 1 {
		t.Errorf("published %+v, %+v", f.Published.Revoked, f.Published.Ended)
	}
	for state, want := range map[string]int{"": 1, "active": 1, "pending": 0, "revoked": 1} {
		list, err := f.Service.ListUserDevices(ana.Context(t), app.DeviceFilter{PrincipalID: bob.Person, State: state, Limit: 10})
		if err != nil || len(list) != want {
			t.Errorf("state %q: %d devices, %v", state, len(list), err)
		}
	}
	_, err = f.Service.ListUserDevices(bob.Context(t), app.DeviceFilter{PrincipalID: ana.Person, Limit: 10})
	identitytest.Is(t, err, errs.CodeNotFound, "")
	t.Run("a key that was retired may come again", func(t *testing.T) {
		again, err := f.Login(t, second.Key, "bob", identitytest.Password)
		if err != nil || again.Device.ID == second.Device.ID {
			t.Fatalf("%+v, %v", again, err)
		}
	})
}

func TestDisableEndsWaiting(t *testing.T) {
	f := setup(t)
	ana := f.Owner(t, "ana")
	bob := f.Member(t, ana, "bob")
	asksForApproval(f, domain.ApprovalPassword)
	key := identitytest.NewKey(t)
	w := waits(t, f, key, "bob")
	_, err := f.Service.ApproveDevice(ana.Context(t), w.DeviceID, w.VerificationCode)
	ok(t, err)
	other := identitytest.NewKey(t)
	waits(t, f, other, "bob")
	shown, err := f.Service.User(ana.Context(t), bob.Person)
	ok(t, err)
	_, err = f.Service.DisableUser(ana.Context(t), bob.Person, shown.Version, "left")
	ok(t, err)
	if n := f.DB.Count(t, "SELECT count(*) FROM devices WHERE principal_id = $1 AND state <> 'revoked'", bob.Person); n != 0 {
		t.Errorf("%d devices live on", n)
	}
	_, err = asks(t, f, key, w)
	identitytest.Is(t, err, errs.CodeFlowExpired, "")
}
