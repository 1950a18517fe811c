// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

func TestAnybodyReadsWhatAClientNeedsToBegin(t *testing.T) {
	s := shared.Use(t)
	s.Owner(t)
	nobody := s.Anonymous()
	found := nobody.Call(t, "getDiscovery").Is(t, http.StatusOK)
	if found.Str("api_base") != s.URL+"/api/v1" || found.At("setup_complete") != true {
		t.Errorf("discovery: %s", found.Body)
	}
	if keys := nobody.Call(t, "getJwks").Is(t, http.StatusOK); len(keys.List("keys")) == 0 {
		t.Errorf("no keys: %s", keys.Body)
	}
	nobody.Call(t, "getInstance").Refused(t, "unauthenticated")
}

func TestSettingsChangeTogetherOrNotAtAll(t *testing.T) {
	s := harness.Start(t)
	owner := s.Owner(t)
	member := s.Person(t, "ana")
	before := member.Call(t, "getInstance").OK(t)
	settings := owner.Call(t, "getInstanceSettings").OK(t)
	if settings.At("values.instance") == nil && len(settings.Body) == 0 {
		t.Fatal("no settings")
	}
	socket := member.Connect(t)
	changed := owner.Call(t, "updateInstanceSettings", settings.Version(t), harness.Body{"instance.name": "Harbour"}).OK(t)
	socket.Event(t, "instance.updated", func(e harness.Event) bool { return e.Str("data.instance.name") == "Harbour" })
	if name := member.Call(t, "getInstance").OK(t).Str("name"); name != "Harbour" || before.Str("name") == name {
		t.Errorf("the name is %q", name)
	}
	// Time passes until the login counts as a proof of presence no longer.
	tired := owner.Login(t)
	s.Clock.Advance(6 * minute)
	refuse(t,
		refusal{"unknown key", owner, "updateInstanceSettings", with(changed.Version(t), harness.Body{"no.such": 1}), "validation_failed", ""},
		refusal{"wrong value", owner, "updateInstanceSettings", with(changed.Version(t), harness.Body{"instance.name": 7}), "validation_failed", ""},
		refusal{"old version", owner, "updateInstanceSettings", with(settings.Version(t), harness.Body{"instance.name": "x"}), "version_conflict", ""},
		refusal{"no version", owner, "updateInstanceSettings", with(harness.Body{"instance.name": "x"}), "precondition_required", ""},
		refusal{"sensitive", tired, "updateInstanceSettings", with(changed.Version(t), harness.Body{"access.view_as_enabled": false}), "step_up_required", ""},
		refusal{"member", member, "updateInstanceSettings", with(changed.Version(t), harness.Body{"instance.name": "x"}), "forbidden", ""},
		refusal{"member", member, "getInstanceSettings", nil, "forbidden", ""},
	)
	if name := member.Call(t, "getInstance").OK(t).Str("name"); name != "Harbour" {
		t.Errorf("a refused change had an effect: %q", name)
	}
}
