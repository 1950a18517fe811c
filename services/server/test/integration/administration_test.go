// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/wire"
	"github.com/OWNER/bothy/services/server/test/harness"
)

func TestBrandingIsSeenByEverybody(t *testing.T) {
	s := harness.Start(t)
	owner, member := s.Owner(t), s.Person(t, "ana")
	before := member.Call(t, "getInstance").OK(t)
	socket := member.Connect(t)
	version := harness.IfMatch(before.Int("branding.version"))
	changed := owner.Call(t, "updateBranding", version, harness.Body{"product_name": "Harbour", "accent": "loch", "support_url": "https://example.org/help"}).OK(t)
	socket.Event(t, "instance.updated", func(e harness.Event) bool {
		return e.Str("data.changed.0") == "branding" && e.Str("data.instance.branding.product_name") == "Harbour"
	})
	if d := s.Anonymous().Call(t, "getDiscovery").OK(t); d.Str("product_name") != "Harbour" || d.Str("branding.accent") != "loch" {
		t.Errorf("discovery: %s", d.Body)
	}
	cleared := owner.Call(t, "updateBranding", changed.Version(t), harness.Body{"product_name": nil}).OK(t)
	if cleared.Str("product_name") != "Bothy" || cleared.Str("accent") != "loch" {
		t.Errorf("cleared: %s", cleared.Body)
	}
	refuse(t,
		refusal{"old version", owner, "updateBranding", with(version, harness.Body{"accent": "rowan"}), "version_conflict", ""},
		refusal{"no version", owner, "updateBranding", with(harness.Body{"accent": "rowan"}), "precondition_required", ""},
		refusal{"unknown accent", owner, "updateBranding", with(cleared.Version(t), harness.Body{"accent": "teal"}), "validation_failed", ""},
		refusal{"address without TLS", owner, "updateBranding", with(cleared.Version(t), harness.Body{"imprint_url": "http://example.org"}), "validation_failed", ""},
		refusal{"member", member, "updateBranding", with(cleared.Version(t), harness.Body{"accent": "rowan"}), "forbidden", ""},
	)
	found := owner.Call(t, "listAuditEvents", harness.Query{"action": "instance.branding.update", "outcome": "allow"}).OK(t)
	if len(found.List("items")) != 2 {
		t.Errorf("the record: %s", found.Body)
	}
}

