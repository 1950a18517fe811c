// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/adapters/filesink"
	audithttp "github.com/OWNER/bothy/services/server/internal/audit/adapters/httpapi"
	auditjobs "github.com/OWNER/bothy/services/server/internal/audit/adapters/jobs"
	auditmetrics "github.com/OWNER/bothy/services/server/internal/audit/adapters/otelmetrics"
	auditpg "github.com/OWNER/bothy/services/server/internal/audit/adapters/postgres"
	auditapp "github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/jsoncanon"
	"github.com/OWNER/bothy/services/server/internal/platform/lifecycle"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

type auditModule struct {
	recorder *auditapp.Service
	verify   *auditapp.ChainVerify
	http     audithttp.Handlers
}

func (p *process) buildAudit(context.Context) error {
	config := p.config.Modules.Audit.App
	wrap, err := p.secrets.Resolve("audit.ip_key_wrap_ref", p.config.Modules.Audit.KeyRef)
	if err != nil {
		return fmt.Errorf("resolve the key of the address pseudonyms: %w", err)
	}
	if config.IPKeyWrap, err = decodeKey(wrap.Reveal()); err != nil {
		return err
	}
	folder, err := filesink.Parse(p.config.Modules.Audit.CheckpointSink)
	if err != nil {
		return fmt.Errorf("audit.checkpoint_sink: %w", err)
	}
	var sink auditapp.Sink
	if folder != "" {
		sink = filesink.New(folder)
	}
	store := auditpg.New(p.db)
	service := auditapp.New(config, auditapp.Deps{
		Store: store, Units: p.units, Clock: p.clock, Counters: p.instance.service, Instance: p.instance.service,
		Keys: p.instance.service, Public: p.instance.service, Sink: sink, Metrics: auditmetrics.New(p.meter, p.clock), Canonicalize: jsoncanon.Transform, Log: p.log,
	})
	p.audit = &auditModule{recorder: service, verify: service.ChainVerify(), http: audithttp.Handlers{Audit: service}}
	auditjobs.Register(p.jobs, p.audit.verify, p.config.Modules.Audit.CheckpointInterval)
	auditjobs.RegisterTrim(p.jobs, service.Trim(store, maintenance{p}), p.config.Modules.Audit.RetentionInterval)
	return nil
}

// maintenance connects as the role of retention, which alone may remove rows of the record. The
// server itself holds no connection that could.
type maintenance struct{ p *process }

// Open implements auditapp.Maintenance.
func (m maintenance) Open(ctx context.Context) (txn.UnitOfWork, func(), error) {
	c := m.p.config.PG
	c.AppName, c.MaxConns, c.CommitMode, c.Metrics = "bothy-maint", maintConns, pg.CommitSynchronous, nil
	switch {
	case m.p.config.Database.MaintDSN != "":
		c.DSN = m.p.config.Database.MaintDSN
	default:
		password, err := m.p.secrets.Resolve("database.maint_password_ref", m.p.config.Database.MaintPasswordRef)
		if err != nil {
			return nil, nil, fmt.Errorf("resolve the password of %s: %w", pg.RoleMaint, err)
		}
		c.User, c.Password = pg.RoleMaint, password.Reveal()
	}
	var db *pg.DB
	// The role has two connections, and the server takes a moment to notice that one has ended.
	err := lifecycle.WaitFor(ctx, m.p.clock, maintPatience, "maintenance role", func(ctx context.Context) (err error) {
		db, err = pg.Open(ctx, c, m.p.log)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	units := pg.NewUnits(db, m.p.registry, m.p.clock, pg.UnitConfig{
		Maintenance: m.p.config.HTTP.ReadOnly, MaintenanceRetryAfter: m.p.config.HTTP.MaintenanceRetryAfter,
	})
	return units, db.Close, nil
}

// maintPatience is how long a run waits for a connection of the role.
const maintPatience = 10 * time.Second

// maintConns is the least that a pool may have; units run one after the other, and the role has
// two connections.
const maintConns = 4

// ipKeyBytes is the size of the wrapping key.
const ipKeyBytes = 32

// decodeKey reads a secret of the form that "secrets init" writes: random bytes in base64url.
func decodeKey(text string) ([]byte, error) {
	key, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(key) != ipKeyBytes {
		return nil, errors.New("audit.ip_key_wrap_ref: the secret must be 32 bytes in unpadded base64url")
	}
	return key, nil
}
