// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// TestEveryRoleHasJustItsRights lists what each role may do after a fresh bootstrap and a
// step that makes one table, one sequence and one function.
func TestEveryRoleHasJustItsRights(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster, err := pgtest.StartCluster(ctx, pgtest.ClusterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	if _, err := pg.Bootstrap(ctx, pg.BootstrapConfig{AdminDSN: cluster.DSN, Database: "instance"}); err != nil {
		t.Fatal(err)
	}
	admin, err := pgx.ParseConfig(cluster.DSN)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"0001_a.sql": step(`
		CREATE TABLE a (id bigint GENERATED ALWAYS AS IDENTITY);
		CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';`)}
	if _, err := pg.Migrate(ctx, pg.MigrateConfig{DSN: "host=" + admin.Host + " user=" + pg.RoleOwner + " dbname=instance", Files: files}); err != nil {
		t.Fatal(err)
	}
	admin.Database = "instance"
	conn, err := pgx.ConnectConfig(ctx, admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `
		SELECT rolname || ':' || concat_ws(' ',
			CASE WHEN rolsuper OR rolcreatedb OR rolcreaterole OR rolbypassrls THEN 'too-much' END,
			CASE WHEN rolcanlogin THEN 'login' END,
			CASE WHEN rolreplication THEN 'replication' END,
			CASE WHEN rolconnlimit >= 0 THEN 'limit=' || rolconnlimit END,
			(SELECT string_agg('in=' || g.rolname, ' ' ORDER BY g.rolname) FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid),
			(SELECT string_agg(p || '@database', ' ' ORDER BY p) FROM unnest('{CREATE,CONNECT,TEMPORARY}'::text[]) p WHERE has_database_privilege(r.oid, 'instance', p)),
			(SELECT string_agg(p || '@' || s, ' ' ORDER BY s, p) FROM unnest('{CREATE,USAGE}'::text[]) p, unnest('{public,jobs}'::text[]) s WHERE has_schema_privilege(r.oid, s, p)),
			(SELECT string_agg(p || '@' || o, ' ' ORDER BY o, p) FROM unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) p, unnest('{a,goose_db_version}'::text[]) o
				WHERE has_table_privilege(r.oid, o, p)),
			CASE WHEN has_function_privilege(r.oid, 'f()', 'EXECUTE') THEN 'EXECUTE@f' END)
		FROM pg_roles r WHERE rolname LIKE 'bothy%' ORDER BY rolname`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"bothy_app:login CONNECT@database USAGE@jobs USAGE@public DELETE@a INSERT@a SELECT@a UPDATE@a SELECT@goose_db_version EXECUTE@f",
		"bothy_backup:login replication limit=4 in=pg_read_all_data CONNECT@database USAGE@jobs USAGE@public SELECT@a SELECT@goose_db_version",
		"bothy_maint:login limit=2 CONNECT@database USAGE@public",
		"bothy_monitor:login in=pg_monitor CONNECT@database",
		"bothy_owner:login CONNECT@database CREATE@database TEMPORARY@database CREATE@jobs USAGE@jobs CREATE@public USAGE@public " +
			"DELETE@a INSERT@a REFERENCES@a SELECT@a TRIGGER@a TRUNCATE@a UPDATE@a " +
			"DELETE@goose_db_version INSERT@goose_db_version REFERENCES@goose_db_version SELECT@goose_db_version TRIGGER@goose_db_version TRUNCATE@goose_db_version UPDATE@goose_db_version EXECUTE@f",
	}
	if !reflect.DeepEqual(got, want) {
		for _, line := range got {
			t.Log(line)
		}
		t.Errorf("the rights differ")
	}
}
