// SPDX-License-Identifier: Apache-2.0

package register

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// product lists the directories that must always be under the gate.
var product = []string{"internal", "cmd", "api", "migrations"}

// reserved are the directories below internal that are no modules.
var reserved = []string{"kernel", "platform", "wire"}

// refuse notes a fault that concerns several places of the file.
func (p *parser) refuse(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf(format, args...))
}

// check holds the rules that need the whole register.
func (p *parser) check(r *Register, dirs []string) {
	for _, name := range r.KernelPorts {
		if slices.Contains(r.KernelCore, name) {
			p.refuse("kernel package %q is listed as core and as port", name)
		}
	}
	p.checkReferences(r)
	p.checkUnique(r)
	p.checkOrder(r)
	p.checkPaths(r, dirs)
	for _, g := range r.Vendors {
		for _, path := range g.Paths {
			if !vendorPattern(path) {
				p.refuse("vendors.%s: %q is not a literal Go import path (** only last, after a domain and one more element)", g.Name, path)
			}
		}
	}
}

func (p *parser) checkReferences(r *Register) {
	vendors := func(where string, names []string) {
		for _, n := range names {
			if !slices.ContainsFunc(r.Vendors, func(g VendorGroup) bool { return g.Name == n }) {
				p.refuse("%s: unknown vendor group %q", where, n)
			}
		}
	}
	platform := func(where string, names []string) {
		for _, n := range names {
			if !slices.ContainsFunc(r.Platform, func(k Package) bool { return k.Name == n }) {
				p.refuse("%s: unknown platform package %q", where, n)
			}
		}
	}
	for _, k := range r.Platform {
		vendors("platform."+k.Name, k.Vendors)
		platform("platform."+k.Name, k.DependsOn)
	}
	for _, s := range []*Package{r.Wire, r.Cmd, r.API} {
		if s != nil {
			vendors(s.Name, s.Vendors)
		}
	}
	if r.Migrations != nil {
		platform("migrations.used_by", r.Migrations.UsedBy)
	}
	for _, f := range r.Functions {
		if _, ok := r.Module(f.Owner); !ok {
			p.refuse("functions.%s: unknown module %q", f.Name, f.Owner)
		}
	}
	for _, m := range r.Modules {
		if slices.Contains(reserved, m.Name) {
			p.refuse("modules.%s: the name is reserved", m.Name)
		}
		vendors("modules."+m.Name, m.AdapterVendors)
		for _, d := range m.DependsOn {
			if _, ok := r.Module(d); !ok {
				p.refuse("modules.%s: unknown module %q", m.Name, d)
			}
		}
	}
}

// checkUnique refuses a table, action, event or op with two owners.
func (p *parser) checkUnique(r *Register) {
	kinds := []struct {
		what  string
		names func(Module) []string
	}{
		{"table", func(m Module) []string { return m.Tables }},
		{"action", func(m Module) []string { return m.Actions }},
		{"event", func(m Module) []string { return slices.Concat(m.Events, m.EphemeralEvents) }},
		{"WebSocket op", func(m Module) []string { return m.WSOps }},
	}
	for _, k := range kinds {
		owner := map[string]string{}
		for _, m := range r.Modules {
			for _, n := range k.names(m) {
				if first, taken := owner[n]; taken {
					p.refuse("the %s %q belongs to %s and to %s", k.what, n, first, m.Name)
					continue
				}
				owner[n] = m.Name
			}
		}
	}
}

// checkOrder refuses cycles, and edges of a module to one that stands later.
func (p *parser) checkOrder(r *Register) {
	edges := map[string][]string{}
	position := map[string]int{}
	for i, m := range r.Modules {
		edges[m.Name] = m.DependsOn
		position[m.Name] = i
	}
	if c := cycle(edges); c != nil {
		p.refuse("modules depend on each other in a circle: %s", strings.Join(c, " -> "))
		return
	}
	for _, m := range r.Modules {
		for _, d := range m.DependsOn {
			if at, known := position[d]; known && at > position[m.Name] {
				p.refuse("modules.%s may use only modules that stand above it in the file; %s stands below", m.Name, d)
			}
		}
	}
	platform := map[string][]string{}
	for _, k := range r.Platform {
		platform[k.Name] = k.DependsOn
	}
	if c := cycle(platform); c != nil {
		p.refuse("platform packages depend on each other in a circle: %s", strings.Join(c, " -> "))
	}
}

// cycle returns the names on one circle of the graph, the first repeated at the end, or nil.
func cycle(edges map[string][]string) []string {
	done := map[string]bool{}
	var path []string
	var visit func(string) []string
	visit = func(n string) []string {
		if at := slices.Index(path, n); at >= 0 {
			return append(slices.Clone(path[at:]), n)
		}
		if done[n] {
			return nil
		}
		path = append(path, n)
		for _, next := range edges[n] {
			if c := visit(next); c != nil {
				return c
			}
		}
		path = path[:len(path)-1]
		done[n] = true
		return nil
	}
	names := make([]string, 0, len(edges))
	for n := range edges {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		if c := visit(n); c != nil {
			return c
		}
	}
	return nil
}

// checkPaths keeps product code under the gate: go-arch-lint skips every path that begins with an excluded
// string, so "in" would hide all of internal.
func (p *parser) checkPaths(r *Register, dirs []string) {
	for _, e := range r.Exclude {
		for _, d := range product {
			if strings.HasPrefix(d, e) || strings.HasPrefix(e, d+"/") {
				p.refuse("exclude: %q would take %s out of the gate", e, d)
			}
		}
		for _, d := range dirs {
			if d != e && strings.HasPrefix(d, e) && !strings.HasPrefix(d, e+"/") {
				p.refuse("exclude: %q would also take %s out of the gate", e, d)
			}
		}
	}
	for _, t := range r.TestSupport {
		for _, d := range product {
			if t == d || strings.HasPrefix(t, d+"/") {
				p.refuse("testsupport.paths: %q lies in %s", t, d)
			}
		}
	}
}

var (
	domainElement = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`)
	pathElement   = regexp.MustCompile(`^[A-Za-z0-9._~-]*[A-Za-z0-9_~-][A-Za-z0-9._~-]*$`)
)

// vendorPattern accepts import paths that stay literal when go-arch-lint turns them into an expression.
func vendorPattern(path string) bool {
	elements := strings.Split(path, "/")
	if !domainElement.MatchString(elements[0]) {
		return false
	}
	for i, e := range elements[1:] {
		last := i+1 == len(elements)-1
		if e == "**" {
			return last && len(elements) >= 3
		}
		if !pathElement.MatchString(e) {
			return false
		}
	}
	return true
}
