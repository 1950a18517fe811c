// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/platform/config"
)

// withKeys loads a configuration that is complete but for what the case changes.
func withKeys(environ ...string) error {
	required := []string{"BOTHY_SERVER__PUBLIC_URL=http://localhost:8080", "BOTHY_SECRETS__SIGNING_KEY_DIR=/keys"}
	_, _, err := LoadConfig(Sources{Environ: append(required, environ...)})
	return err
}

// A value with which a job would never rest, a cache would hold nothing or a secret would
// live for ever is refused before anything starts, and the refusal names the key.
func TestValuesThatCannotWorkAreRefusedByTheKey(t *testing.T) {
	t.Parallel()
	wrong := map[string][]string{
		"access.view_as_ttl":             {"0s", "-1m", "59s", "5h", ""},
		"authz.cache_max_principals":     {"0", "-1", "99", "10000001", ""},
		"authz.expiry_interval":          {"0s", "-1s", "999ms", "61m", ""},
		"authz.expiry_reminder_before":   {"-1h", "0s", "168h,0s", "168h,,24h", "59m", "8761h"},
		"authz.max_grants_per_target":    {"0", "-5", "10001"},
		"authz.max_group_members":        {"0", "-5", "100001"},
		"authz.max_groups":               {"0", "-5", "10001"},
		"audit.deny_window":              {"0s", "-1m", "2h"},
		"audit.ip_key_period":            {"0s", "-1h", "23h", "8761h"},
		"audit.ip_key_ttl":               {"0s", "-1h", "23h", "87601h"},
		"audit.verify_max_rows":          {"0", "-1", "100000001"},
		"database.embedded.max_restarts": {"-1", "51"},
		"retention.audit":                {"-1h", "87601h"},
		"retention.batch_size":           {"0", "-5", "99", "10001"},
		"retention.job_interval":         {"0s", "-1h", "25h"},
		"retention.security":             {"-1h", "87601h"},
		"signing_key.cache_ttl":          {"0s", "-1s", "4s", "11m"},
		"signing_key.next_lead":          {"0s", "-1h", "59m", "721h"},
		"signing_key.rotation_interval":  {"0s", "-1h", "23h", "17521h"},
		"auth.session_idle_ttl":          {"0s", "-1h", "8761h"},
	}
	for key, values := range wrong {
		for _, value := range values {
			t.Run(key+"="+value, func(t *testing.T) {
				t.Parallel()
				err := withKeys(config.EnvName(key) + "=" + value)
				if err == nil {
					t.Fatal("accepted")
				}
				line, _, more := strings.Cut(err.Error(), "\n")
				if want := key + " (env " + config.EnvName(key) + "): "; more || !strings.HasPrefix(line, want) {
					t.Errorf("got %q, want one fault of %q", err, want)
				}
			})
		}
	}
}

// The borders themselves are allowed, so that no range is tighter than it says.
func TestBordersOfRangesAreAllowed(t *testing.T) {
	t.Parallel()
	s := schema(newConfig())
	for _, key := range s.Keys() {
		for _, border := range []string{key.Min, key.Max} {
			if border == "" {
				continue
			}
			err := withKeys(config.EnvName(key.Name) + "=" + border)
			// A condition over several keys may refuse the border; the key alone may not.
			if err != nil && strings.HasPrefix(err.Error(), key.Name+" (env ") {
				t.Errorf("%s=%s: %v", key.Name, border, err)
			}
		}
	}
}

// Whoever adds a key says what it means and, where it is a number, a size or a time, how far
// it goes: what has no range accepts an interval of zero and a size below it.
func TestEveryKeyHasAMeaningAndEveryNumberARange(t *testing.T) {
	t.Parallel()
	keys := schema(newConfig()).Keys()
	if len(keys) < 100 {
		t.Fatalf("only %d keys", len(keys))
	}
	ranged := []string{"int", "float", "bytes", "duration", "list of duration"}
	for _, key := range keys {
		if !strings.HasSuffix(key.Doc, ".") {
			t.Errorf("%s (%s): has no sentence that says what it means", key.Name, key.Owner)
		}
		if slices.Contains(ranged, key.Type) && (key.Min == "" || key.Max == "") {
			t.Errorf("%s (%s): is a %s without both ends of a range", key.Name, key.Owner, key.Type)
		}
	}
}
