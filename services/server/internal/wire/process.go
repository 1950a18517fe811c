// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/egress"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/ratelimit"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
)

// process is everything that one process is made of. It is built once, from the bottom of
// the dependencies to the top; nothing in it is replaced afterwards.
type process struct {
	config    *Config
	log       *slog.Logger
	clock     clock.Clock
	telemetry *otel.Telemetry
	meter     otel.Meter
	secrets   *secrets.Provider
	limiter   *ratelimit.Limiter
	egress    *egress.Client
	observer  Observer

	db       *pg.DB
	registry *txn.Registry
	units    *pg.Units
	jobs     *jobs.Registry
	queue    *queue
	signals  *signals

	instance  *instanceModule
	audit     *auditModule
	authz     *authzModule
	identity  *identityModule
	chat      *chatModule
	messaging *messagingModule
	agents    *agentsModule
	runs      *runsModule
	sync      *syncModule
	gateway   *gatewayModule
}

// Observer is told what the process answered and did. Tests keep their accounts with it.
type Observer interface {
	Answer(operation string, status int, code string)
	Op(op, code string)
	Event(eventType string)
	Job(kind string)
	Closed(code int)
}

// nobody observes in production.
type nobody struct{}

func (nobody) Answer(string, int, string) {}
func (nobody) Op(string, string)          {}
func (nobody) Event(string)               {}
func (nobody) Job(string)                 {}
func (nobody) Closed(int)                 {}

// build constructs every module on an open database. The order is that of the dependencies:
// a module gets only what stands below it, and the sources that a lower module declared are
// handed down once the higher one exists.
func (p *process) build(ctx context.Context) error {
	p.registry = txn.NewRegistry()
	p.units = pg.NewUnits(p.db, p.registry, p.clock, pg.UnitConfig{
		Maintenance: p.config.HTTP.ReadOnly, MaintenanceRetryAfter: p.config.HTTP.MaintenanceRetryAfter,
		SharedDatabase: p.config.Lifecycle.Role != "all",
	})
	p.jobs = jobs.NewRegistry()
	p.queue = &queue{}
	p.signals = &signals{}
	steps := []struct {
		module string
		build  func(ctx context.Context) error
	}{
		{"instance", p.buildInstance},
		{"audit", p.buildAudit},
		{"authz", p.buildAuthz},
		{"identity", p.buildIdentity},
		{"chat", p.buildChat},
		{"agents", p.buildAgents},
		{"messaging", p.buildMessaging},
		{"runs", p.buildRuns},
		{"sync", p.buildSync},
		{"gateway", p.buildGateway},
	}
	for _, step := range steps {
		if err := step.build(ctx); err != nil {
			return fmt.Errorf("build %s: %w", step.module, err)
		}
	}
	p.subscribe()
	p.registry.Seal()
	return nil
}

// subscribe registers hooks and subscribers, in the order in which they are called. The
// golden list beside the tests of this package shows every change of it.
func (p *process) subscribe() {
	p.registry.SetHooks(txn.Hooks{
		RightsBegin: p.authz.service.RightsBegin,
		RightsCheck: p.authz.service.RightsCheck,
		Log:         p.sync.appender.NumberEvents,
		Audit:       p.audit.recorder.Append,
		Committed:   p.sync.appender.Committed,
	})
	if p.telemetry.Enabled() {
		p.registry.SetWatch(p.telemetry.WatchSubscriber)
	}
	p.subscribeModules()
}

// ensureKeys makes the keys that are missing: those that sign, and those of pseudonyms.
func (p *process) ensureKeys(ctx context.Context) error {
	if err := p.audit.recorder.EnsureIPKeys(system(ctx)); err != nil {
		return fmt.Errorf("make the keys of address pseudonyms: %w", err)
	}
	if err := p.instance.service.EnsureKeys(system(ctx)); err != nil {
		return fmt.Errorf("make the signing keys: %w", err)
	}
	return nil
}

// signals hands ephemeral events to the gateway. Modules below the gateway get it before the
// gateway exists; what is published earlier has nobody to hear it.
type signals struct{ to eventlog.EphemeralPublisher }

// Publish implements eventlog.EphemeralPublisher.
func (s *signals) Publish(ctx context.Context, e eventlog.Ephemeral) {
	if s.to != nil {
		s.to.Publish(ctx, e)
	}
}

// queue hands jobs to the runtime, which is made after the modules that insert them have
// registered their kinds.
type queue struct{ runtime *jobs.Runtime }

// InsertTx adds a job in the running unit.
func (q *queue) InsertTx(ctx context.Context, args jobs.Args, o jobs.InsertOptions) error {
	if q.runtime == nil {
		return fmt.Errorf("insert job %s: the queue is not open", args.Kind())
	}
	return q.runtime.InsertTx(ctx, args, o)
}

// system is the context of work that no request started.
func system(ctx context.Context) context.Context { return actor.With(ctx, actor.System()) }
