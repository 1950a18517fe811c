// SPDX-License-Identifier: Apache-2.0

package ratelimit

// KeyKind says what a bucket of a class belongs to.
type KeyKind string

// The kinds of keys. KeyOther means that the caller makes the key from something that only
// it knows: a session, a connection, a webhook, a host or a login name.
const (
	KeyClientIP        KeyKind = "client_ip"
	KeyPrincipal       KeyKind = "principal"
	KeyPrincipalDevice KeyKind = "principal_device"
	KeyOther           KeyKind = "other"
)

// Class is one row of the table of rate-limit classes.
type Class struct {
	// Key says what a bucket belongs to.
	Key KeyKind
	// Burst is the size of a bucket: how many requests may come at once.
	Burst int `key:"burst" min:"1" max:"100000" doc:"Requests that may come at once."`
	// PerMinute is how fast a bucket fills again.
	PerMinute int `key:"per_minute" min:"1" max:"100000" doc:"Requests a minute in the long run."`
}

// PublicAuth is the class that a failed credential takes a token of.
const PublicAuth = "public_auth"

// DefaultClasses gives a fresh copy of the classes with their default numbers, by the name
// without the prefix "rl.".
func DefaultClasses() map[string]*Class {
	out := make(map[string]*Class, len(defaults))
	for _, d := range defaults {
		out[d.name] = &Class{Key: d.key, Burst: d.burst, PerMinute: d.perMinute}
	}
	return out
}

var defaults = []struct {
	name             string
	key              KeyKind
	burst, perMinute int
}{
	{"public_read", KeyClientIP, 60, 120},
	{PublicAuth, KeyClientIP, 20, 20},
	{"login_name", KeyOther, 10, 1},
	{"auth_session", KeyOther, 20, 20},
	{"sensitive", KeyPrincipal, 10, 10},
	{"read", KeyPrincipal, 240, 600},
	{"read_heavy", KeyPrincipal, 20, 60},
	{"write", KeyPrincipal, 60, 240},
	{"message", KeyPrincipal, 20, 90},
	{"admin", KeyPrincipal, 60, 120},
	{"csp_report", KeyClientIP, 10, 30},
	{"sync_snapshot", KeyPrincipalDevice, 5, 10},
	{"sync_catchup", KeyPrincipal, 30, 60},
	{"read_state", KeyPrincipal, 60, 120},
	{"draft", KeyPrincipal, 60, 120},
	{"settings", KeyPrincipal, 30, 60},
	{"gateway_connect", KeyClientIP, 300, 600},
	{"gateway_connect_principal", KeyPrincipal, 20, 30},
	{"gateway_op", KeyOther, 60, 600},
	{"typing", KeyPrincipal, 10, 30},
	{"agent_runtime", KeyPrincipal, 120, 1200},
	{"run_update", KeyPrincipal, 120, 3600},
	{"invoke", KeyPrincipal, 10, 30},
	{"interaction", KeyPrincipal, 20, 60},
	{"autocomplete", KeyPrincipal, 10, 300},
	{"webhook_in", KeyOther, 60, 120},
	{"mcp", KeyPrincipal, 30, 120},
	{"upload", KeyPrincipal, 120, 600},
	{"file_content", KeyPrincipal, 400, 1200},
	{"search", KeyPrincipal, 20, 60},
	{"search_suggest", KeyPrincipal, 40, 240},
	{"import", KeyPrincipal, 100, 1200},
	{"host_pair", KeyClientIP, 10, 10},
	{"host_connect", KeyOther, 10, 20},
	{"host_connect_ip", KeyClientIP, 60, 120},
	{"terminal_open", KeyPrincipal, 10, 20},
	{"terminal_attach", KeyPrincipal, 30, 60},
	{"terminal_connect", KeyClientIP, 120, 240},
	{"client_metrics", KeyPrincipalDevice, 6, 6},
}
