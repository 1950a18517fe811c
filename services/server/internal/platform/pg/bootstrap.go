// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The roles of an instance.
const (
	RoleOwner   = "bothy_owner"
	RoleApp     = "bothy_app"
	RoleMaint   = "bothy_maint"
	RoleBackup  = "bothy_backup"
	RoleMonitor = "bothy_monitor"
)

// bootstrapLock is the advisory lock of the bootstrap: "bothyboo" as a number.
const bootstrapLock int64 = 7093015930193735535

// roleRule is what bootstrap makes of one role.
type roleRule struct {
	name        string
	replication bool
	connLimit   int // -1 for none
	memberOf    []string
}

var roleRules = []roleRule{
	{name: RoleOwner, connLimit: -1},
	{name: RoleApp, connLimit: -1},
	{name: RoleMaint, connLimit: 2},
	{name: RoleBackup, replication: true, connLimit: 4, memberOf: []string{"pg_read_all_data"}},
	{name: RoleMonitor, connLimit: -1, memberOf: []string{"pg_monitor"}},
}

// BootstrapConfig says which instance to prepare.
type BootstrapConfig struct {
	// AdminDSN connects as a superuser to any database but the instance's own.
	AdminDSN string
	// Database is the name of the instance's database.
	Database string
	// Passwords by role; a role without an entry keeps its password.
	Passwords map[string]string
	// JobsSchema is the schema of the jobs runtime; "jobs" when empty.
	JobsSchema string
}

// RoleResult says what happened to a role: created, updated or unchanged.
type RoleResult struct{ Role, Result string }

// Bootstrap creates the database and the five roles, or repairs them, without ever dropping
// anything. Passwords are set to the given ones.
func Bootstrap(ctx context.Context, cfg BootstrapConfig) ([]RoleResult, error) {
	admin, err := pgx.Connect(ctx, cfg.AdminDSN)
	if err != nil {
		return nil, fmt.Errorf("connect for the bootstrap: %w", err)
	}
	defer closeConn(admin)
	if _, err := admin.Exec(ctx, "SELECT pg_advisory_lock($1)", bootstrapLock); err != nil {
		return nil, fmt.Errorf("wait for another bootstrap: %w", err)
	}
	var results []RoleResult
	for _, rule := range roleRules {
		result, err := ensureRole(ctx, admin, rule, cfg.Passwords[rule.name])
		if err != nil {
			return results, fmt.Errorf("role %s: %w", rule.name, err)
		}
		results = append(results, RoleResult{Role: rule.name, Result: result})
	}
	if err := ensureDatabase(ctx, admin, cfg.Database); err != nil {
		return results, fmt.Errorf("database %s: %w", cfg.Database, err)
	}
	target := admin.Config()
	target.Database = cfg.Database
	inside, err := pgx.ConnectConfig(ctx, target)
	if err != nil {
		return results, fmt.Errorf("connect to the database %s: %w", cfg.Database, err)
	}
	defer closeConn(inside)
	schema := cfg.JobsSchema
	if schema == "" {
		schema = "jobs"
	}
	if err := grantInside(ctx, inside, cfg.Database, schema); err != nil {
		return results, fmt.Errorf("rights in the database %s: %w", cfg.Database, err)
	}
	return results, nil
}

func ensureRole(ctx context.Context, conn *pgx.Conn, rule roleRule, password string) (string, error) {
	name := pgx.Identifier{rule.name}.Sanitize()
	var exists, same bool
	err := conn.QueryRow(ctx, `
		SELECT count(*) > 0, coalesce(bool_and(NOT rolsuper AND NOT rolcreatedb AND NOT rolcreaterole AND NOT rolbypassrls
		       AND rolcanlogin AND rolreplication = $2 AND rolconnlimit = $3), false)
		FROM pg_roles WHERE rolname = $1`, rule.name, rule.replication, rule.connLimit).Scan(&exists, &same)
	if err != nil {
		return "", err
	}
	result := "unchanged"
	if !exists {
		result = "created"
		if _, err := conn.Exec(ctx, "CREATE ROLE "+name); err != nil {
			return "", err
		}
	} else if !same || password != "" {
		result = "updated"
	}
	attributes := "NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS LOGIN NOREPLICATION"
	if rule.replication {
		attributes = "NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS LOGIN REPLICATION"
	}
	sql := fmt.Sprintf("ALTER ROLE %s %s CONNECTION LIMIT %d", name, attributes, rule.connLimit)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return "", err
	}
	for _, group := range rule.memberOf {
		if _, err := conn.Exec(ctx, "GRANT "+pgx.Identifier{group}.Sanitize()+" TO "+name); err != nil {
			return "", err
		}
	}
	if password == "" {
		return result, nil
	}
	return result, setPassword(ctx, conn, name, password)
}

