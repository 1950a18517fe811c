// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "../.."
	document = "../../../../docs/architecture/permission-model.md"
)

// A fault that can no longer be put into the source proves nothing, and neither does one that
// nobody can read about.
func TestEveryFaultAppliesAndIsDocumented(t *testing.T) {
	list, err := mutants()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range list {
		source, err := m.apply(module)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(source), m.Replace) || m.Breaks == "" {
			t.Errorf("%s says nothing", m.Name)
		}
		if !strings.Contains(string(raw), "| `"+m.Name+"` | "+m.Breaks+" |") {
			t.Errorf("%s does not stand in %s with what it breaks", m.Name, document)
		}
		names = append(names, m.Name)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(list) {
		t.Error("two faults have one name")
	}
	_, table, _ := strings.Cut(string(raw), "## Faults")
	if in := strings.Count(table, "\n| `"); in != len(list) {
		t.Errorf("%s names %d faults, there are %d", document, in, len(list))
	}
}

func TestAFaultMustOccurOnce(t *testing.T) {
	m := mutant{Name: "twice", File: "tools/mutants/main_test.go", Find: "func ", Replace: ""}
	if _, err := m.apply(module); err == nil {
		t.Error("a text that occurs several times was taken")
	}
}
