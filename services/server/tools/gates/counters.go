// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

const modulePath = "github.com/OWNER/bothy/services/server"

// counterUsers are the directories that may name instance.Counters: its owner, the wiring, and the use cases of the
// three modules whose hooks run at the end of a unit of work. The order of the locks lives there and nowhere else.
var counterUsers = []string{"internal/instance", "internal/wire", "internal/authz/app", "internal/sync/app", "internal/audit/app"}

func runCounters(_ context.Context, p project, _ []string) ([]string, error) {
	var bad []string
	err := eachGoFile(p.server(), func(path string, file *ast.File, set *token.FileSet) {
		rel, err := filepath.Rel(p.server(), path)
		if err != nil || allowed(filepath.ToSlash(rel), counterUsers) {
			return
		}
		name := importName(file, modulePath+"/internal/instance", "instance")
		switch name {
		case "", "_":
			return
		case ".":
			bad = append(bad, p.rel(path)+": imports instance with a dot, which hides what it uses")
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Counters" {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
				bad = append(bad, fmt.Sprintf("%s:%d: names instance.Counters", p.rel(path), set.Position(s.Pos()).Line))
			}
			return true
		})
	})
	return bad, err
}

func allowed(rel string, dirs []string) bool {
	for _, d := range dirs {
		if strings.HasPrefix(rel, d+"/") {
			return true
		}
	}
	return false
}

// importName returns the name under which a file knows a package, or "".
func importName(file *ast.File, path, base string) string {
	for _, i := range file.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err != nil || p != path {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return base
	}
	return ""
}

// eachGoFile parses the Go files below root, without tests, tools and hidden or vendored directories.
func eachGoFile(root string, visit func(path string, file *ast.File, set *token.FileSet)) error {
	set := token.NewFileSet()
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || path == filepath.Join(root, "tools")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visit(path, file, set)
		return nil
	})
}
