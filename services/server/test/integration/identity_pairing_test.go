// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/test/harness"
)

var commandLine = harness.Body{
	"client_kind": "cli", "device": harness.Body{"name": "bothy on workbench", "platform": "linux", "client": "cli", "client_version": "1.0.0"},
}

func TestACommandLineIsPaired(t *testing.T) {
	s := harness.Start(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	program, thief := newDevice(t, s), newDevice(t, s)
	begun := program.Call(t, "beginPairing", commandLine).Is(t, http.StatusCreated)
	code, secret := harness.Body{"user_code": begun.Str("user_code")}, harness.Body{"device_code": begun.Str("device_code")}
	decide := func(decision string) harness.Body {
		return harness.Body{"decision": decision, "user_code": begun.Str("user_code")}
	}
	withoutNonce := func(operation string) harness.Header {
		address := map[string]string{"beginPairing": "/api/v1/auth/pairings", "pollPairing": "/api/v1/auth/pairings/token"}[operation]
		return harness.Header{"DPoP": program.DeviceKey.Proof(t, identitytest.Claims{Method: "POST", URL: s.URL + address})}
	}
	ana.StepUp(t)
	tired := ana.Login(t)
	tire(t, tired)
	refuse(t,
		refusal{"bad proof", program, "beginPairing", with(commandLine, unproven), "invalid_dpop_proof", ""},
		refusal{"no nonce", program, "beginPairing", with(commandLine, withoutNonce("beginPairing")), "use_dpop_nonce", ""},
		refusal{"kind of another client", program, "beginPairing", with(harness.Body{"client_kind": "device", "device": commandLine["device"]}), "validation_failed", ""},
		refusal{"bad proof", program, "pollPairing", with(secret, unproven), "invalid_dpop_proof", ""},
		refusal{"no nonce", program, "pollPairing", with(secret, withoutNonce("pollPairing")), "use_dpop_nonce", ""},
		refusal{"another key", thief, "pollPairing", with(secret), "flow_expired", ""},
		refusal{"wrong code", ana, "resolvePairing", with(harness.Body{"user_code": "BCDF-GHJK"}), "not_found", ""},
		refusal{"nobody", s.Anonymous(), "resolvePairing", with(code), "unauthenticated", ""},
		refusal{"missing", ana, "decidePairing", with(harness.NewID(), decide("approve")), "not_found", ""},
	)
	program.Call(t, "pollPairing", secret).Is(t, http.StatusAccepted)
	program.Call(t, "pollPairing", secret).Refused(t, "rate_limited")
	seen := ana.Call(t, "resolvePairing", code).OK(t)
	if seen.Str("device.name") != "bothy on workbench" || seen.At("same_network") != true {
		t.Errorf("who asks: %s", seen.Body)
	}
	id := seen.Str("pairing_id")
	tired.Call(t, "decidePairing", id, decide("approve")).Refused(t, "step_up_required")
	ana.Call(t, "decidePairing", id, decide("approve")).Is(t, http.StatusNoContent)
	owner.StepUp(t)
	owner.Call(t, "decidePairing", id, decide("deny")).Refused(t, "conflict", "already_decided")
	program.Adopt(program.Call(t, "pollPairing", secret).Is(t, http.StatusOK))
	if self := program.Call(t, "getSelf").OK(t); self.Str("id") != ana.ID {
		t.Errorf("the program is %s", self.Body)
	}
	program.Renew(t).OK(t)
	program.Connect(t)
	program.Call(t, "pollPairing", secret).Refused(t, "flow_expired")
	if list := ana.Call(t, "listDevices").OK(t); list.Str("items.0.client") != "cli" || list.Str("items.0.approved_via") != "pairing" {
		t.Errorf("the devices: %s", list.Body)
	}
	program.Call(t, "logout").Is(t, http.StatusNoContent)

	refused := newDevice(t, s)
	begun = refused.Call(t, "beginPairing", commandLine).OK(t)
	id = ana.Call(t, "resolvePairing", harness.Body{"user_code": begun.Str("user_code")}).OK(t).Str("pairing_id")
	ana.Call(t, "decidePairing", id, decide("deny")).Is(t, http.StatusNoContent)
	refused.Call(t, "pollPairing", harness.Body{"device_code": begun.Str("device_code")}).Refused(t, "forbidden", "pairing_denied")

	late := newDevice(t, s)
	begun = late.Call(t, "beginPairing", commandLine).OK(t)
	id = ana.Call(t, "resolvePairing", harness.Body{"user_code": begun.Str("user_code")}).OK(t).Str("pairing_id")
	s.Clock.Advance(9*time.Minute + 30*time.Second)
	ana.Renew(t).OK(t)
	ana.StepUp(t)
	s.Clock.Advance(time.Minute)
	ana.Call(t, "decidePairing", id, decide("approve")).Refused(t, "flow_expired")
}
