// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/test/harness"
)

var device = harness.Body{"name": "Firefox on Linux", "platform": "linux", "client": "app", "client_version": "1.0.0"}

// invite makes a person and gives the code she enrolls with.
func invite(t *testing.T, s *harness.Server, name string) (id, code string) {
	t.Helper()
	made := s.Owner(t).Call(t, "createUser", harness.Body{"handle": s.Unique(name), "display_name": "Member " + name, "issue_code": true}).OK(t)
	return made.Str("id"), made.Str("enrollment.code")
}

func newDevice(t *testing.T, s *harness.Server) *harness.Client {
	t.Helper()
	c := s.Anonymous()
	c.DeviceKey = identitytest.NewKey(t)
	return c
}

// unproven sends a call without a proof of the device key.
var unproven = harness.Header{"DPoP": "x.y.z"}

func TestLoginIsRefused(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	fresh, foreign := newDevice(t, s), s.Anonymous()
	foreign.DeviceKey = ana.DeviceKey
	_, code := invite(t, s, "bob")
	flow := fresh.Call(t, "beginLogin", harness.Body{"driver": "local", "device": device}).OK(t).Str("flow_id")
	correct := harness.Body{"login": ana.Handle, "password": ana.Password}
	local := harness.Body{"driver": "local", "device": device}
	withoutNonce := func() harness.Header {
		return harness.Header{"DPoP": fresh.DeviceKey.Proof(t, identitytest.Claims{Method: "POST", URL: s.URL + "/api/v1/auth/login/" + flow + "/complete"})}
	}
	refresh := harness.Header{"DPoP": ana.DeviceKey.Proof(t, identitytest.Claims{Method: "POST", URL: s.URL + "/api/v1/auth/token"})}
	refuse(t,
		refusal{"wrong code", fresh, "beginLogin", with(harness.Body{"driver": "enrollment", "code": "AAAA-BBBB-CCCC-DDDD", "device": device}), "unauthenticated", "login_failed"},
		refusal{"key of another", foreign, "beginLogin", with(harness.Body{"driver": "enrollment", "code": code, "device": device}), "conflict", "device_key_in_use"},
		refusal{"bad proof", fresh, "beginLogin", with(local, unproven), "invalid_dpop_proof", ""},
		refusal{"unknown member", fresh, "beginLogin", with(harness.Body{"driver": "local", "device": device, "x": 1}), "validation_failed", ""},
		refusal{"bad proof", fresh, "completeLogin", with(flow, correct, unproven), "invalid_dpop_proof", ""},
		refusal{"no nonce", fresh, "completeLogin", with(flow, correct, withoutNonce()), "use_dpop_nonce", ""},
		refusal{"wrong password", fresh, "completeLogin", with(flow, harness.Body{"login": ana.Handle, "password": "wrong"}), "unauthenticated", "login_failed"},
		refusal{"unknown name", fresh, "completeLogin", with(flow, harness.Body{"login": "nobody-at-all", "password": "wrong"}), "unauthenticated", "login_failed"},
		refusal{"unknown flow", fresh, "completeLogin", with(harness.NewID(), correct), "flow_expired", ""},
		refusal{"key of another", foreign, "completeLogin", with(flow, correct), "unauthenticated", "login_failed"},
		refusal{"unknown token", fresh, "refreshToken", with(harness.Body{"refresh_token": "no-token"}), "unauthenticated", "session_ended"},
		refusal{"bad proof", fresh, "refreshToken", with(harness.Body{"refresh_token": "no-token"}, unproven), "invalid_dpop_proof", ""},
		refusal{"no nonce", ana, "refreshToken", with(harness.Body{"refresh_token": "no-token"}, refresh), "use_dpop_nonce", ""},
	)
	fresh.Call(t, "completeLogin", flow, correct).Is(t, http.StatusOK)
	fresh.Call(t, "completeLogin", flow, correct).Refused(t, "flow_expired")
}

func TestAccountsHaveALimitOfDevices(t *testing.T) {
	s := harness.Start(t, harness.WithKeys(map[string]string{"auth.max_devices": "1"}))
	ana := s.Person(t, "ana")
	second := newDevice(t, s)
	flow := second.Call(t, "beginLogin", harness.Body{"driver": "local", "device": device}).OK(t).Str("flow_id")
	second.Call(t, "completeLogin", flow, harness.Body{"login": ana.Handle, "password": ana.Password}).Refused(t, "conflict", "device_limit")
}

func TestASessionIsRenewedAndEnds(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	first := ana.Refresh()
	ana.Renew(t).Is(t, http.StatusOK)
	ana.Call(t, "getSelf").OK(t)
	ana.Renew(t).Is(t, http.StatusOK)
	// The first token was exchanged twice over: two hands hold the session, so it ends.
	ana.Call(t, "refreshToken", harness.Body{"refresh_token": first}).Refused(t, "unauthenticated", "session_ended")
	ana.Call(t, "getSelf").Refused(t, "unauthenticated")
	again := ana.Login(t)
	again.Call(t, "logout").Is(t, http.StatusNoContent)
	again.Call(t, "getSelf").Refused(t, "unauthenticated")
}

func TestAccessTokensExpire(t *testing.T) {
	s := harness.Start(t)
	ana := s.Person(t, "ana")
	s.Clock.Advance(11 * minute)
	ana.Call(t, "getSelf").Refused(t, "token_expired")
	ana.Renew(t).OK(t)
	ana.Call(t, "getSelf").OK(t)
}

func TestStepUpProvesPresence(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	flow := ana.Call(t, "beginStepUp", harness.Body{"method": "password"}).Is(t, http.StatusCreated).Str("flow_id")
	refuse(t,
		refusal{"wrong password", ana, "completeStepUp", with(flow, harness.Body{"password": "wrong"}), "unauthenticated", "login_failed"},
		refusal{"unknown flow", ana, "completeStepUp", with(harness.NewID(), harness.Body{"password": ana.Password}), "flow_expired", ""},
	)
	old := ana.Access()
	ana.StepUp(t)
	if old == ana.Access() {
		t.Error("the access token is the same")
	}
	tire(t, ana)
	ana.Call(t, "setPassword", harness.Body{"password": "another-Kiln-vowel-9"}).Refused(t, "step_up_required")
	ana.StepUp(t)
	refuse(t,
		refusal{"too short", ana, "setPassword", with(harness.Body{"password": "short"}), "validation_failed", ""},
		refusal{"too common", ana, "setPassword", with(harness.Body{"password": "password1234"}), "validation_failed", ""},
	)
	ana.Call(t, "setPassword", harness.Body{"password": "another-Kiln-vowel-9"}).Is(t, http.StatusNoContent)
	ana.Password = "another-Kiln-vowel-9"
	ana.Login(t).Call(t, "getSelf").OK(t)
	s.DB.Exec(t, "DELETE FROM local_credentials WHERE principal_id = $1", ana.ID)
	ana.Call(t, "beginStepUp", harness.Body{"method": "password"}).Refused(t, "conflict", "no_step_up_method")
}
