// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"slices"
	"testing"
)

func TestParseOwner(t *testing.T) {
	o, err := ParseOwner("server=10001:20002")
	if err != nil || o.Service != "server" || o.UID != 10001 || o.GID != 20002 || !slices.Contains(o.Secrets, "auth_code_hmac_key") {
		t.Fatalf("%+v, %v", o, err)
	}
	for _, text := range []string{"", "server", "server=1", "server=1:x", "server=-1:1", "server=1:", "=1:1", "_store=1:1", "server=4294967295:1", "Server=1:1"} {
		if o, err := ParseOwner(text); err == nil {
			t.Errorf("%q is read as %+v", text, o)
		}
	}
}

// What a service is given is registered, and everything that is made is given to somebody.
func TestServicesUseWhatIsRegistered(t *testing.T) {
	used := map[string]bool{}
	for service, list := range services {
		for _, name := range list {
			used[name] = true
			if !slices.ContainsFunc(Register(), func(r Registered) bool { return r.Name == name }) {
				t.Errorf("%s uses %s, which nobody makes", service, name)
			}
		}
	}
	for _, r := range Register() {
		if !used[r.Name] {
			t.Errorf("nobody uses %s", r.Name)
		}
	}
	if slices.Contains(services["server"], "database_owner_password") {
		t.Error("the server can change the schema")
	}
}

func FuzzParseOwner(f *testing.F) {
	f.Add("server=10001:10001")
	f.Fuzz(func(t *testing.T, text string) {
		if o, err := ParseOwner(text); err == nil && (o.UID < 0 || o.GID < 0 || services[o.Service] == nil) {
			t.Fatalf("%q is read as %+v", text, o)
		}
	})
}
