// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// archRegister is the register of the skeleton below: two modules over one another, a driver that only adapters may
// import, and everything around them.
const archRegister = `version: 1
exclude: [tools]
kernel:
  core: [ids, clock]
  ports: [authorize, txn]
platform:
  pg: {vendors: [driver]}
  jobs: {depends_on: [pg], vendors: [queue]}
wire: {vendors: []}
cmd: {vendors: []}
api: {vendors: []}
testsupport: {paths: [test, perf]}
migrations: {used_by: [pg]}
modules:
  chat:
    tables: []
    actions: []
    events: []
    ephemeral_events: []
    ws_ops: []
    depends_on: []
    adapter_vendors: [driver]
  messaging:
    tables: []
    actions: []
    events: []
    ephemeral_events: []
    ws_ops: []
    depends_on: [chat]
    adapter_vendors: [driver]
  runs:
    tables: []
    actions: []
    events: []
    ephemeral_events: []
    ws_ops: []
    depends_on: [chat]
    adapter_vendors: []
vendors:
  driver: [example.com/driver]
  queue: [example.com/queue]
`

// skeletonPackages maps each package to what it imports; "drv" and "queue" stand for libraries.
var skeletonPackages = map[string][]string{
	"internal/kernel/ids":                          nil,
	"internal/kernel/clock":                        {"internal/kernel/ids"},
	"internal/kernel/clock/clocktest":              {"internal/kernel/clock"},
	"internal/kernel/authorize":                    {"internal/kernel/ids"},
	"internal/kernel/txn":                          {"internal/kernel/ids"},
	"internal/platform/pg":                         {"internal/kernel/txn", "migrations", "example.com/driver"},
	"internal/platform/pg/pgtest":                  {"internal/platform/pg", "migrations"},
	"internal/platform/jobs":                       {"internal/platform/pg", "example.com/queue"},
	"migrations":                                   nil,
	"api/rest":                                     nil,
	"api/routes":                                   {"api/rest"},
	"internal/chat":                                {"internal/kernel/ids", "internal/kernel/authorize"},
	"internal/chat/domain":                         {"internal/kernel/ids", "internal/chat/domain/order"},
	"internal/chat/domain/order":                   nil,
	"internal/chat/app":                            {"internal/chat", "internal/chat/domain", "internal/kernel/txn"},
	"internal/chat/adapters/postgres":              {"internal/chat/app", "internal/chat/adapters/postgres/sqlcgen", "internal/platform/pg", "example.com/driver"},
	"internal/chat/adapters/postgres/sqlcgen":      {"example.com/driver"},
	"internal/chat/adapters/httpapi":               {"internal/chat", "api/rest"},
	"internal/messaging":                           {"internal/kernel/ids"},
	"internal/messaging/domain":                    nil,
	"internal/messaging/app":                       {"internal/messaging", "internal/messaging/domain", "internal/chat"},
	"internal/messaging/adapters/postgres":         {"internal/messaging/app", "internal/chat", "internal/platform/pg"},
	"internal/messaging/adapters/messagingtest":    {"internal/messaging"},
	"internal/runs":                                nil,
	"internal/runs/app":                            {"internal/runs", "internal/chat"},
	"internal/runs/adapters/postgres":              {"internal/runs/app"},
	"internal/wire":                                {"internal/chat/app", "internal/chat/adapters/postgres", "internal/chat/adapters/httpapi", "internal/messaging/adapters/postgres", "internal/platform/jobs", "api/routes"},
	"cmd/bothy":                                    {"internal/wire", "internal/platform/pg"},
	"test/harness":                                 {"internal/wire", "internal/chat/app", "example.com/driver"},
	"tools/archgen":                                {"internal/chat/domain", "example.com/queue"},
	"internal/messaging/adapters/postgres/sqlcgen": nil,
}

// skeleton writes the module with additional imports and returns its project.
func skeleton(t *testing.T, more map[string][]string) project {
	t.Helper()
	p := project{root: t.TempDir(), out: &bytes.Buffer{}}
	write(t, p, "services/server/go.mod", "module "+modulePath+"\n\ngo 1.26.0\n")
	write(t, p, "services/server/architecture/modules.yaml", archRegister)
	all := map[string][]string{}
	for pkg, imports := range skeletonPackages {
		all[pkg] = imports
	}
	for pkg, imports := range more {
		all[pkg] = append(append([]string{}, all[pkg]...), imports...)
	}
	for pkg, imports := range all {
		var b strings.Builder
		b.WriteString("package x\n\n")
		for _, i := range imports {
			if !strings.HasPrefix(i, "example.com/") {
				i = modulePath + "/" + i
			}
			b.WriteString("import _ \"" + i + "\"\n")
		}
		write(t, p, "services/server/"+pkg+"/x.go", b.String())
	}
	return p
}

func write(t *testing.T, p project, name, text string) {
	t.Helper()
	path := p.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	archgenBinary string
	archLint      string
)

// TestMain builds the generator once; the skeleton tests run the real tools.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "gates-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		archgenBinary = filepath.Join(dir, "archgen")
		if out, err := exec.Command("go", "build", "-o", archgenBinary, "../archgen").CombinedOutput(); err != nil {
			panic(string(out))
		}
		if archLint, err = filepath.Abs("../../../../.bin/go-arch-lint"); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// lint generates the configuration of the skeleton and runs the gate on it.
