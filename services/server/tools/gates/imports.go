// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
)

// smokeMay lists what the smoke program may import besides the standard library and itself. It stands in for a
// stranger's client: whatever it needs beyond the SDK would be a hole in the SDK.
var smokeMay = []string{"github.com/OWNER/bothy/sdk/go", "github.com/OWNER/bothy/services/smoke"}

// runSDKImports checks the smoke program; the optional argument is its directory.
func runSDKImports(_ context.Context, p project, args []string) ([]string, error) {
	dir := "services/smoke"
	if len(args) > 0 {
		dir = args[0]
	}
	var bad []string
	files := 0
	err := eachGoFile(p.path(dir), func(file string, parsed *ast.File, set *token.FileSet) {
		files++
		for _, i := range parsed.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil || !strings.Contains(firstElement(name), ".") {
				continue
			}
			if !slices.ContainsFunc(smokeMay, func(m string) bool { return name == m || strings.HasPrefix(name, m+"/") }) {
				bad = append(bad, fmt.Sprintf("%s:%d: imports %s", p.rel(file), set.Position(i.Pos()).Line, name))
			}
		}
	})
	if err == nil && files == 0 {
		return nil, fmt.Errorf("no Go files below %s", dir)
	}
	return bad, err
}

func firstElement(importPath string) string {
	first, _, _ := strings.Cut(importPath, "/")
	return first
}

// runBinaryDeps lists what the program links and refuses test support in it. The optional argument is the package.
func runBinaryDeps(ctx context.Context, p project, args []string) ([]string, error) {
	pkg := "./cmd/bothy"
	if len(args) > 0 {
		pkg = args[0]
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", pkg)
	cmd.Dir = p.server()
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(err, errors.New(strings.TrimSpace(problems.String())))
	}
	var bad []string
	for _, dep := range strings.Fields(out.String()) {
		if reason := testSupport(dep); reason != "" {
			bad = append(bad, dep+": "+reason)
		}
	}
	return bad, nil
}

// testSupport says why a package does not belong into the program, or "".
func testSupport(pkg string) string {
	if inside, ok := strings.CutPrefix(pkg, modulePath+"/"); ok {
		elements := strings.Split(inside, "/")
		if slices.Contains([]string{"test", "perf", "tools"}, elements[0]) {
			return "lies in " + elements[0]
		}
		if slices.ContainsFunc(elements, func(e string) bool { return strings.HasSuffix(e, "test") }) {
			return "is a test helper"
		}
		return ""
	}
	switch {
	case pkg == "testing" || strings.HasPrefix(pkg, "testing/") || path.Base(pkg) == "httptest":
		return "belongs to tests"
	case strings.HasPrefix(pkg, "pgregory.net/rapid"), strings.HasPrefix(pkg, "go.uber.org/goleak"):
		return "belongs to tests"
	}
	return ""
}

// vulnerabilityTool is run only where its database can be reached.
const vulnerabilityTool = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"

func runVulnerabilities(ctx context.Context, p project, args []string) ([]string, error) {
	database := "https://vuln.go.dev"
	if len(args) > 0 {
		database = args[0]
	}
	if !reachable(ctx, database+"/index/db.json") {
		fmt.Fprintln(p.out, "govulncheck: skipped (database not reachable)")
		return nil, errSkipped
	}
	cmd := exec.CommandContext(ctx, "go", "run", vulnerabilityTool, "-db", database, "./...")
	cmd.Dir = p.server()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &exit) && exit.ExitCode() == 3, strings.Contains(string(out), "Vulnerability #"):
		return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
	}
	return nil, fmt.Errorf("govulncheck: %w: %s", err, bytes.TrimSpace(out))
}
