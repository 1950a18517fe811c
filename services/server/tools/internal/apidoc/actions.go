// SPDX-License-Identifier: Apache-2.0

package apidoc

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"gopkg.in/yaml.v3"
)

// Action is one entry of the catalogue of actions.
type Action struct {
	ID             string        `yaml:"id"`
	Module         string        `yaml:"module"`
	Summary        string        `yaml:"summary"`
	Effect         string        `yaml:"effect"`
	Callers        []string      `yaml:"callers"`
	Resource       string        `yaml:"resource"`
	SecondResource string        `yaml:"second_resource"`
	Self           bool          `yaml:"self"`
	Level          string        `yaml:"level"`
	AnyOf          []Alternative `yaml:"any_of"`
	Capability     string        `yaml:"capability"`
	OwnerOnly      bool          `yaml:"owner_only"`
	StepUp         string        `yaml:"step_up"`
	StepUpRule     string        `yaml:"step_up_rule"`
	Audit          Audit         `yaml:"audit"`
	Maintenance    string        `yaml:"maintenance"`
	BeforeSetup    bool          `yaml:"before_setup"`
	ViewAs         string        `yaml:"view_as"`
	ActingFor      string        `yaml:"acting_for"`
	Extension      string        `yaml:"extension"`
	RateLimit      string        `yaml:"rate_limit"`
	Scope          string        `yaml:"scope"`
	Details        []string      `yaml:"details"`
	Rules          []string      `yaml:"rules"`
}

// Alternative is one of several rights that are enough.
type Alternative struct {
	Level      string `yaml:"level"`
	Capability string `yaml:"capability"`
}

// Audit says which decisions are written to the audit log.
type Audit struct {
	Allow bool `yaml:"allow"`
	Deny  bool `yaml:"deny"`
}

var (
	required = []string{
		"id", "module", "summary", "effect", "callers", "resource", "self", "level", "capability", "owner_only", "step_up",
		"audit", "maintenance", "before_setup", "view_as", "acting_for", "extension", "rate_limit", "rules",
	}
	words = map[string][]string{
		"effect":       {"read", "write"},
		"caller":       {"person", "agent", "app", "anonymous", "webhook", "host", "system"},
		"resource":     {"instance", "space", "channel", "thread", "message", "host", "principal", "agent", "group", "grant", "run", "file", "target", "self", "none"},
		"level":        {"", "read", "write", "trigger", "manage"},
		"step_up":      {"never", "always", "conditional"},
		"maintenance":  {"deny", "allow", "no_write", "conditional"},
		"allow_or_not": {"allow", "deny"},
	}
)

// LoadActions reads the catalogue. A missing, unknown or ill-formed member is an error.
func LoadActions(file string) ([]Action, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var nodes []yaml.Node
	if err := yaml.Unmarshal(text, &nodes); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	var actions []Action
	if err := dec.Decode(&actions); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	seen := map[string]bool{}
	for i, a := range actions {
		var present []string
		for j := 0; j < len(nodes[i].Content); j += 2 {
			present = append(present, nodes[i].Content[j].Value)
		}
		for _, m := range required {
			if !slices.Contains(present, m) {
				return nil, fmt.Errorf("%s: line %d: %s has no member %s", file, nodes[i].Line, a.ID, m)
			}
		}
		if err := a.check(); err != nil {
			return nil, fmt.Errorf("%s: line %d: %s: %w", file, nodes[i].Line, a.ID, err)
		}
		if seen[a.ID] {
			return nil, fmt.Errorf("%s: %s stands there twice", file, a.ID)
		}
		seen[a.ID] = true
	}
	return actions, nil
}

func (a Action) check() error {
	type word struct{ kind, value string }
	for _, w := range []word{
		{"effect", a.Effect}, {"resource", a.Resource}, {"level", a.Level}, {"step_up", a.StepUp},
		{"maintenance", a.Maintenance}, {"allow_or_not", a.ViewAs}, {"allow_or_not", a.ActingFor}, {"allow_or_not", a.Extension},
	} {
		if !slices.Contains(words[w.kind], w.value) {
			return fmt.Errorf("%q is no %s", w.value, w.kind)
		}
	}
	for _, c := range a.Callers {
		if !slices.Contains(words["caller"], c) {
			return fmt.Errorf("%q is no caller", c)
		}
	}
	system := slices.Equal(a.Callers, []string{"system"})
	switch {
	case len(a.Callers) == 0:
		return fmt.Errorf("nobody may call it")
	case (a.StepUp == "conditional") != (a.StepUpRule != ""):
		return fmt.Errorf("step_up_rule belongs to step_up conditional")
	case len(a.AnyOf) > 0 && (a.Level != "" || a.Capability != ""):
		return fmt.Errorf("any_of stands instead of level and capability")
	case system != (a.RateLimit == ""):
		return fmt.Errorf("actions of the system alone have no rate limit, all others have one")
	case a.StepUp == "always" && a.Scope != "session":
		return fmt.Errorf("step-up always needs the scope session")
	case a.Effect == "read" && a.Maintenance != "allow":
		return fmt.Errorf("reads are allowed in maintenance")
	}
	return nil
}