func lint(t *testing.T, p project) []string {
	t.Helper()
	if out, err := exec.Command(archgenBinary, "-module", p.server()).CombinedOutput(); err != nil {
		t.Fatalf("archgen: %s", out)
	}
	bad, err := runArch(context.Background(), p, []string{archLint})
	if err != nil {
		t.Fatal(err)
	}
	return bad
}

func TestArchLintSkeletonClean(t *testing.T) {
	if bad := lint(t, skeleton(t, nil)); len(bad) > 0 {
		t.Errorf("a legal module was refused: %v", bad)
	}
}

// TestArchLintRefuses plants every violation in one module, so that the linter runs once, and asks for each package.
func TestArchLintRefuses(t *testing.T) {
	planted := []struct{ rule, pkg, imports string }{
		{"domain imports a driver", "internal/chat/domain", "example.com/driver"},
		{"app imports the port of a module it may not use", "internal/chat/app", "internal/messaging"},
		{"app imports the app of an allowed module", "internal/messaging/app", "internal/chat/app"},
		{"app imports a subpackage of a foreign app", "internal/runs/app", "internal/chat/app/space"},
		{"app imports the app of a module it may not use", "internal/messaging/app", "internal/runs/app"},
		{"app imports platform", "internal/runs/app", "internal/platform/pg"},
		{"app imports generated code", "internal/runs/app", "api/rest"},
		{"app imports a library", "internal/messaging/app", "example.com/driver"},
		{"domain imports its app", "internal/messaging/domain", "internal/messaging/app"},
		{"domain imports its adapters", "internal/messaging/domain", "internal/messaging/adapters/postgres"},
		{"domain imports a kernel port", "internal/messaging/domain", "internal/kernel/txn"},
		{"port imports its domain", "internal/runs", "internal/runs/domain"},
		{"port imports another port", "internal/runs", "internal/chat"},
		{"kernel port imports a kernel port", "internal/kernel/txn", "internal/kernel/authorize"},
		{"kernel core imports a port", "internal/kernel/ids", "internal/kernel/txn"},
		{"adapter imports a library nobody approved", "internal/runs/adapters/postgres", "example.com/driver"},
		{"adapter imports the queue", "internal/chat/adapters/httpapi", "example.com/queue"},
		{"adapter imports the migrations", "internal/messaging/adapters/postgres", "migrations"},
		{"adapter imports foreign adapters", "internal/messaging/adapters/messagingtest", "internal/chat/adapters/postgres"},
		{"platform imports a module", "internal/platform/jobs", "internal/chat"},
		{"platform imports a package it may not use", "internal/platform/pg", "internal/platform/jobs"},
		{"cmd imports a module", "cmd/bothy", "internal/chat"},
		{"cmd imports test support", "cmd/bothy", "test/harness"},
		{"wire imports test support", "internal/wire", "test/harness"},
	}
	more := map[string][]string{"internal/chat/app/space": nil, "internal/runs/domain": nil, "internal/chat/util": nil}
	for _, c := range planted {
		more[c.pkg] = append(more[c.pkg], c.imports)
	}
	bad := lint(t, skeleton(t, more))
	for _, c := range planted {
		want := c.imports
		if !strings.HasPrefix(want, "example.com/") {
			want = modulePath + "/" + want
		}
		found := false
		for _, line := range bad {
			found = found || strings.Contains(line, "/"+c.pkg+"/x.go") && strings.Contains(line, want)
		}
		if !found {
			t.Errorf("not reported: %s (%s imports %s)", c.rule, c.pkg, c.imports)
		}
	}
	if !strings.Contains(strings.Join(bad, "\n"), "/internal/chat/util/x.go not attached to any component") {
		t.Error("a package without a component was not reported")
	}
	if t.Failed() {
		t.Log(strings.Join(bad, "\n"))
	}
}

func TestArchRefusesSymbolicLinks(t *testing.T) {
	p := skeleton(t, nil)
	link := filepath.Join(p.server(), "internal/chat/domain/borrowed")
	if err := os.Symlink("../../messaging/app", link); err != nil {
		t.Fatal(err)
	}
	bad, err := runArch(context.Background(), p, []string{"must-not-run"})
	if err != nil {
		t.Fatal(err)
	}
	if len(bad) != 1 || !strings.Contains(bad[0], "services/server/internal/chat/domain/borrowed: a symbolic link") {
		t.Errorf("got %v", bad)
	}
}

func TestArchLooksPastEditorLocks(t *testing.T) {
	p := skeleton(t, map[string][]string{"internal/chat/domain": {"example.com/driver"}})
	lock := filepath.Join(p.server(), "internal/chat/domain/.#x.go")
	if err := os.Symlink("someone@somewhere.1", lock); err != nil {
		t.Fatal(err)
	}
	bad := lint(t, p)
	if len(bad) == 0 || !strings.Contains(strings.Join(bad, "\n"), "internal/chat/domain/x.go") {
		t.Errorf("got %v", bad)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	// The same name with a target is a way to hide code.
	if err := os.Symlink("x.go", lock); err != nil {
		t.Fatal(err)
	}
	if bad, _ := runArch(context.Background(), p, []string{"must-not-run"}); len(bad) != 1 {
		t.Errorf("a living link named like a lock passed: %v", bad)
	}
}

func TestArchCannotRunWithoutTheLinter(t *testing.T) {
	if _, err := runArch(context.Background(), skeleton(t, nil), []string{"/nowhere/go-arch-lint"}); err == nil {
		t.Error("a missing linter counted as a pass")
	}
}
