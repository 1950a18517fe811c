// SPDX-License-Identifier: Apache-2.0

// Package register reads the module register (architecture/modules.yaml), the one statement of who owns which
// table, action and event and who may import whom.
//
// Reading is strict on purpose: a register that is understood differently by two YAML readers, or that quietly
// ignores a misspelt field, would weaken every gate built on it. Anything unknown, doubled, ambiguous or circular
// is refused, and all faults are reported at once; those of a single value name its line.
package register

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// FileName is the place of the register below the root of the server's Go module.
const FileName = "architecture/modules.yaml"

// Register is the checked content of modules.yaml. Lists keep the order of the file.
type Register struct {
	// Exclude names directories that the architecture gate does not look at.
	Exclude []string
	// KernelCore are packages below internal/kernel that every package may use.
	KernelCore []string
	// KernelPorts are the cross-cutting interfaces below internal/kernel; they use only the core.
	KernelPorts []string
	// Platform has one entry per package below internal/platform.
	Platform []Package
	// Wire, Cmd and API are the single components around the modules. API is nil until generated code exists.
	Wire, Cmd, API *Package
	// TestSupport lists directories of test code across modules: they may use all, nothing may use them.
	TestSupport []string
	// Migrations names the platform packages that may use the embedded migrations; nil without the section.
	Migrations *Migrations
	// Functions are the SQL functions offered to other modules' SQL.
	Functions []Function
	// Modules stand in dependency order, lowest first.
	Modules []Module
	// Vendors are the groups of third-party import paths.
	Vendors []VendorGroup
}

// Package is a component outside the modules.
type Package struct {
	Name      string
	DependsOn []string
	Vendors   []string
}

// Migrations says who may use the package with the embedded SQL migrations.
type Migrations struct {
	UsedBy []string
}

// Function is an SQL function of the schema and the module that owns it.
type Function struct {
	Name, Owner string
}

// Module is one module of the monolith.
type Module struct {
	Name string
	// Responsibility is the comment above the module's entry, on one line.
	Responsibility  string
	Tables          []string
	Actions         []string
	Events          []string
	EphemeralEvents []string
	WSOps           []string
	DependsOn       []string
	AdapterVendors  []string
}

// VendorGroup names import paths that are approved together.
type VendorGroup struct {
	Name  string
	Paths []string
}

// Load reads and checks the register of the Go module at root. The directories below root take part in the
// check of the exclude list.
func Load(root string) (*Register, error) {
	path := filepath.Join(root, filepath.FromSlash(FileName))
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the module register: %w", err)
	}
	dirs, err := directories(root)
	if err != nil {
		return nil, fmt.Errorf("list the directories of %s: %w", root, err)
	}
	reg, err := Parse(data, dirs)
	if err != nil {
		return nil, fmt.Errorf("%s:\n%w", path, err)
	}
	return reg, nil
}

// TableOwners maps every table to its module.
func (r *Register) TableOwners() map[string]string {
	return owners(r.Modules, func(m Module) []string { return m.Tables })
}

// ActionOwners maps every action to the module that executes it.
func (r *Register) ActionOwners() map[string]string {
	return owners(r.Modules, func(m Module) []string { return m.Actions })
}

// EventOwners maps every event type, durable or ephemeral, to the module that produces it.
func (r *Register) EventOwners() map[string]string {
	return owners(r.Modules, func(m Module) []string {
		return append(append([]string{}, m.Events...), m.EphemeralEvents...)
	})
}

// OpOwners maps every WebSocket op of the client to the module that accepts it.
func (r *Register) OpOwners() map[string]string {
	return owners(r.Modules, func(m Module) []string { return m.WSOps })
}

// FunctionOwners maps every listed SQL function to its module.
func (r *Register) FunctionOwners() map[string]string {
	out := make(map[string]string, len(r.Functions))
	for _, f := range r.Functions {
		out[f.Name] = f.Owner
	}
	return out
}

// Module returns the module of that name.
func (r *Register) Module(name string) (Module, bool) {
	for _, m := range r.Modules {
		if m.Name == name {
			return m, true
		}
	}
	return Module{}, false
}

func owners(modules []Module, names func(Module) []string) map[string]string {
	out := map[string]string{}
	for _, m := range modules {
		for _, n := range names(m) {
			out[n] = m.Name
		}
	}
	return out
}

func directories(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() || path == root {
			return nil
		}
		if name := d.Name(); strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		dirs = append(dirs, filepath.ToSlash(rel))
		return nil
	})
	sort.Strings(dirs)
	return dirs, err
}
