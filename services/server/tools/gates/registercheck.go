// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/OWNER/bothy/services/server/tools/internal/register"
	"github.com/OWNER/bothy/services/server/tools/internal/sqlscan"
)

// built is what the contract and the schema hold today. The register may hold more: that is planned.
type built struct {
	actions   map[string]string // action -> owner stated in the catalogue, or ""
	events    map[string]string // event key -> producer stated in the contract, or ""
	ops       map[string]bool
	tables    map[string]string // table -> migration that creates it
	functions map[string]string // SQL function -> migration that creates it
}

// runRegister compares the register with the catalogue of actions, the event contract, the migrations and the
// READMEs of the modules. What only the register names is printed and never fails.
func runRegister(_ context.Context, p project, _ []string) ([]string, error) {
	reg, err := p.register()
	if err != nil {
		return nil, err
	}
	b, err := readBuilt(p)
	if err != nil {
		return nil, err
	}
	var bad []string
	bad = append(bad, compareOwners("action", b.actions, reg.ActionOwners(), "docs/spec/actions.yaml")...)
	bad = append(bad, compareOwners("event", b.events, eventOwners(reg), "docs/api/asyncapi.yaml")...)
	bad = append(bad, compareOps(b.ops, reg.OpOwners())...)
	tables := reg.TableOwners()
	for _, t := range sortedKeys(b.tables) {
		if tables[t] == "" {
			bad = append(bad, fmt.Sprintf("%s: creates the table %s, which no module of the register owns", b.tables[t], t))
		}
	}
	functions := reg.FunctionOwners()
	for _, f := range sortedKeys(b.functions) {
		if functions[f] == "" {
			bad = append(bad, fmt.Sprintf("%s: creates the function %s, which the register does not list under functions", b.functions[f], f))
		}
	}
	readmes, err := checkReadmes(p, reg, b)
	if err != nil {
		return nil, err
	}
	bad = append(bad, readmes...)
	printPlanned(p, reg, b)
	return bad, nil
}

func compareOwners(kind string, stated, owners map[string]string, source string) []string {
	var bad []string
	for _, name := range sortedKeys(stated) {
		owner, known := owners[name]
		switch {
		case !known:
			bad = append(bad, fmt.Sprintf("%s: the %s %s stands in no module of the register", source, kind, name))
		case stated[name] != "" && stated[name] != owner:
			bad = append(bad, fmt.Sprintf("%s: the %s %s belongs to %s there and to %s in the register", source, kind, name, stated[name], owner))
		}
	}
	return bad
}

func eventOwners(reg *register.Register) map[string]string {
	owners := map[string]string{}
	for _, m := range reg.Modules {
		for _, e := range m.Events {
			owners[eventKey(e, "durable")] = m.Name
		}
		for _, e := range m.EphemeralEvents {
			owners[eventKey(e, "ephemeral")] = m.Name
		}
	}
	return owners
}

func compareOps(ops map[string]bool, owners map[string]string) []string {
	var bad []string
	for _, op := range sortedKeys(ops) {
		if owners[op] == "" {
			bad = append(bad, fmt.Sprintf("docs/api/asyncapi.yaml: the op %s stands in no module of the register", op))
		}
	}
	return bad
}

func printPlanned(p project, reg *register.Register, b built) {
	count := func(kind string, all map[string]string, have func(string) bool) {
		var planned []string
		for _, n := range sortedKeys(all) {
			if !have(n) {
				planned = append(planned, n)
			}
		}
		if len(planned) > 0 {
			fmt.Fprintf(p.out, "register: planned %s (%d): %s\n", kind, len(planned), strings.Join(planned, ", "))
		}
	}
	count("tables", reg.TableOwners(), func(n string) bool { return b.tables[n] != "" })
	count("actions", reg.ActionOwners(), func(n string) bool { _, ok := b.actions[n]; return ok })
	count("events", eventOwners(reg), func(n string) bool { _, ok := b.events[n]; return ok })
	count("ops", reg.OpOwners(), func(n string) bool { return b.ops[n] })
}

func readBuilt(p project) (built, error) {
	var b built
	var err error
	if b.actions, err = readActions(p.path("docs/spec/actions.yaml")); err != nil {
		return b, err
	}
	if b.events, b.ops, err = readAsyncAPI(p.path("docs/api/asyncapi.yaml")); err != nil {
		return b, err
	}
	b.tables, b.functions = map[string]string{}, map[string]string{}
	files, err := filepath.Glob(filepath.Join(p.server(), "migrations", "*.sql"))
	if err != nil {
		return b, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return b, err
		}
		created := sqlscan.Created(string(text))
		for _, t := range created.Tables {
			b.tables[t] = p.rel(f)
		}
		for _, fn := range created.Functions {
			b.functions[fn.Name] = p.rel(f)
		}
	}
	return b, nil
}

// readmeName finds the names in backticks of a README.
var readmeName = regexp.MustCompile("`([a-z][a-z0-9_]*)`")

// checkReadmes asks every module that has code for a README whose section "Tables" names exactly its built tables.
// Planned tables of the module may be named too; a table of another module never.
func checkReadmes(p project, reg *register.Register, b built) ([]string, error) {
	var bad []string
	owners := reg.TableOwners()
	for _, m := range reg.Modules {
		dir := filepath.Join(p.server(), "internal", m.Name)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		path := filepath.Join(dir, "README.md")
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, fmt.Sprintf("%s: missing; it says what the module is for, its ports, dependencies and tables", p.rel(path)))
			continue
		}
		if err != nil {
			return nil, err
		}
		named := []string{}
		for _, found := range readmeName.FindAllStringSubmatch(section(string(text), "Tables"), -1) {
			named = append(named, found[1])
			if owner := owners[found[1]]; owner != "" && owner != m.Name {
				bad = append(bad, fmt.Sprintf("%s: lists the table %s, which belongs to %s", p.rel(path), found[1], owner))
			}
		}
		for _, t := range m.Tables {
			if b.tables[t] != "" && !slices.Contains(named, t) {
				bad = append(bad, fmt.Sprintf("%s: the section \"Tables\" does not name `%s`", p.rel(path), t))
			}
		}
	}
	return bad, nil
}

// section returns the text below the heading of that title, up to the next heading.
func section(text, title string) string {
	var in bool
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") {
			in = strings.EqualFold(strings.TrimSpace(strings.TrimLeft(line, "#")), title)
			continue
		}
		if in {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