func TestFlagsRollOut(t *testing.T) {
	s := harness.Start(t, harness.WithConfig(func(c *wire.Config) {
		c.Modules.Flags = append(c.Modules.Flags, instance.Flag{Key: "new_sidebar", Module: "instance", Summary: "The new sidebar"})
	}))
	owner, ana, ben, agent := s.Owner(t), s.Person(t, "ana"), s.Person(t, "ben"), s.Agent(t, "helper")
	has := func(c *harness.Client) bool {
		return c.Call(t, "getInstance").OK(t).At("flags.new_sidebar") == true &&
			c.Call(t, "getSnapshot").OK(t).At("sections.instance.instance.flags.new_sidebar") == true
	}
	list := owner.Call(t, "listFeatureFlags").OK(t)
	if list.Str("items.0.key") != "new_sidebar" || list.Str("items.0.state") != "off" {
		t.Fatalf("flags: %s", list.Body)
	}
	socket := ana.Connect(t)
	version := harness.IfMatch(list.Int("items.0.version"))
	changed := owner.Call(t, "updateFeatureFlag", "new_sidebar", version, harness.Body{"state": "rollout", "people": []string{ana.ID}}).OK(t)
	socket.Event(t, "instance.updated", func(e harness.Event) bool { return e.Str("data.changed.0") == "flags" })
	if !has(ana) || has(ben) {
		t.Error("the rollout reaches the wrong people")
	}
	group := owner.Call(t, "createGroup", harness.Body{"name": s.Unique("Early"), "handle": s.Unique("early")}).OK(t).Str("id")
	owner.Call(t, "putGroupMember", group, ben.ID, harness.Body{}).OK(t)
	changed = owner.Call(t, "updateFeatureFlag", "new_sidebar", changed.Version(t), harness.Body{"groups": []string{group}}).OK(t)
	if !has(ben) {
		t.Error("a member of the group is left out")
	}
	changed = owner.Call(t, "updateFeatureFlag", "new_sidebar", changed.Version(t), harness.Body{"percent": 100}).OK(t)
	if agent.Call(t, "getInstance").OK(t).At("flags.new_sidebar") != false {
		t.Error("a rollout reached an agent")
	}
	changed = owner.Call(t, "updateFeatureFlag", "new_sidebar", changed.Version(t), harness.Body{"state": "on"}).OK(t)
	if agent.Call(t, "getInstance").OK(t).At("flags.new_sidebar") != true {
		t.Error("what is on is not on for an agent")
	}
	now := changed.Version(t)
	refuse(t,
		refusal{"old version", owner, "updateFeatureFlag", with("new_sidebar", version, harness.Body{"state": "off"}), "version_conflict", ""},
		refusal{"no version", owner, "updateFeatureFlag", with("new_sidebar", harness.Body{"state": "off"}), "precondition_required", ""},
		refusal{"unknown flag", owner, "updateFeatureFlag", with("dance", harness.IfMatch(1), harness.Body{"state": "off"}), "not_found", ""},
		refusal{"unknown person", owner, "updateFeatureFlag", with("new_sidebar", now, harness.Body{"people": []string{agent.ID}}), "validation_failed", ""},
		refusal{"unknown group", owner, "updateFeatureFlag", with("new_sidebar", now, harness.Body{"groups": []string{harness.NewID()}}), "validation_failed", ""},
		refusal{"percent", owner, "updateFeatureFlag", with("new_sidebar", now, harness.Body{"percent": 101}), "validation_failed", ""},
		refusal{"member", ana, "updateFeatureFlag", with("new_sidebar", now, harness.Body{"state": "off"}), "forbidden", ""},
		refusal{"member", ana, "listFeatureFlags", nil, "forbidden", ""},
	)
}

func TestOwnersRotateSigningKeys(t *testing.T) {
	s := harness.Start(t)
	owner, member := s.Owner(t), s.Person(t, "ana")
	harness.Eventually(t, "the job has looked at the keys", func() bool { return s.JobRuns("instance.key_rotation") > 0 })
	purposes := map[string]bool{}
	for _, k := range owner.Call(t, "listSigningKeys").OK(t).List("items") {
		purposes[harness.At(k, "purpose").(string)] = harness.At(k, "state") == "active"
	}
	if !purposes["access"] || !purposes["checkpoint"] {
		t.Errorf("active keys: %v", purposes)
	}
	owner.StepUp(t)
	prepared := owner.Call(t, "rotateSigningKey", "access", harness.Body{"mode": "scheduled"}).OK(t)
	if prepared.Str("items.0.state") != "next" || !strings.Contains(string(s.Anonymous().Call(t, "getJwks").OK(t).Body), prepared.Str("items.0.kid")) {
		t.Errorf("the next key is not published: %s", prepared.Body)
	}
	socket := owner.Connect(t)
	rotated := owner.Call(t, "rotateSigningKey", "access", harness.Body{"mode": "now"}).OK(t)
	socket.Event(t, "instance.updated", func(e harness.Event) bool { return e.Str("data.changed.0") == "signing_keys" })
	if rotated.Str("items.0.kid") != prepared.Str("items.0.kid") || rotated.Str("items.0.state") != "active" {
		t.Errorf("another key signs than the one that was published: %s", rotated.Body)
	}
	owner.Call(t, "getInstance").OK(t)
	refuse(t,
		refusal{"unknown purpose", owner, "rotateSigningKey", with("dance", harness.Body{"mode": "now"}), "not_found", ""},
		refusal{"unknown mode", owner, "rotateSigningKey", with("access", harness.Body{"mode": "later"}), "validation_failed", ""},
		refusal{"member", member, "rotateSigningKey", with("access", harness.Body{"mode": "now"}), "forbidden", ""},
		refusal{"member", member, "listSigningKeys", nil, "forbidden", ""},
	)
	owner.Call(t, "rotateSigningKey", "access", harness.Body{"mode": "scheduled"}).OK(t)
	owner.Call(t, "rotateSigningKey", "access", harness.Body{"mode": "scheduled"}).Refused(t, "conflict", "next_exists")

	// What a compromised key signed ends at once; nobody has to sign in again.
	owner.Renew(t).OK(t)
	owner.StepUp(t)
	owner.Call(t, "rotateSigningKey", "access", harness.Body{"mode": "compromised"}).OK(t)
	owner.Call(t, "getSelf").Refused(t, "unauthenticated")
	owner.Renew(t).OK(t)
	owner.Call(t, "getSelf").OK(t)
	s.Clock.Advance(6 * minute)
	owner.Call(t, "rotateSigningKey", "access", harness.Body{"mode": "now"}).Refused(t, "step_up_required")
	found := owner.Call(t, "listAuditEvents", harness.Query{"action": "signing_key."}).OK(t)
	if len(found.List("items")) < 8 {
		t.Errorf("the record: %s", found.Body)
	}
}

