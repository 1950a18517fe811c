// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// signInWaiting proves a person by password on a new device that somebody has to approve.
func signInWaiting(t *testing.T, who *harness.Client) (c *harness.Client, waiting *harness.Response) {
	t.Helper()
	c = newDevice(t, who.Server)
	c.ID, c.Handle, c.Password = who.ID, who.Handle, who.Password
	flow := c.Call(t, "beginLogin", harness.Body{"driver": "local", "device": device}).OK(t).Str("flow_id")
	return c, c.Call(t, "completeLogin", flow, harness.Body{"login": who.Handle, "password": who.Password}).Is(t, http.StatusAccepted)
}

// ask lets a waiting device ask whether it was approved.
func ask(t *testing.T, c *harness.Client, waiting *harness.Response) *harness.Response {
	t.Helper()
	return c.Call(t, "completeLogin", waiting.Str("flow_id"), harness.Body{})
}

func TestANewDeviceWaitsForApproval(t *testing.T) {
	s := harness.Start(t, harness.WithSetting("auth.device_approval", `"password"`))
	owner, ana, eve := s.Owner(t), s.Person(t, "ana"), s.Person(t, "eve")
	own, administration, stranger := ana.Connect(t), owner.Connect(t), eve.Connect(t)
	phone, waiting := signInWaiting(t, ana)
	id, code := waiting.Str("device_id"), waiting.Str("verification_code")
	named := func(e harness.Event) bool {
		return e.Str("data.device.id") == id && e.Str("data.verification_code") == code
	}
	own.Event(t, "device.pending", named)
	administration.Event(t, "device.pending", func(e harness.Event) bool { return named(e) && e.Str("data.principal.id") == ana.ID })
	ask(t, phone, waiting).Is(t, http.StatusAccepted)
	if list := ana.Call(t, "listDevices", harness.Query{"state": "pending"}).OK(t); list.Str("items.0.id") != id || list.Str("items.0.verification_code") != code {
		t.Errorf("those that wait: %s", list.Body)
	}
	tire(t, eve)
	ana.StepUp(t)
	refuse(t,
		refusal{"of another", eve, "approveDevice", with(id, harness.Body{"verification_code": code}), "not_found", ""},
		refusal{"missing", ana, "approveDevice", with(harness.NewID(), harness.Body{"verification_code": code}), "not_found", ""},
		refusal{"other digits", ana, "approveDevice", with(id, harness.Body{"verification_code": "000000"}), "validation_failed", ""},
		refusal{"no digits", ana, "approveDevice", with(id, harness.Body{"verification_code": "abc"}), "validation_failed", ""},
		refusal{"active", ana, "approveDevice", with(ana.Device, harness.Body{"verification_code": code}), "conflict", "not_pending"},
		refusal{"without presence", eve, "approveDevice", with(eve.Device, harness.Body{"verification_code": code}), "step_up_required", ""},
	)
	ana.Call(t, "approveDevice", id, harness.Body{"verification_code": code}).OK(t)
	administration.Event(t, "device.pending", func(e harness.Event) bool { return named(e) && e.Str("data.resolved") == "approved" })
	phone.Adopt(ask(t, phone, waiting).Is(t, http.StatusOK))
	phone.Call(t, "getSelf").OK(t)
	phone.Connect(t)
	ask(t, phone, waiting).Refused(t, "flow_expired")

	tablet, waiting := signInWaiting(t, ana)
	tire(t, ana)
	ana.Call(t, "revokeDevice", waiting.Str("device_id")).Is(t, http.StatusNoContent)
	ask(t, tablet, waiting).Refused(t, "forbidden", "device_denied")
	own.Event(t, "device.pending", func(e harness.Event) bool { return e.Str("data.resolved") == "denied" })

	late, waiting := signInWaiting(t, ana)
	s.Clock.Advance(25 * time.Hour)
	ask(t, late, waiting).Refused(t, "flow_expired")
	for _, e := range stranger.Events() {
		if e.Type == "device.pending" {
			t.Errorf("a stranger hears of a device: %s", e.Str("data.device.name"))
		}
	}
}

func TestDevicesAreListedRenamedAndRevoked(t *testing.T) {
	s := shared.Use(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	laptop := ana.Login(t)
	socket := laptop.Connect(t)
	if list := ana.Call(t, "listDevices", harness.Query{"limit": "1"}).OK(t); list.Str("next_cursor") == "" || len(list.List("items")) != 1 {
		t.Errorf("two devices, one page: %s", list.Body)
	}
	if list := owner.Call(t, "listUserDevices", ana.ID).OK(t); len(list.List("items")) != 2 {
		t.Errorf("of another: %s", list.Body)
	}
	renamed := laptop.Call(t, "renameDevice", laptop.Device, harness.IfMatch(1), harness.Body{"name": "Laptop"}).OK(t)
	if renamed.Str("name") != "Laptop" || renamed.At("current") != true || renamed.Version(t) != 2 {
		t.Errorf("renamed: %s", renamed.Body)
	}
	tired := ana.Login(t)
	tire(t, tired)
	refuse(t,
		refusal{"bad cursor", ana, "listDevices", with(harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"bad cursor", owner, "listUserDevices", with(ana.ID, harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"of another", ana, "listUserDevices", with(owner.ID), "not_found", ""},
		refusal{"missing", owner, "listUserDevices", with(harness.NewID()), "not_found", ""},
		refusal{"old version", ana, "renameDevice", with(laptop.Device, stale, harness.Body{"name": "x"}), "version_conflict", ""},
		refusal{"no version", ana, "renameDevice", with(laptop.Device, harness.Body{"name": "x"}), "precondition_required", ""},
		refusal{"of another", owner, "renameDevice", with(laptop.Device, stale, harness.Body{"name": "x"}), "not_found", ""},
		refusal{"missing", ana, "revokeDevice", with(harness.NewID()), "not_found", ""},
		refusal{"of another", ana, "revokeDevice", with(owner.Device), "not_found", ""},
		refusal{"without presence", tired, "revokeDevice", with(laptop.Device), "step_up_required", ""},
	)
	ana.StepUp(t)
	ana.Call(t, "revokeDevice", laptop.Device).Is(t, http.StatusNoContent)
	if code := socket.Closed(t); code != 4010 {
		t.Errorf("the connection was closed with %d", code)
	}
	laptop.Call(t, "getSelf").Refused(t, "unauthenticated")
	laptop.Call(t, "refreshToken", harness.Body{"refresh_token": laptop.Refresh()}).Refused(t, "unauthenticated", "session_ended")
	if list := ana.Call(t, "listDevices", harness.Query{"state": "revoked"}).OK(t); list.Str("items.0.id") != laptop.Device {
		t.Errorf("revoked: %s", list.Body)
	}
}
