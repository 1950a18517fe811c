// SPDX-License-Identifier: Apache-2.0

// Package pgtest gives each test a database of its own on a real server.
//
// The first test of a process starts a cluster, or uses the one that BOTHY_TEST_POSTGRES
// names. All steps of the schema are applied once, to a template that is found again by a
// hash over them; a test gets a copy of it in a few milliseconds.
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		db := pgtest.New(t)
//		units := db.Units(txn.NewRegistry())
//		...
//	}
package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/migrations"
)

// templateVersion enters the hash of the template; it changes with what prepare does.
const templateVersion = "2"

// DB is the database of one test.
type DB struct {
	*pg.DB
	// DSN connects as the user the test was opened with.
	DSN string
	// Pool writes without units and as the owner: to arrange and to look.
	Pool *pgxpool.Pool
	// Cluster is the own cluster of WithFsync, nil otherwise.
	Cluster *Cluster
}

type options struct {
	cluster *ClusterOptions // of an own cluster; nil for the shared one
	asApp   bool
	all     bool
	steps   []string
	files   fs.FS
	config  []func(*pg.Config)
}

// Option changes what New gives.
type Option func(*options)

// WithFsync gives the test a cluster of its own that writes to disk like a production
// server and may be killed and restarted.
func WithFsync() Option { return WithCluster(ClusterOptions{Durable: true}) }

// WithCluster gives the test a cluster of its own.
func WithCluster(c ClusterOptions) Option { return func(o *options) { o.cluster = &c } }

// WithMigrations applies only steps whose file names begin with one of the prefixes, for
// example "0001" or "0001_instance". Without a prefix no step is applied.
func WithMigrations(prefixes ...string) Option {
	return func(o *options) { o.all, o.steps = false, prefixes }
}

// WithFiles replaces the steps.
func WithFiles(files fs.FS) Option { return func(o *options) { o.files = files } }

// AsApp connects as the role of the server instead of the superuser, so missing rights show.
func AsApp() Option { return func(o *options) { o.asApp = true } }

// WithConfig changes the configuration of the connection.
func WithConfig(fn func(*pg.Config)) Option {
	return func(o *options) { o.config = append(o.config, fn) }
}

// New makes a database with the schema applied and removes it after the test.
func New(t testing.TB, opts ...Option) *DB {
	t.Helper()
	o := options{all: true, files: migrations.Files}
	for _, opt := range opts {
		opt(&o)
	}
	ctx := context.Background()
	db := &DB{}
	admin := ""
	if o.cluster == nil {
		admin = sharedDSN(t)
	} else {
		db.Cluster = ownCluster(t, *o.cluster)
		admin = db.Cluster.DSN
	}
	files, err := selectSteps(o)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	template, err := ensureTemplate(ctx, admin, files)
	if err != nil {
		t.Fatalf("pgtest: make the template: %v", err)
	}
	name := "bothy_t_" + randomHex(8)
	if err := adminExec(ctx, admin, "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY file_copy"); err != nil {
		t.Fatalf("pgtest: copy the template: %v", err)
	}
	t.Cleanup(func() {
		_ = adminExec(context.Background(), admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	})
	owner := replaceParams(admin, map[string]string{"dbname": name})
	db.DSN = owner
	if o.asApp {
		db.DSN = replaceParams(owner, map[string]string{"user": pg.RoleApp})
	}
	db.open(t, owner, o)
	return db
}

func (db *DB) open(t testing.TB, owner string, o options) {
	t.Helper()
	cfg := pg.Default()
	cfg.DSN, cfg.MaxConns = db.DSN, 8
	cfg.AllowUnsafe = o.cluster == nil || !o.cluster.Durable
	for _, change := range o.config {
		change(&cfg)
	}
	ctx := context.Background()
	var err error
	if db.DB, err = pg.Open(ctx, cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatalf("pgtest: open: %v", err)
	}
	t.Cleanup(db.Close)
	poolConfig, err := pgxpool.ParseConfig(owner)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	poolConfig.MaxConns = 4
	poolConfig.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		pg.RegisterTypes(conn.TypeMap())
		return nil
	}
	if db.Pool, err = pgxpool.NewWithConfig(ctx, poolConfig); err != nil {
		t.Fatalf("pgtest: open: %v", err)
	}
	t.Cleanup(db.Pool.Close)
}