// setPassword lets the server quote the literal; the statement itself is never logged,
// because statement logging is off in this session.
func setPassword(ctx context.Context, conn *pgx.Conn, name, password string) error {
	for _, setting := range []string{"log_statement = 'none'", "log_min_error_statement = 'panic'", "log_min_duration_statement = -1", "password_encryption = 'scram-sha-256'"} {
		if _, err := conn.Exec(ctx, "SET "+setting); err != nil {
			return err
		}
	}
	var literal string
	if err := conn.QueryRow(ctx, "SELECT quote_literal($1::text)", password).Scan(&literal); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "ALTER ROLE "+name+" PASSWORD "+literal); err != nil {
		return errors.New("the password could not be set") // The server's text could quote it.
	}
	return nil
}

func ensureDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil {
		return err
	}
	if exists {
		return nil
	}
	_, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+
		" OWNER "+RoleOwner+" TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'")
	return err
}

// grantInside checks the locale and gives each role its rights, now and for objects that
// the owner makes later. Rights on single tables belong to the steps of their modules.
func grantInside(ctx context.Context, conn *pgx.Conn, database, jobsSchema string) error {
	if err := CheckLocale(ctx, conn); err != nil {
		return err
	}
	db, jobs := pgx.Identifier{database}.Sanitize(), pgx.Identifier{jobsSchema}.Sanitize()
	statements := []string{
		"ALTER DATABASE " + db + " OWNER TO " + RoleOwner,
		"ALTER SCHEMA public OWNER TO " + RoleOwner,
		"CREATE SCHEMA IF NOT EXISTS " + jobs + " AUTHORIZATION " + RoleOwner,
		"ALTER SCHEMA " + jobs + " OWNER TO " + RoleOwner,
		"REVOKE ALL ON DATABASE " + db + " FROM PUBLIC",
		"REVOKE ALL ON SCHEMA public FROM PUBLIC",
		"GRANT CONNECT ON DATABASE " + db + " TO bothy_app, bothy_maint, bothy_backup, bothy_monitor",
		"GRANT USAGE ON SCHEMA public TO bothy_app, bothy_maint, bothy_backup",
		"GRANT USAGE ON SCHEMA " + jobs + " TO bothy_app",
		"ALTER DEFAULT PRIVILEGES FOR ROLE bothy_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
	}
	for _, schema := range []string{"public", jobs} {
		in := "ALTER DEFAULT PRIVILEGES FOR ROLE bothy_owner IN SCHEMA " + schema + " GRANT "
		statements = append(statements,
			in+"SELECT, INSERT, UPDATE, DELETE ON TABLES TO bothy_app",
			in+"USAGE, SELECT ON SEQUENCES TO bothy_app",
			in+"EXECUTE ON FUNCTIONS TO bothy_app",
		)
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// CheckLocale refuses a database that compares or folds text in another way than expected.
func CheckLocale(ctx context.Context, q DBTX) error {
	var encoding string
	var folds bool
	err := q.QueryRow(ctx, "SELECT current_setting('server_encoding'), lower('ÄÉŠ') = 'äéš'").Scan(&encoding, &folds)
	switch {
	case err != nil:
		return fmt.Errorf("read the locale: %w", err)
	case encoding != "UTF8":
		return fmt.Errorf("database.name: the encoding is %s, not UTF8", encoding)
	case !folds:
		return errors.New("database.name: the locale does not fold letters beyond ASCII; use the provider builtin with C.UTF-8")
	}
	return nil
}
