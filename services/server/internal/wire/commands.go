// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	identityapp "github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/platform/buildinfo"
	"github.com/OWNER/bothy/services/server/internal/platform/config"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/ratelimit"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
	"github.com/OWNER/bothy/services/server/migrations"
)

// minServerVersion is the oldest server that may run on the present schema.
const minServerVersion = "0.1.0"

// ExitError carries an exit code that belongs to one command.
type ExitError struct {
	Code int
	Err  error
}

// Error implements error.
func (e ExitError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e ExitError) Unwrap() error { return e.Err }

// IsConfigError reports whether the configuration is at fault, which is exit code 2.
func IsConfigError(err error) bool { return config.IsProblems(err) }

// Version is the line of the command version.
func Version() string {
	return fmt.Sprintf("%s, schema %d", buildinfo.Current(), newestMigration(migrations.Files))
}

// newestMigration is the highest number among the embedded steps.
func newestMigration(files fs.FS) int64 {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return 0
	}
	var newest int64
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

// command is a run of the process without listeners: for what an operator does.
type commandRun struct {
	process
	store *store
}

// withStore loads the configuration, starts the embedded database when nobody else has, and
// runs fn. It stops what it started.
func withStore(ctx context.Context, from Sources, console Console, fn func(ctx context.Context, r *commandRun) error) error {
	c, _, err := LoadConfig(from)
	if err != nil {
		return err
	}
	return withConfig(ctx, c, console, fn)
}

func withConfig(ctx context.Context, c *Config, console Console, fn func(ctx context.Context, r *commandRun) error) (err error) {
	r := &commandRun{}
	r.config, r.clock, r.observer = c, clock.System{}, nobody{}
	r.log = otel.NewLogger(quiet(c.Log), console.Err, isTerminal(console.Err))
	r.meter, r.telemetry = otel.NoMeter{}, otel.Off()
	if r.secrets, err = secrets.New(c.Secrets, r.log, r.clock); err != nil {
		return err
	}
	if r.limiter, err = ratelimit.New(c.RateLimit, r.clock); err != nil {
		return err
	}
	r.store = &store{config: c, secrets: r.secrets, log: r.log}
	if err := r.store.reachEmbedded(ctx); err != nil {
		return err
	}
	defer r.stop(r.log)
	return fn(ctx, r)
}

// quiet leaves out what a server writes down and a person who gave one command does not ask:
// every line that the embedded database says while it starts and stops.
func quiet(c otel.LogConfig) otel.LogConfig {
	if c.Level == "info" {
		c.Level = "warn"
	}
	return c
}

// stopPatience bounds how long a command waits for the database that it started.
const stopPatience = 30 * time.Second

func (r *commandRun) stop(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if err := r.store.stopEmbedded(ctx); err != nil {
		log.Error("embedded database does not stop", "error", err)
	}
}

// withModules opens the database as the role of the server and builds the modules.
func withModules(ctx context.Context, from Sources, console Console, fn func(ctx context.Context, r *commandRun) error) error {
	return withStore(ctx, from, console, func(ctx context.Context, r *commandRun) error {
		return r.inModules(ctx, fn)
	})
}

// inModules opens the database as the role of the server, builds the modules and runs fn as
// the system.
func (r *commandRun) inModules(ctx context.Context, fn func(ctx context.Context, r *commandRun) error) (err error) {
	if r.db, err = r.store.open(ctx, r.clock); err != nil {
		return err
	}
	defer r.db.Close()
	if err := checkSchema(ctx, r.db, newestMigration(migrations.Files)); err != nil {
		return err
	}
	if err := r.build(ctx); err != nil {
		return err
	}
	deps := jobs.Dependencies{DB: r.db, Barrier: r.db.Barrier(), Log: r.log, InsertOnly: true}
	runtime, err := jobs.New(ctx, r.config.Jobs, deps, r.jobs)
	if err != nil {
		return err
	}
	defer runtime.Close()
	r.queue.runtime = runtime
	if err := r.ensureKeys(ctx); err != nil {
		return err
	}
	return fn(system(ctx), r)
}

