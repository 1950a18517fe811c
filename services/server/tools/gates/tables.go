// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
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

	"github.com/OWNER/bothy/services/server/tools/internal/register"
	"github.com/OWNER/bothy/services/server/tools/internal/sqlscan"
)

// tableRule judges the SQL of one owner. An owner without tables (platform, wire, cmd) may name none at all.
type tableRule struct {
	owner  string
	owners map[string]string
	// functions maps the SQL functions of the schema to their owner; may lists the modules whose functions it may call.
	functions map[string]string
	may       []string
	jobs      bool
}

// runTables reads the SQL of every module: the query files and the strings of its Go code. Reading a foreign table is
// as wrong as writing it; the way to other data is the port of its module, or an SQL function of a module it may use.
// The body of such a function is SQL of its owner.
func runTables(_ context.Context, p project, _ []string) ([]string, error) {
	reg, err := p.register()
	if err != nil {
		return nil, err
	}
	var bad []string
	for dir, rule := range tableRules(reg) {
		found, err := tablesBelow(p, filepath.Join(p.server(), filepath.FromSlash(dir)), rule)
		if err != nil {
			return nil, err
		}
		bad = append(bad, found...)
	}
	bodies, err := functionBodies(p, reg)
	if err != nil {
		return nil, err
	}
	bad = append(bad, bodies...)
	slices.Sort(bad)
	return bad, nil
}

// functionBodies judges the functions that migrations create by the rule of their owner. A function that the register
// does not list is reported by the gate "register".
func functionBodies(p project, reg *register.Register) ([]string, error) {
	rules, owners := tableRules(reg), reg.FunctionOwners()
	files, err := filepath.Glob(filepath.Join(p.server(), "migrations", "*.sql"))
	if err != nil {
		return nil, err
	}
	var bad []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for _, fn := range sqlscan.Created(string(text)).Functions {
			if rule, ok := rules["internal/"+owners[fn.Name]]; ok {
				bad = append(bad, rule.judge(p.rel(f), fn.Line, fn.Body)...)
			}
		}
	}
	return bad, nil
}

func tableRules(reg *register.Register) map[string]tableRule {
	owners, functions := reg.TableOwners(), reg.FunctionOwners()
	rules := map[string]tableRule{
		"internal/wire": {owner: "wire", owners: owners, functions: functions},
		"cmd":           {owner: "cmd", owners: owners, functions: functions},
	}
	for _, k := range reg.Platform {
		rules["internal/platform/"+k.Name] = tableRule{owner: "platform/" + k.Name, owners: owners, functions: functions, jobs: k.Name == "jobs"}
	}
	for _, m := range reg.Modules {
		rules["internal/"+m.Name] = tableRule{owner: m.Name, owners: owners, functions: functions, may: m.DependsOn}
	}
	return rules
}

func tablesBelow(p project, dir string, rule tableRule) ([]string, error) {
	var bad []string
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil, nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "sqlcgen" || d.Name() == "testdata"):
			// sqlcgen repeats the query files, and the gate "generated" holds it to them.
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		case strings.HasSuffix(path, ".sql"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			bad = append(bad, rule.judge(p.rel(path), 1, string(text))...)
		case strings.HasSuffix(path, ".go"):
			found, err := tablesOfGo(p.rel(path), path, rule)
			if err != nil {
				return err
			}
			bad = append(bad, found...)
		}
		return nil
	})
	return bad, err
}

func (r tableRule) judge(file string, firstLine int, sql string) []string {
	var bad []string
	for _, ref := range sqlscan.Relations(sql) {
		at := fmt.Sprintf("%s:%d", file, firstLine+ref.Line-1)
		bad = append(bad, r.judgeName(at, ref.Name, ref.CTE)...)
	}
	for _, call := range sqlscan.Calls(sql) {
		owner := r.functions[call.Name]
		if owner != "" && owner != r.owner && !slices.Contains(r.may, owner) {
			bad = append(bad, fmt.Sprintf("%s:%d: %s calls the function %s of %s, which it may not use", file, firstLine+call.Line-1, r.owner, call.Name, owner))
		}
	}
	return bad
}

func (r tableRule) judgeName(at, name string, cte bool) []string {
	owner := r.owners[name]
	if owner == "" && strings.HasPrefix(name, "river_") && !r.jobs {
		owner = "platform/jobs"
	}
	switch {
	case owner == "" || owner == r.owner:
		return nil
	case cte:
		return []string{fmt.Sprintf("%s: a WITH query is called %s like a table of %s; give it another name", at, name, owner)}
	}
	return []string{fmt.Sprintf("%s: %s names the table %s, which belongs to %s", at, r.owner, name, owner)}
}

// sqlText recognises a Go string that is SQL or a piece of it; prose in messages is left alone.
var sqlText = regexp.MustCompile(`(?is)^\s*(--[^\n]*\n\s*)*(select|insert\s+into|delete\s+from|with|merge\s+into|truncate|lock\s+table|copy|table)\b.*` +
	`|^\s*(--[^\n]*\n\s*)*update\b.*\bset\b.*`)

// sqlPiece recognises fragments that are added to a statement.
var sqlPiece = regexp.MustCompile(`(^|\s)(FROM|JOIN|USING|INTO|UPDATE|join|left join)\s+[a-z_"]`)

// tablesOfGo judges the string constants of a file, added ones as a whole, and pgx.Identifier literals.
func tablesOfGo(name, path string, rule tableRule) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var bad []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CompositeLit:
			if s, ok := e.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Identifier" {
				for _, el := range e.Elts {
					if text, ok := constant(el); ok {
						bad = append(bad, rule.judgeName(fmt.Sprintf("%s:%d", name, set.Position(el.Pos()).Line), text, false)...)
					}
				}
				return false
			}
		case ast.Expr:
			text, ok := constant(e)
			if !ok {
				return true
			}
			if sqlText.MatchString(text) || sqlPiece.MatchString(text) {
				bad = append(bad, rule.judge(name, set.Position(e.Pos()).Line, text)...)
			}
			return false
		}
		return true
	})
	return bad, nil
}

// constant joins string literals that are added to each other; other operands become a parameter, so that the parts
// around them are still read.
func constant(e ast.Expr) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.ParenExpr:
		return constant(x.X)
	case *ast.BinaryExpr:
		if x.Op != token.ADD {
			return "", false
		}
		left, okLeft := constant(x.X)
		right, okRight := constant(x.Y)
		if !okLeft && !okRight {
			return "", false
		}
		if !okLeft {
			left = " $0 "
		}
		if !okRight {
			right = " $0 "
		}
		return left + right, true
	}
	return "", false
}
