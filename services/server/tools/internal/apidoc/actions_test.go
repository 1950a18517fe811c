// SPDX-License-Identifier: Apache-2.0

package apidoc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/tools/internal/apidoc"
)

const entry = `- id: grant.create
  module: authz
  summary: Give a person or group rights on a target
  effect: write
  callers: [person]
  resource: target
  self: false
  level: null
  any_of: [{level: manage}, {capability: members.manage}]
  capability: null
  owner_only: false
  step_up: conditional
  step_up_rule: AC-22
  audit: {allow: true, deny: true}
  maintenance: deny
  before_setup: false
  view_as: deny
  acting_for: deny
  extension: deny
  rate_limit: rl.admin
  rules: [AC-20]
`

func load(t *testing.T, text string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "actions.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := apidoc.LoadActions(file)
	return err
}

func TestTheCatalogueIsRefusedWhenAnEntryIsWrong(t *testing.T) {
	if err := load(t, entry); err != nil {
		t.Fatalf("the entry itself: %v", err)
	}
	for name, c := range map[string]struct{ old, replacement, want string }{
		"missing member":                    {"  view_as: deny\n", "", "no member view_as"},
		"missing member with a zero value":  {"  self: false\n", "", "no member self"},
		"unknown member":                    {"  view_as: deny\n", "  view_as: deny\n  colour: red\n", "colour"},
		"unknown word":                      {"effect: write", "effect: change", `"change" is no effect`},
		"unknown caller":                    {"[person]", "[robot]", `"robot" is no caller`},
		"nobody may call it":                {"[person]", "[]", "nobody"},
		"condition without a rule":          {"  step_up_rule: AC-22\n", "", "step_up_rule"},
		"alternatives beside a level":       {"level: null", "level: read", "any_of"},
		"no rate limit":                     {"rl.admin", "null", "rate limit"},
		"step-up always with a token scope": {"step_up: conditional\n  step_up_rule: AC-22", "step_up: always", "session"},
		"twice":                             {"- id: grant.create", entry + "- id: grant.create", "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			err := load(t, strings.Replace(entry, c.old, c.replacement, 1))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