// Prepare is MigrateUp for a configuration that is loaded already, as tests have it.
func Prepare(ctx context.Context, c *Config, console Console) error {
	return withConfig(ctx, c, console, func(ctx context.Context, r *commandRun) error { return r.migrateUp(ctx, console, false) })
}

// FirstOwner is BootstrapOwner for a configuration that is loaded already.
func FirstOwner(ctx context.Context, c *Config, console Console, o Owner) error {
	return withConfig(ctx, c, console, func(ctx context.Context, r *commandRun) error {
		return r.inModules(ctx, func(ctx context.Context, r *commandRun) error {
			code, err := r.identity.service.BootstrapOwner(ctx, identityapp.BootstrapInput{Handle: o.Handle, DisplayName: o.DisplayName, Email: o.Email})
			return printCode(console, code, err)
		})
	})
}

// MigrateUp brings the database up to this binary, after creating it and its roles when asked.
func MigrateUp(ctx context.Context, from Sources, console Console, bootstrap bool) error {
	return withStore(ctx, from, console, func(ctx context.Context, r *commandRun) error {
		return r.migrateUp(ctx, console, bootstrap)
	})
}

func (r *commandRun) migrateUp(ctx context.Context, console Console, bootstrap bool) error {
	if bootstrap {
		if err := r.bootstrap(ctx, console); err != nil {
			return err
		}
	}
	owner, err := r.store.ownerDSN()
	if err != nil {
		return err
	}
	applied, err := pg.Migrate(ctx, pg.MigrateConfig{
		DSN: owner, Files: migrations.Files, LockTimeout: r.config.Database.MigrateLockTimeout, Log: r.log,
		After: func(ctx context.Context, conn *pgx.Conn) error { return jobs.Migrate(ctx, conn, r.config.Jobs.Schema) },
	})
	for _, step := range applied {
		_, _ = fmt.Fprintln(console.Out, "applied", step)
	}
	if err != nil {
		return err
	}
	if err := r.afterMigration(ctx, owner); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(console.Out, "schema %d\n", newestMigration(migrations.Files))
	return nil
}

// bootstrap creates database and roles as the superuser.
func (r *commandRun) bootstrap(ctx context.Context, console Console) error {
	admin, err := r.store.adminDSN()
	if err != nil {
		return err
	}
	passwords, err := r.store.passwords()
	if err != nil {
		return err
	}
	roles, err := pg.Bootstrap(ctx, pg.BootstrapConfig{
		AdminDSN: admin, Database: r.config.PG.Name, Passwords: passwords, JobsSchema: r.config.Jobs.Schema,
	})
	for _, role := range roles {
		_, _ = fmt.Fprintf(console.Out, "role %s: %s\n", role.Role, role.Result)
	}
	return err
}

// afterMigration makes partitions and the row of the instance through the modules, as the
// owner of the schema.
func (r *commandRun) afterMigration(ctx context.Context, owner string) error {
	c := r.config.PG
	c.DSN, c.AppName, c.MaxConns = owner, "bothy-migrate", 4
	db, err := pg.Open(ctx, c, r.log)
	if err != nil {
		return err
	}
	defer db.Close()
	r.db = db
	id, err := pg.ReadIdentity(ctx, db.Querier(ctx))
	if err != nil {
		return err
	}
	return r.ensureInstance(system(ctx), id)
}

