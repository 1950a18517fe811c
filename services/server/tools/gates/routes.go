// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// runRoutes checks that an operation is handled by the module that owns its action, and that the action is known. A
// handler is recognised by its request type, rest.<Operation>RequestObject. That every operation has exactly one
// handler is the compiler's business.
func runRoutes(_ context.Context, p project, _ []string) ([]string, error) {
	reg, err := p.register()
	if err != nil {
		return nil, err
	}
	operations, err := readOperations(p.path("docs/api/openapi.yaml"))
	if err != nil {
		return nil, err
	}
	owners := reg.ActionOwners()
	var bad []string
	for _, op := range sortedKeys(operations) {
		if action := operations[op].action; owners[action] == "" {
			bad = append(bad, fmt.Sprintf("docs/api/openapi.yaml: %s has the action %q, which no module owns", operations[op].id, action))
		}
	}
	err = eachGoFile(filepath.Join(p.server(), "internal"), func(path string, file *ast.File, set *token.FileSet) {
		name := importName(file, modulePath+"/api/rest", "rest")
		rel, err := filepath.Rel(filepath.Join(p.server(), "internal"), path)
		if name == "" || err != nil {
			return
		}
		module := firstElement(filepath.ToSlash(rel))
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			op, known := operations[strings.ToLower(handledOperation(fn, name))]
			if owner := owners[op.action]; known && owner != "" && owner != module {
				bad = append(bad, fmt.Sprintf("%s:%d: %s handles %s, whose action %s belongs to %s",
					p.rel(path), set.Position(fn.Pos()).Line, module, op.id, op.action, owner))
			}
		}
	})
	return bad, err
}

// handledOperation returns X for a method X that takes an XRequestObject, as the generated interface asks.
func handledOperation(fn *ast.FuncDecl, rest string) string {
	for _, param := range fn.Type.Params.List {
		s, ok := param.Type.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		x, ok := s.X.(*ast.Ident)
		if op, found := strings.CutSuffix(s.Sel.Name, "RequestObject"); ok && found && x.Name == rest && op == fn.Name.Name {
			return op
		}
	}
	return ""
}

type operation struct{ id, action string }

// readOperations maps the lower-case operationId to the operation: generated names differ in the case of initialisms.
func readOperations(path string) (map[string]operation, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string]operation{}
	for route, members := range doc.Paths {
		for _, method := range []string{"get", "put", "post", "delete", "patch", "head", "options"} {
			node, ok := members[method]
			if !ok {
				continue
			}
			var op struct {
				ID     string `yaml:"operationId"`
				Action string `yaml:"x-action"`
			}
			if err := node.Decode(&op); err != nil {
				return nil, fmt.Errorf("%s: %s %s: %w", path, method, route, err)
			}
			if op.ID == "" {
				return nil, fmt.Errorf("%s: %s %s has no operationId", path, method, route)
			}
			out[strings.ToLower(op.ID)] = operation{id: op.ID, action: op.Action}
		}
	}
	return out, nil
}