func TestBrowsersReportWhatThePolicyStopped(t *testing.T) {
	s := shared.Use(t)
	s.Owner(t)
	nobody := s.Anonymous()
	const old = `{"csp-report":{"effective-directive":"script-src","blocked-uri":"https://evil.example/x.js"}}`
	for media, body := range map[string]string{
		"application/csp-report":   old,
		"application/reports+json": `[{"type":"csp-violation","body":{"effectiveDirective":"img-src","blockedURL":"inline"}}]`,
	} {
		nobody.Call(t, "submitCspReport", harness.Raw(body), harness.Header{"Content-Type": media}).Is(t, 204)
	}
	header := harness.Header{"Content-Type": "application/csp-report"}
	nobody.Call(t, "submitCspReport", harness.Raw("no JSON"), header).Is(t, 204)
	s.Person(t, "ana").Call(t, "submitCspReport", harness.Raw(old), header).Is(t, 204)
	nobody.Call(t, "submitCspReport", harness.Raw(letters(16<<10+1)), header).Refused(t, "payload_too_large")
	nobody.Call(t, "submitCspReport", harness.Raw(old)).Refused(t, "unsupported_media_type")
}

// TestFiguresLeaveByOneWay has the collector that an operator names, and nothing else to ask.
func TestFiguresLeaveByOneWay(t *testing.T) {
	var mu sync.Mutex
	var got []byte
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && r.URL.Path == "/v1/metrics" {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, body...)
		}
	}))
	defer collector.Close()
	s := harness.Start(t, harness.WithKeys(map[string]string{"telemetry.otlp_endpoint": collector.URL}))
	owner := s.Owner(t)
	owner.Call(t, "getInstance").OK(t)
	for _, path := range []string{"/metrics", "/healthz"} {
		if status := get(t, s.URL+path); status != http.StatusNotFound {
			t.Errorf("%s answers %d", path, status)
		}
	}
	harness.Eventually(t, "the job has looked at the keys", func() bool { return s.JobRuns("instance.key_rotation") > 0 })
	s.Stop(t)
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{
		"http.server.request.duration", "/api/v1/instance", "bothy.db.tx.duration", "bothy.job.duration", "instance.key_rotation",
		"bothy.signing_key.age", "bothy.process.ready", "db.client.connection.count",
	} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s did not arrive", want)
		}
	}
	if bytes.Contains(got, []byte(owner.ID)) || bytes.Contains(got, []byte(owner.Handle)) {
		t.Error("figures name a person")
	}
}

func get(t *testing.T, address string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	harness.Must(t, err)
	res, err := http.DefaultClient.Do(req)
	harness.Must(t, err)
	harness.Must(t, res.Body.Close())
	return res.StatusCode
}
