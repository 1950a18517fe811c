// SPDX-License-Identifier: Apache-2.0

package sqlscan_test

import (
	"slices"
	"testing"

	"github.com/OWNER/bothy/services/server/tools/internal/sqlscan"
)

func TestRelationsFindsEveryPlaceOfATable(t *testing.T) {
	cases := map[string]struct {
		sql  string
		want []string
	}{
		"select":                      {"SELECT a FROM threads WHERE x = 1", []string{"threads"}},
		"alias and comma list":        {"SELECT 1 FROM threads t, messages AS m WHERE t.id = m.id", []string{"threads", "messages"}},
		"joins":                       {"SELECT 1 FROM a JOIN b ON a.x = b.x LEFT JOIN LATERAL (SELECT 1 FROM c) q ON true", []string{"a", "b", "c"}},
		"comma after an on":           {"SELECT 1 FROM a JOIN b ON a.x = b.x, c", []string{"a", "b", "c"}},
		"parenthesised join":          {"SELECT 1 FROM (a JOIN b USING (id)) WHERE 1 IN (SELECT y FROM c)", []string{"a", "b", "c"}},
		"subquery in from":            {"SELECT 1 FROM (SELECT x, y FROM a) s, b", []string{"a", "b"}},
		"schema and quotes":           {`SELECT 1 FROM public."messages" m`, []string{"messages"}},
		"insert":                      {"INSERT INTO a (x, y) SELECT x, y FROM b ON CONFLICT (x) DO UPDATE SET y = excluded.y RETURNING x", []string{"a", "b"}},
		"update from":                 {"UPDATE a SET x = 1 FROM b, c WHERE a.id = b.id", []string{"a", "b", "c"}},
		"delete using":                {"DELETE FROM a USING b WHERE a.id = b.id", []string{"a", "b"}},
		"merge":                       {"MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN UPDATE SET x = b.x", []string{"a", "b"}},
		"truncate":                    {"TRUNCATE TABLE a, ONLY b", []string{"a", "b"}},
		"lock":                        {"LOCK TABLE a IN SHARE MODE", []string{"a"}},
		"copy":                        {"COPY a (x) FROM STDIN", []string{"a", "stdin"}},
		"row locks are no update":     {"SELECT 1 FROM a FOR NO KEY UPDATE OF a SKIP LOCKED", []string{"a"}},
		"functions are no tables":     {"SELECT 1 FROM unnest($1::uuid[]) WITH ORDINALITY u(id, n), generate_series(1, 3)", nil},
		"extract and distinct from":   {"SELECT extract(epoch FROM created) FROM a WHERE x IS DISTINCT FROM y", []string{"a"}},
		"literals and comments":       {"SELECT 'FROM b', $$ FROM c $$, E'\\' FROM d' -- FROM e\n/* FROM f /* g */ */ FROM a", []string{"a"}},
		"named parameters":            {"SELECT 1 FROM a WHERE x = @from AND y = sqlc.arg(update)", []string{"a"}},
		"cte is listed once":          {"WITH recent AS MATERIALIZED (SELECT 1 FROM a), old (x) AS (SELECT 1 FROM b) SELECT 1 FROM recent, old", []string{"recent", "old", "a", "b"}},
		"recursive cte":               {"WITH RECURSIVE up AS (SELECT 1 FROM a UNION ALL SELECT 1 FROM a JOIN up ON true) SELECT 1 FROM up", []string{"up", "a", "a"}},
		"exists":                      {"SELECT EXISTS (SELECT 1 FROM a WHERE NOT EXISTS (SELECT 1 FROM b))", []string{"a", "b"}},
		"set operations":              {"SELECT 1 FROM a UNION SELECT 1 FROM b EXCEPT TABLE c", []string{"a", "b", "c"}},
		"two statements":              {"SELECT 1 FROM a; DELETE FROM b;", []string{"a", "b"}},
		"select list is no from list": {"SELECT (SELECT count(*) FROM a), threads FROM b ORDER BY messages, pins", []string{"a", "b"}},
		"values list":                 {"INSERT INTO a VALUES (1, messages)", []string{"a"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range sqlscan.Relations(c.sql) {
				got = append(got, r.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestRelationsCountsLines(t *testing.T) {
	refs := sqlscan.Relations("SELECT 1\n-- note\nFROM a")
	if len(refs) != 1 || refs[0].Line != 3 {
		t.Errorf("got %v", refs)
	}
}

func TestCreatedListsTablesAndFunctions(t *testing.T) {
	got := sqlscan.Created(`
-- +goose Up
CREATE TABLE IF NOT EXISTS messages (id uuid PRIMARY KEY);
CREATE UNLOGGED TABLE presence (id uuid);
CREATE TEMP TABLE scratch (id uuid);
CREATE TABLE event_log_2026 PARTITION OF event_log DEFAULT;
CREATE INDEX messages_by_thread ON messages (thread_id);
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION next_seq(n bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT 1; CREATE TABLE inner (x int) $$;
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
-- +goose StatementEnd
`)
	if want := []string{"messages", "presence"}; !slices.Equal(got.Tables, want) {
		t.Errorf("tables %v, want %v", got.Tables, want)
	}
	if len(got.Functions) != 2 || got.Functions[0].Name != "next_seq" || got.Functions[1].Name != "touch" {
		t.Fatalf("functions %v", got.Functions)
	}
	body := got.Functions[0]
	if refs := sqlscan.Relations(body.Body); len(refs) != 1 || refs[0].Name != "inner" || body.Line != 9 {
		t.Errorf("body %q at line %d names %v", body.Body, body.Line, refs)
	}
}

func TestCallsFindsFunctions(t *testing.T) {
	calls := sqlscan.Calls("SELECT next_seq(1),\n public.next_seq (2), 'other(3)' -- third(4)")
	if len(calls) != 2 || calls[1] != (sqlscan.Call{Name: "next_seq", Line: 2}) {
		t.Errorf("got %v", calls)
	}
}

func FuzzRelations(f *testing.F) {
	f.Add("WITH a (x) AS (SELECT 1 FROM b) SELECT 1 FROM a, \"c\", (d JOIN e USING (f))")
	f.Add("$a$ $$ ' \" /* (")
	f.Fuzz(func(t *testing.T, sql string) {
		for _, r := range sqlscan.Relations(sql) {
			if r.Line < 1 {
				t.Errorf("line %d", r.Line)
			}
		}
		sqlscan.Created(sql)
	})
}
