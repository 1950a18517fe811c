// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"

	"github.com/OWNER/bothy/services/server/perf/internal/report"
)

// statement reads the text of a statement out of the code that the server is built from, so that the twin can never run
// another SQL than the use case does.
func statement(module, file, name string) (string, error) {
	path := filepath.Join(report.Root(), "services", "server", "internal", module, "adapters", "postgres", file)
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return "", err
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			v, ok := s.(*ast.ValueSpec)
			if !ok || len(v.Names) != 1 || v.Names[0].Name != name || len(v.Values) != 1 {
				continue
			}
			if text, ok := v.Values[0].(*ast.BasicLit); ok {
				return strconv.Unquote(text.Value)
			}
		}
	}
	return "", fmt.Errorf("%s holds no statement %s", path, name)
}
