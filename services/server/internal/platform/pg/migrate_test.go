// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
	"github.com/OWNER/bothy/services/server/migrations"
)

func step(sql string) *fstest.MapFile { return &fstest.MapFile{Data: []byte("-- +goose Up\n" + sql)} }

func TestMigrateAppliesEachStepOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, pgtest.WithMigrations())
	files := fstest.MapFS{"0001_a.sql": step("CREATE TABLE a (id int);"), "0002_b.sql": step("CREATE TABLE b (id int);")}
	after := 0
	cfg := pg.MigrateConfig{DSN: db.DSN, Files: files, After: func(ctx context.Context, conn *pgx.Conn) error {
		after++
		return conn.Ping(ctx)
	}}
	first, err := pg.Migrate(ctx, cfg)
	if err != nil || !reflect.DeepEqual(first, []string{"0001_a.sql", "0002_b.sql"}) {
		t.Fatalf("applied %v, %v", first, err)
	}
	second, err := pg.Migrate(ctx, cfg)
	if err != nil || len(second) != 0 || after != 2 {
		t.Errorf("a second run applied %v and ran the end %d times, %v", second, after, err)
	}
	files["0003_c.sql"] = step("CREATE TABLE c (id int);")
	status, err := pg.MigrationStatus(ctx, db.DSN, files)
	if err != nil || len(status) != 3 || !status[1].Applied || status[2].Applied || status[2].Name != "0003_c.sql" {
		t.Errorf("status %+v, %v", status, err)
	}
	if version, err := pg.SchemaVersion(ctx, db.Querier(ctx)); err != nil || version != 2 {
		t.Errorf("version %d, %v", version, err)
	}
}

func TestAFailedStepLeavesNothingOfItself(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.New(t, pgtest.WithMigrations())
	files := fstest.MapFS{"0001_a.sql": step("CREATE TABLE a (id int);"), "0002_b.sql": step("CREATE TABLE b (id int); SELECT 1 / 0;")}
	if applied, err := pg.Migrate(ctx, pg.MigrateConfig{DSN: db.DSN, Files: files}); err == nil || len(applied) != 1 {
		t.Errorf("applied %v, %v", applied, err)
	}
	if n := db.Count(t, "SELECT count(*) FROM pg_tables WHERE tablename IN ('a', 'b')"); n != 1 {
		t.Errorf("%d tables, want that of the first step", n)
	}
}

func TestValidateMigrationsNamesFaults(t *testing.T) {
	t.Parallel()
	if err := pg.ValidateMigrations(migrations.Files); err != nil {
		t.Errorf("own steps: %v", err)
	}
	for name, c := range map[string]struct {
		files fstest.MapFS
		fault string
	}{
		"fine":        {fstest.MapFS{"0001_a.sql": step("SELECT 1;")}, ""},
		"no mark":     {fstest.MapFS{"0001_a.sql": {Data: []byte("SELECT 1;")}}, "+goose Up"},
		"a way back":  {fstest.MapFS{"0001_a.sql": step("SELECT 1;\n-- +goose Down\nSELECT 2;")}, "forward only"},
		"same number": {fstest.MapFS{"0001_a.sql": step("SELECT 1;"), "0001_b.sql": step("SELECT 1;")}, "duplicate"},
		"open block":  {fstest.MapFS{"0001_a.sql": step("-- +goose StatementBegin\nSELECT 1;")}, "StatementEnd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := pg.ValidateMigrations(c.files)
			if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("got %v, want %q", err, c.fault)
			}
		})
	}
}

func TestBootstrapIsRepeatable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster, err := pgtest.StartCluster(ctx, pgtest.ClusterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	cfg := pg.BootstrapConfig{AdminDSN: cluster.DSN, Database: "instance"}
	for _, want := range []string{"created", "unchanged"} {
		results, err := pg.Bootstrap(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Result != want {
				t.Errorf("role %s: %s, want %s", r.Role, r.Result, want)
			}
		}
	}
	cfg.Passwords = map[string]string{pg.RoleApp: `a ' and a \`}
	if results, err := pg.Bootstrap(ctx, cfg); err != nil || results[1] != (pg.RoleResult{Role: pg.RoleApp, Result: "updated"}) {
		t.Errorf("a new password gave %v, %v", results, err)
	}
}

func TestTheServersRoleOwnsNothing(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"0001_a.sql": step("CREATE TABLE a (id int);")}
	db := pgtest.New(t, pgtest.WithFiles(files), pgtest.AsApp())
	ctx := context.Background()
	units := db.Units(newRegistry())
	run := func(sql string) error {
		return units.Do(ctx, func(ctx context.Context) error { return pg.QueuedExec(ctx, sql, nil) })
	}
	if err := run("INSERT INTO a VALUES (1)"); err != nil {
		t.Errorf("writing rows: %v", err)
	}
	for _, sql := range []string{"DELETE FROM goose_db_version", "CREATE TABLE mine (id int)", "DROP TABLE a", "TRUNCATE a", "CREATE SCHEMA mine"} {
		if err := run(sql); pg.State(err) != "42501" {
			t.Errorf("%s gave %v", sql, err)
		}
	}
}

func TestEveryStepOfTheServerApplies(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, pgtest.AsApp())
	ctx := context.Background()
	if version, err := pg.SchemaVersion(ctx, db.Querier(ctx)); err != nil || version == 0 {
		t.Errorf("version %d, %v", version, err)
	}
	if id, err := pg.ReadIdentity(ctx, db.Querier(ctx)); err != nil || id.SystemIdentifier == 0 || id.Timeline == 0 {
		t.Errorf("identity %+v, %v", id, err)
	}
}
