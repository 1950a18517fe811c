// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// migrationLock keeps two migrators apart: the ASCII bytes of "bothyjob".
const migrationLock = 7093015930194259810

// ErrNotMigrated is returned by CheckMigrated when the schema of the queue is missing or
// older than this binary needs.
var ErrNotMigrated = errors.New("the schema of the job queue is not up to date; run bothy migrate up")

// Migrate brings the schema of the queue up to date, as the owner of the objects. The
// connection holds the lock; the steps run on further ones of the same address. A second
// call does nothing.
func Migrate(ctx context.Context, conn *pgx.Conn, schema string) error {
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return fmt.Errorf("lock the job queue for its migration: %w", err)
	}
	defer func() {
		// The lock ends with the connection at the latest.
		_, _ = conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrationLock))
	}()
	if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize()); err != nil {
		return fmt.Errorf("create schema of the job queue: %w", err)
	}
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return fmt.Errorf("prepare pool for the migration of the job queue: %w", err)
	}
	config.ConnConfig, config.MaxConns = conn.Config().Copy(), 2
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("open pool for the migration of the job queue: %w", err)
	}
	defer pool.Close()
	migrator, err := newMigrator(pool, schema)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	return nil
}

// CheckMigrated fails with ErrNotMigrated unless every migration that this binary knows has
// run. Newer ones are no fault.
func (rt *Runtime) CheckMigrated(ctx context.Context) error {
	migrator, err := newMigrator(rt.pool, rt.schema)
	if err != nil {
		return err
	}
	result, err := migrator.Validate(ctx, nil)
	if err != nil {
		return fmt.Errorf("look at the schema of the job queue: %w", err)
	}
	if !result.OK {
		return ErrNotMigrated
	}
	return nil
}

func newMigrator(pool *pgxpool.Pool, schema string) (*rivermigrate.Migrator[pgx.Tx], error) {
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("prepare migration of the job queue: %w", err)
	}
	return m, nil
}
