// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/authz"
	synchttp "github.com/OWNER/bothy/services/server/internal/sync/adapters/httpapi"
	syncjobs "github.com/OWNER/bothy/services/server/internal/sync/adapters/jobs"
	syncpg "github.com/OWNER/bothy/services/server/internal/sync/adapters/postgres"
	syncapp "github.com/OWNER/bothy/services/server/internal/sync/app"
)

type syncModule struct {
	events      *syncpg.Events
	appender    *syncapp.Appender
	tail        *syncapp.Tail
	catchUp     *syncapp.CatchUp
	snapshot    *syncapp.Snapshot
	readStates  *syncapp.ReadStates
	idempotency *syncapp.Idempotency
	maintenance *syncapp.Maintenance
	http        *synchttp.Handlers
}

// newLog makes the part of sync that everything below it writes through.
func (p *process) newLog() *syncModule {
	events := syncpg.NewEvents(p.db)
	return &syncModule{
		events:   events,
		appender: syncapp.NewAppender(p.config.Sync.Append, p.instance.service, events, authz.DecidedVersion),
	}
}

// buildSync completes the module on top of the modules it reads from.
func (p *process) buildSync(context.Context) error {
	m, c := p.sync, p.config.Sync
	m.tail = syncapp.NewTail(c.Tail, m.events, p.db.Barrier(), p.authz.service, syncpg.NewWaker(p.db, "bothy-tail"), p.clock, p.log)
	m.catchUp = syncapp.NewCatchUp(c.CatchUp, m.events, p.authz.service, p.instance.service, p.db.Barrier())
	m.readStates = syncapp.NewReadStates(c.ReadStates, p.units, p.authz.service, p.chat.threads, p.messaging.port,
		syncpg.NewReadStates(p.db), m.appender)
	m.idempotency = syncapp.NewIdempotency(c.Idempotency, syncpg.NewKeys(p.db), p.units)
	m.maintenance = syncapp.NewMaintenance(c.Partitions, p.units, m.events)
	m.snapshot = syncapp.NewSnapshot(c.Snapshot, syncapp.SnapshotDeps{
		Units: p.units, Barrier: p.db.Barrier(), Authorizer: p.authz.service, Rights: p.authz.service, Instance: p.instance.service,
		Versions: p.instance.service, Sources: p.snapshotSources(), Threads: p.chat.threads, ReadStates: m.readStates, Clock: p.clock,
	})
	m.http = synchttp.New(synchttp.Deps{
		Snapshot: m.snapshot, ReadStates: m.readStates, Events: syncapp.NewEvents(p.authz.service, p.authz.service, m.catchUp, m.tail),
	})
	syncjobs.Register(p.jobs, syncjobs.Work{Clock: p.clock, Maintenance: m.maintenance, Idempotency: m.idempotency}, c.Partitions.Interval, c.CleanupInterval)
	return nil
}
