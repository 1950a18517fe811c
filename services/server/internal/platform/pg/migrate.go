// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

const (
	// migrateWait is how long a migrator waits for another one.
	migrateWait = time.Minute
	// lockRetries is how often a step that met the lock timeout is repeated.
	lockRetries = 5
)

// restrictVersions leaves the role of the server the right to read which steps are applied.
const restrictVersions = `
	DO $$ BEGIN
		IF to_regclass('goose_db_version') IS NOT NULL AND EXISTS (SELECT FROM pg_roles WHERE rolname = 'bothy_app') THEN
			REVOKE ALL ON goose_db_version FROM bothy_app;
			GRANT SELECT ON goose_db_version TO bothy_app;
			IF to_regclass('goose_db_version_id_seq') IS NOT NULL THEN
				REVOKE ALL ON SEQUENCE goose_db_version_id_seq FROM bothy_app;
			END IF;
		END IF;
	END $$`

// MigrateConfig says what to bring up to date and how.
type MigrateConfig struct {
	// DSN connects as the owner of the objects.
	DSN string
	// Files holds the steps in its root.
	Files fs.FS
	// LockTimeout bounds the wait of a step for a lock ("migrate.lock_timeout").
	LockTimeout time.Duration
	Log         *slog.Logger
	// After runs behind the last step on a connection of the owner: the schema of the jobs
	// runtime, partitions, the row of the instance. It must be repeatable. May be nil.
	After func(ctx context.Context, conn *pgx.Conn) error
}

// Migration is one step of the schema.
type Migration struct {
	Version   int64
	Name      string
	Applied   bool
	AppliedAt time.Time // zero unless applied
}

// Migrate applies every step that is missing, one transaction each, and then After. It
// returns the names of the applied steps. A second call does nothing.
func Migrate(ctx context.Context, cfg MigrateConfig) ([]string, error) {
	conn, err := pgx.ParseConfig(cfg.DSN)
	if err != nil {
		return nil, errors.New("the address of the database is malformed")
	}
	conn.RuntimeParams["application_name"] = "bothy-migrate"
	if cfg.LockTimeout > 0 {
		conn.RuntimeParams["lock_timeout"] = milliseconds(cfg.LockTimeout)
	}
	provider, closeDB, err := newProvider(conn, cfg.Files, true)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	var applied []string
	if provider != nil {
		if applied, err = applySteps(ctx, provider, cfg.Log); err != nil {
			return applied, err
		}
	}
	direct, err := pgx.ConnectConfig(ctx, conn)
	if err != nil {
		return applied, fmt.Errorf("connect behind the last step: %w", err)
	}
	defer closeConn(direct)
	if _, err := direct.Exec(ctx, restrictVersions); err != nil {
		return applied, fmt.Errorf("restrict the table of versions: %w", err)
	}
	if cfg.After == nil {
		return applied, nil
	}
	if err := cfg.After(ctx, direct); err != nil {
		return applied, fmt.Errorf("behind the last step: %w", err)
	}
	return applied, nil
}

// applySteps repeats a step that could not get its lock, with growing pauses; what was
// applied before stays.
func applySteps(ctx context.Context, provider *goose.Provider, log *slog.Logger) ([]string, error) {
	var applied []string
	for attempt := 1; ; attempt++ {
		results, err := provider.Up(ctx)
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			results = partial.Applied
		}
		for _, r := range results {
			if r.Error == nil {
				applied = append(applied, r.Source.Path)
			}
		}
		if err == nil {
			return applied, nil
		}
		if !IsLockTimeout(err) || attempt > lockRetries {
			return applied, fmt.Errorf("apply the steps of the schema: %w", err)
		}
		if log != nil {
			log.Warn("a step waits for a lock", "component", "pg.migrate", "attempt", attempt, "error", err)
		}
		select {
		case <-ctx.Done():
			return applied, ctx.Err()
		case <-time.After(min(time.Duration(1<<(attempt-1))*time.Second, 10*time.Second)):
		}
	}
}

// MigrationStatus lists every known step with its state, in order.
func MigrationStatus(ctx context.Context, dsn string, files fs.FS) ([]Migration, error) {
	conn, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the address of the database is malformed")
	}
	provider, closeDB, err := newProvider(conn, files, false)
	if err != nil || provider == nil {
		return nil, err
	}
	defer closeDB()
	states, err := provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of the schema: %w", err)
	}
	out := make([]Migration, 0, len(states))
	for _, s := range states {
		out = append(out, Migration{
			Version: s.Source.Version, Name: s.Source.Path, Applied: s.State == goose.StateApplied, AppliedAt: s.AppliedAt,
		})
	}
	return out, nil
}

// SchemaVersion is the highest applied step, zero before the first.
func SchemaVersion(ctx context.Context, q DBTX) (int64, error) {
	var version int64
	err := q.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version)
	if State(err) == "42P01" {
		return 0, nil
	}
	return version, err
}

// ValidateMigrations reads all files without a database: names, numbers, annotations, and
// that no step has a way back.
func ValidateMigrations(files fs.FS) error {
	db := stdlib.OpenDB(pgx.ConnConfig{})
	defer func() { _ = db.Close() }()
	if _, err := goose.NewProvider(goose.DialectPostgres, db, files); err != nil && !errors.Is(err, goose.ErrNoMigrations) {
		return fmt.Errorf("steps of the schema: %w", err)
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		switch {
		case err != nil:
			faults = append(faults, err)
		case !strings.Contains(string(text), "-- +goose Up"):
			faults = append(faults, fmt.Errorf("%s: the line \"-- +goose Up\" is missing", name))
		case strings.Contains(string(text), "-- +goose Down"):
			faults = append(faults, fmt.Errorf("%s: steps go forward only", name))
		case strings.Count(string(text), "+goose StatementBegin") != strings.Count(string(text), "+goose StatementEnd"):
			faults = append(faults, fmt.Errorf("%s: a StatementBegin has no StatementEnd", name))
		}
	}
	return errors.Join(faults...)
}

// newProvider gives nil without an error when files holds no step.
func newProvider(conn *pgx.ConnConfig, files fs.FS, locked bool) (*goose.Provider, func(), error) {
	db := stdlib.OpenDB(*conn)
	closeDB := func() { _ = db.Close() }
	provider, err := providerOn(db, files, locked)
	if errors.Is(err, goose.ErrNoMigrations) {
		closeDB()
		return nil, func() {}, nil
	}
	if err != nil {
		closeDB()
		return nil, nil, fmt.Errorf("steps of the schema: %w", err)
	}
	return provider, closeDB, nil
}

func providerOn(db *sql.DB, files fs.FS, locked bool) (*goose.Provider, error) {
	if !locked {
		return goose.NewProvider(goose.DialectPostgres, db, files)
	}
	const probe = 1 // second
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(probe, uint64(migrateWait.Seconds())/probe))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
}