// MigrateStatus lists the steps. Pending steps and a newer database have codes of their own.
func MigrateStatus(ctx context.Context, from Sources, console Console) error {
	const pendingCode, newerCode = 3, 4
	return withStore(ctx, from, console, func(ctx context.Context, r *commandRun) error {
		owner, err := r.store.ownerDSN()
		if err != nil {
			return err
		}
		steps, err := pg.MigrationStatus(ctx, owner, migrations.Files)
		if err != nil {
			return err
		}
		pending, reached := 0, int64(0)
		for _, step := range steps {
			state := "pending"
			if step.Applied {
				state = "applied " + step.AppliedAt.UTC().Format(time.RFC3339)
				reached = max(reached, step.Version)
			} else {
				pending++
			}
			_, _ = fmt.Fprintf(console.Out, "%05d %s %s\n", step.Version, step.Name, state)
		}
		switch {
		case reached > newestMigration(migrations.Files):
			return ExitError{newerCode, errors.New("the database is newer than this binary")}
		case pending > 0:
			return ExitError{pendingCode, fmt.Errorf("%d steps are pending", pending)}
		default:
			return nil
		}
	})
}

// MigrateValidate checks the embedded steps without a database.
func MigrateValidate(console Console) error {
	if err := pg.ValidateMigrations(migrations.Files); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(console.Out, "schema %d\n", newestMigration(migrations.Files))
	return nil
}

// Owner describes the first owner.
type Owner struct{ Handle, DisplayName, Email string }

// BootstrapOwner prepares the first owner: the code alone goes to standard output.
func BootstrapOwner(ctx context.Context, from Sources, console Console, o Owner) error {
	const completeCode = 3
	return withModules(ctx, from, console, func(ctx context.Context, r *commandRun) error {
		code, err := r.identity.service.BootstrapOwner(ctx, identityapp.BootstrapInput{Handle: o.Handle, DisplayName: o.DisplayName, Email: o.Email})
		if errors.Is(err, identityapp.ErrSetupComplete) {
			return ExitError{completeCode, err}
		}
		return printCode(console, code, err)
	})
}

// IssueEnrollmentCode gives an owner a way back in.
func IssueEnrollmentCode(ctx context.Context, from Sources, console Console, handle string, promote bool) error {
	const incompleteCode = 4
	return withModules(ctx, from, console, func(ctx context.Context, r *commandRun) error {
		code, err := r.identity.service.RecoverOwner(ctx, handle, promote)
		if errors.Is(err, identityapp.ErrSetupNotComplete) {
			return ExitError{incompleteCode, err}
		}
		return printCode(console, code, err)
	})
}

func printCode(console Console, code identityapp.IssuedCode, err error) error {
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(console.Out, code.Code)
	_, _ = fmt.Fprintf(console.Err, "open %s\nvalid until %s\n", code.URL, code.ExpiresAt.UTC().Format(time.RFC3339))
	return nil
}

// ConfigCheck loads the configuration, prints warnings, and resolves secrets when asked.
func ConfigCheck(from Sources, console Console, resolve bool) error {
	c, loaded, err := LoadConfig(from)
	if err != nil {
		return err
	}
	for _, warning := range loaded.Warnings() {
		_, _ = fmt.Fprintln(console.Err, "warning:", warning)
	}
	if !resolve {
		return nil
	}
	provider, err := secrets.New(c.Secrets, slog.New(slog.DiscardHandler), clock.System{})
	if err != nil {
		return err
	}
	malformed, err := malformedSecrets(c, loaded)
	if err != nil {
		return err
	}
	failed := 0
	for _, entry := range loaded.Refs() {
		if entry.Value == "" {
			continue
		}
		outcome := "ok"
		if _, err := provider.Resolve(entry.Key, entry.Value); err != nil {
			outcome = string(secrets.CodeOf(err))
			failed++
		} else if fault := malformed[entry.Key]; fault != nil {
			outcome = "malformed"
			failed++
			_, _ = fmt.Fprintln(console.Err, fault)
		}
		_, _ = fmt.Fprintf(console.Out, "secret %s: %s\n", entry.Key, outcome)
	}
	if failed > 0 {
		return fmt.Errorf("%d secrets cannot be used", failed)
	}
	return nil
}
