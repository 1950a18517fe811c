// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestMemory(t *testing.T) {
	clk := clocktest.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := NewMemory(clk)
	hash, c := [32]byte{1}, TokenCredential{PrincipalID: ids.New()}
	known := func() bool {
		_, ok := m.get(hash)
		return ok
	}
	m.put(hash, c, clk.Now())
	if !known() {
		t.Fatal("nothing is remembered")
	}
	clk.Advance(memoryTTL)
	if known() {
		t.Fatal("remembered for too long")
	}
	m.put(hash, c, clk.Now())
	m.Forget(c.PrincipalID)
	if known() {
		t.Fatal("a forgotten principal is known")
	}
	// A request that read the token before the unit committed comes in late.
	m.put(hash, c, clk.Now())
	if known() {
		t.Fatal("the state from before a revocation is remembered behind it")
	}
	clk.Advance(memoryHold)
	m.put(hash, c, clk.Now())
	if !known() {
		t.Fatal("a principal is never remembered again")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	clk := clocktest.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := NewMemory(clk)
	for i := range memoryMax + 10 {
		m.put([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, TokenCredential{}, clk.Now())
	}
	if n := len(m.entries); n > memoryMax {
		t.Fatalf("%d entries", n)
	}
}

func TestScopesComeFromTheCatalogue(t *testing.T) {
	for kind, want := range map[actor.Kind]string{actor.KindPerson: "messaging.write", actor.KindAgent: "agents.write", actor.KindApp: "identity.admin"} {
		if bad := unusableScopes(kind, []string{want}); len(bad) != 0 {
			t.Errorf("%s cannot use %s", kind, want)
		}
	}
	if bad := unusableScopes(actor.KindAgent, []string{"identity.admin", authorize.ScopeSession, authorize.ScopeNone, ""}); len(bad) != 4 {
		t.Errorf("an agent may not use %v alone", bad)
	}
}

func TestConfigValidate(t *testing.T) {
	good := DefaultConfig()
	good.PublicURL, good.CodeHMACKey = "https://chat.example", make([]byte, CodeKeyMin)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no address":                  func(c *Config) { c.PublicURL = "" },
		"an address with a path":      func(c *Config) { c.PublicURL += "/chat" },
		"no secret":                   func(c *Config) { c.CodeHMACKey = nil },
		"devices end before sessions": func(c *Config) { c.DeviceInactiveRevoke = c.SessionIdleTTL },
		"half a day of retention":     func(c *Config) { c.SecurityRetention = 12 * time.Hour },
		"idle above maximum":          func(c *Config) { c.SessionMaxTTL = time.Hour },
	} {
		c := good
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
