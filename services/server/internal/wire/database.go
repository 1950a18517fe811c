// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/platform/lifecycle"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
)

// store is the database of the installation, with the cluster that this process supervises
// for it, if it does.
type store struct {
	config   *Config
	secrets  *secrets.Provider
	log      *slog.Logger
	embedded *pg.Embedded
	// foreign is the cluster that another process supervises, for commands beside a server.
	foreign *pg.Address
}

// startEmbedded starts the cluster when the configuration says so. The caller stops it.
func (s *store) startEmbedded(ctx context.Context) error {
	if s.config.PG.Mode != pg.ModeEmbedded || s.config.PG.DSN != "" {
		return nil
	}
	cluster, err := pg.StartEmbedded(ctx, s.config.Embedded, s.log)
	if err != nil {
		return fmt.Errorf("start the embedded database: %w", err)
	}
	s.embedded = cluster
	s.config.PG.Host, s.config.PG.Port = cluster.Host(), cluster.Port()
	return nil
}

// reachEmbedded is startEmbedded for commands: a cluster that a server already supervises is
// used as it is.
func (s *store) reachEmbedded(ctx context.Context) error {
	err := s.startEmbedded(ctx)
	if !errors.Is(err, pg.ErrSupervised) {
		return err
	}
	address, err := pg.FindEmbedded(s.config.Embedded)
	if err != nil {
		return fmt.Errorf("find the running database: %w", err)
	}
	s.foreign = &address
	s.config.PG.Host, s.config.PG.Port = address.Host, address.Port
	return nil
}

func (s *store) stopEmbedded(ctx context.Context) error {
	if s.embedded == nil {
		return nil
	}
	return s.embedded.Stop(ctx)
}

// open connects as the role of the server, waiting for a database that is still starting.
func (s *store) open(ctx context.Context, clk clock.Clock) (*pg.DB, error) {
	if s.config.PG.DSN == "" {
		password, err := s.secrets.Resolve("database.password_ref", s.config.PG.PasswordRef)
		if err != nil {
			return nil, fmt.Errorf("resolve the password of the database: %w", err)
		}
		s.config.PG.Password = password.Reveal()
	}
	var db *pg.DB
	err := lifecycle.WaitFor(ctx, clk, s.config.Lifecycle.DependencyWait, "database", func(ctx context.Context) (err error) {
		db, err = pg.Open(ctx, s.config.PG, s.log)
		return err
	})
	return db, err
}

// passwords are those of the roles, as they are set at bootstrap.
func (s *store) passwords() (map[string]string, error) {
	refs := map[string]struct{ key, ref string }{
		pg.RoleOwner:   {"database.owner_password_ref", s.config.Database.OwnerPasswordRef},
		pg.RoleApp:     {"database.password_ref", s.config.PG.PasswordRef},
		pg.RoleMaint:   {"database.maint_password_ref", s.config.Database.MaintPasswordRef},
		pg.RoleBackup:  {"database.backup_password_ref", s.config.Database.BackupPasswordRef},
		pg.RoleMonitor: {"database.monitor_password_ref", s.config.Database.MonitorPasswordRef},
	}
	out := make(map[string]string, len(refs))
	for role, r := range refs {
		value, err := s.secrets.Resolve(r.key, r.ref)
		if err != nil {
			return nil, fmt.Errorf("resolve the password of %s: %w", role, err)
		}
		out[role] = value.Reveal()
	}
	return out, nil
}

// adminDSN connects as the superuser to the database postgres.
func (s *store) adminDSN() (string, error) {
	switch {
	case s.embedded != nil:
		return s.embedded.AdminDSN(), nil
	case s.foreign != nil:
		return s.foreign.AdminDSN(), nil
	}
	password, err := s.secrets.Resolve("migrate.bootstrap_password_ref", s.config.Database.BootstrapPasswordRef)
	if err != nil {
		return "", fmt.Errorf("resolve the password of the superuser: %w", err)
	}
	return s.dsn(s.config.Database.BootstrapUser, password.Reveal(), "postgres"), nil
}

// ownerDSN connects as the role that owns the schema.
func (s *store) ownerDSN() (string, error) {
	if s.config.Database.OwnerDSN != "" {
		return s.config.Database.OwnerDSN, nil
	}
	password, err := s.secrets.Resolve("database.owner_password_ref", s.config.Database.OwnerPasswordRef)
	if err != nil {
		return "", fmt.Errorf("resolve the password of the owner: %w", err)
	}
	return s.dsn(pg.RoleOwner, password.Reveal(), s.config.PG.Name), nil
}

func (s *store) dsn(user, password, database string) string {
	c := s.config.PG
	c.User, c.Password, c.Name = user, password, database
	return c.ConnString()
}

// errSchemaOld tells the operator what to do; the server does not migrate by itself, because
// several nodes would do it at once and a failing step would restart for ever.
var errSchemaOld = errors.New("the database is older than this server; run: bothy migrate up")

// checkSchema refuses a database whose schema is older than the embedded steps.
func checkSchema(ctx context.Context, db *pg.DB, newest int64) error {
	have, err := pg.SchemaVersion(ctx, db.Querier(ctx))
	if err != nil {
		return fmt.Errorf("read the version of the schema: %w (%w)", errSchemaOld, err)
	}
	if have < newest {
		return fmt.Errorf("schema %d, needed is %d: %w", have, newest, errSchemaOld)
	}
	return nil
}
