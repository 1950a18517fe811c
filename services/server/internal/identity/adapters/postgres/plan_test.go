// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// readsAll names the queries that read a whole table because the answer is about all of it,
// or because the table has a handful of rows.
var readsAll = map[string]string{
	"accountsSearch":               "looks for a text anywhere in the names of active members",
	"ownersLock":                   "a handful of owners",
	"ownersActive":                 "a handful of owners",
	"ownersAbleToLogin":            "a handful of owners",
	"ownersOnlyBy":                 "a handful of owners",
	"ownersShutOut":                "a handful of owners",
	"ownersDeleteOthers":           "a handful of owners",
	"ownerNames":                   "a handful of owners",
	"peopleActive":                 "everybody",
	"enrollmentCodesRevokePurpose": "only before the setup",
}

// Every statement that must not read a whole table has an index to go by.
func TestStatementsHaveAnIndex(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := context.Background()
	conn, err := db.Pool.Acquire(ctx)
	ok(t, err)
	defer conn.Release()
	_, err = conn.Exec(ctx, "SET enable_seqscan = off")
	ok(t, err)
	for name, sql := range statements(t) {
		if strings.HasPrefix(strings.TrimSpace(body(sql)), "INSERT") || readsAll[name] != "" || strings.Contains(sql, "pg_advisory") {
			continue
		}
		// The plain protocol takes placeholders without values, as a generic plan has them.
		results, err := conn.Conn().PgConn().Exec(ctx, "EXPLAIN (GENERIC_PLAN) "+sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var plan strings.Builder
		for _, row := range results[0].Rows {
			plan.Write(row[0])
			plan.WriteByte('\n')
		}
		if strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("%s reads a whole table:\n%s", name, plan.String())
		}
	}
}

func body(sql string) string {
	_, rest, _ := strings.Cut(sql, "\n")
	return rest
}

// statements gives the generated SQL by the name of its constant.
func statements(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("sqlcgen/*.sql.go")
	ok(t, err)
	found := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		ok(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			if lit, is := spec.Values[0].(*ast.BasicLit); is && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				ok(t, err)
				found[spec.Names[0].Name] = text
			}
			return true
		})
	}
	if len(found) < 50 {
		t.Fatalf("only %d statements found", len(found))
	}
	return found
}
