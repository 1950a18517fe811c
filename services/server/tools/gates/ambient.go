// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// ambientAdapters are the adapters of modules that work with files, each with its reason. Everything else is handed what
// it needs: what an operator can set then stands in the configuration, and a secret comes from its provider alone.
var ambientAdapters = map[string]string{
	"internal/instance/adapters/keystore": "private signing keys lie in a folder of their own, never in the database",
	"internal/audit/adapters/filesink":    "checkpoints are deposited where the server cannot change them",
}

// ambientNames are the functions of package os that look at the environment or at files.
var ambientNames = []string{
	"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv", "Clearenv",
	"Open", "OpenFile", "OpenRoot", "OpenInRoot", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir", "Readlink",
	"DirFS", "CopyFS", "Stat", "Lstat", "Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll", "Rename", "Link", "Symlink", "Truncate",
	"Chmod", "Chown", "Lchown", "Chtimes",
}

// ambientPackages do the same in ways that are not told apart here.
var ambientPackages = []string{"io/ioutil", "syscall", "golang.org/x/sys/unix"}

func runAmbient(_ context.Context, p project, _ []string) ([]string, error) {
	reg, err := p.register()
	if err != nil {
		return nil, err
	}
	var bad []string
	for _, m := range reg.Modules {
		dir := filepath.Join(p.server(), "internal", m.Name)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := eachGoFile(dir, func(path string, file *ast.File, set *token.FileSet) {
			rel, err := filepath.Rel(p.server(), filepath.Dir(path))
			if err == nil && ambientAdapters[filepath.ToSlash(rel)] != "" {
				return
			}
			bad = append(bad, ambientUses(p.rel(path), file, set)...)
		})
		if err != nil {
			return nil, err
		}
	}
	return bad, nil
}

// ambientUses lists what a file takes from its surroundings.
func ambientUses(name string, file *ast.File, set *token.FileSet) []string {
	var bad []string
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err == nil && slices.Contains(ambientPackages, path) {
			bad = append(bad, fmt.Sprintf("%s:%d: imports %s", name, set.Position(i.Pos()).Line, path))
		}
	}
	pkg := importName(file, "os", "os")
	switch pkg {
	case "", "_":
		return bad
	case ".":
		return append(bad, name+": imports os with a dot, which hides what it uses")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(ambientNames, s.Sel.Name) {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg {
			bad = append(bad, fmt.Sprintf("%s:%d: uses os.%s", name, set.Position(s.Pos()).Line, s.Sel.Name))
		}
		return true
	})
	return bad
}
