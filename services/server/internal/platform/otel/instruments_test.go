// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// calls are the methods that name an instrument, with the kinds they are for. Tests of the
// chain count through a method of their own.
var calls = map[string]kind{"Counter": kindCounter, "Histogram": kindHistogram, "Gauge": kindGauge, "Watch": kindWatch, "count": kindCounter}

// ours tells instruments from what other methods of these names take.
var ours = regexp.MustCompile(`^(bothy|http|db\.client)\.`)

// TestTheListIsWhatTheCodeMeasures holds the list against every file that names an instrument,
// and against the chapter that operators read.
func TestTheListIsWhatTheCodeMeasures(t *testing.T) {
	used := map[string]kind{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if name, k, ok := named(n); ok {
				used[name] = k
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	chapter, err := os.ReadFile("../../../../../docs/spec/16-operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range instruments {
		names = append(names, i.name)
		if k, found := used[i.name]; i.name != "bothy.telemetry.rejected_values" && (!found || k != i.kind) {
			t.Errorf("%s is in the list as a %s; the code has %q", i.name, i.kind, k)
		}
		if !strings.Contains(string(chapter), "`"+i.name+"`") {
			t.Errorf("chapter 16 has no %s", i.name)
		}
	}
	for name := range used {
		if !slices.Contains(names, name) {
			t.Errorf("%s is measured and not in the list", name)
		}
	}
}

func named(n ast.Node) (name string, k kind, ok bool) {
	call, isCall := n.(*ast.CallExpr)
	if !isCall || len(call.Args) == 0 {
		return "", "", false
	}
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	text, isText := call.Args[0].(*ast.BasicLit)
	if !isMethod || !isText || text.Kind != token.STRING {
		return "", "", false
	}
	k, ok = calls[method.Sel.Name]
	name, err := strconv.Unquote(text.Value)
	return name, k, ok && err == nil && ours.MatchString(name)
}