// Units are the units of the database on the clock of the system. The registry is sealed.
func (db *DB) Units(registry *txn.Registry) *pg.Units { return db.UnitsAt(registry, clock.System{}) }

// UnitsAt is Units on a given clock.
func (db *DB) UnitsAt(registry *txn.Registry, clk clock.Clock) *pg.Units {
	registry.Seal()
	return pg.NewUnits(db.DB, registry, clk, pg.UnitConfig{})
}

// Exec runs SQL outside units and fails the test when that fails.
func (db *DB) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("exec %s: %v", sql, err)
	}
}

// Count gives the number that a query for one number returns.
func (db *DB) Count(t testing.TB, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	if err := db.Pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("count %s: %v", sql, err)
	}
	return n
}

var shared struct {
	once sync.Once
	dsn  string
	err  error
}

// sharedDSN is the cluster of the environment, or one that lives as long as the process:
// the signal of the parent's death ends it, and a later run removes its folder.
func sharedDSN(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		if shared.dsn = os.Getenv(EnvDSN); shared.dsn != "" {
			return
		}
		var c *Cluster
		if c, shared.err = StartCluster(context.Background(), ClusterOptions{}); shared.err == nil {
			shared.dsn = c.DSN
		}
	})
	if shared.err != nil {
		t.Fatalf("pgtest: start the cluster: %v", shared.err)
	}
	return shared.dsn
}

func ownCluster(t testing.TB, o ClusterOptions) *Cluster {
	t.Helper()
	c, err := StartCluster(context.Background(), o)
	if err != nil {
		t.Fatalf("pgtest: start the cluster: %v", err)
	}
	t.Cleanup(c.Stop)
	return c
}

// selectSteps copies the wanted files, so the hash and the run see the same.
func selectSteps(o options) (fstest.MapFS, error) {
	names, err := fs.Glob(o.files, "*.sql")
	if err != nil {
		return nil, err
	}
	out := fstest.MapFS{}
	for _, name := range names {
		wanted := o.all
		for _, prefix := range o.steps {
			wanted = wanted || strings.HasPrefix(name, prefix)
		}
		if !wanted {
			continue
		}
		text, err := fs.ReadFile(o.files, name)
		if err != nil {
			return nil, err
		}
		out[name] = &fstest.MapFile{Data: text}
	}
	return out, nil
}

// ensureTemplate finds or makes the template for the steps. An advisory lock lets several
// processes share it.
func ensureTemplate(ctx context.Context, admin string, files fstest.MapFS) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, templateVersion)
	for _, name := range sortedNames(files) {
		_, _ = fmt.Fprintln(sum, name, len(files[name].Data))
		sum.Write(files[name].Data)
	}
	key := sum.Sum(nil)
	name := "bothy_tmpl_" + hex.EncodeToString(key[:8])
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(binary.BigEndian.Uint64(key[:8])>>1)); err != nil {
		return "", err
	}
	var ready bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)", name).Scan(&ready); err != nil || ready {
		return name, err
	}
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		return "", err
	}
	if err := prepare(ctx, admin, name, files); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true ALLOW_CONNECTIONS false")
	return name, err
}

// prepare makes the template the way an installation makes its database.
func prepare(ctx context.Context, admin, name string, files fs.FS) error {
	if _, err := pg.Bootstrap(ctx, pg.BootstrapConfig{AdminDSN: admin, Database: name}); err != nil {
		return err
	}
	_, err := pg.Migrate(ctx, pg.MigrateConfig{
		DSN: replaceParams(admin, map[string]string{"dbname": name, "user": pg.RoleOwner}), Files: files,
	})
	return err
}

func adminExec(ctx context.Context, admin, sql string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// replaceParams sets words of an address in keyword form.
func replaceParams(dsn string, set map[string]string) string {
	var out []string
	for _, field := range strings.Fields(dsn) {
		key, _, _ := strings.Cut(field, "=")
		if _, replaced := set[key]; !replaced {
			out = append(out, field)
		}
	}
	for key, value := range set {
		out = append(out, key+"="+value)
	}
	return strings.Join(out, " ")
}

func sortedNames(files fstest.MapFS) []string {
	names, _ := fs.Glob(files, "*.sql") // Glob of a valid pattern does not fail, and sorts.
	return names
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
