// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs"
	runshttp "github.com/OWNER/bothy/services/server/internal/runs/adapters/httpapi"
	runsjobs "github.com/OWNER/bothy/services/server/internal/runs/adapters/jobs"
	runspg "github.com/OWNER/bothy/services/server/internal/runs/adapters/postgres"
	runsapp "github.com/OWNER/bothy/services/server/internal/runs/app"
)

type runsModule struct {
	service *runsapp.Service
	updates *runshttp.Updates
	http    *runshttp.Handlers
}

var (
	_ runs.Delivery    = (*runsapp.Service)(nil)
	_ runs.Reads       = (*runsapp.Service)(nil)
	_ runs.RunningRuns = (*runsapp.Service)(nil)
	_ runs.Updates     = (*runshttp.Updates)(nil)
)

func (p *process) buildRuns(context.Context) error {
	service := runsapp.New(runsapp.Deps{
		Config: p.config.Modules.Runs, Clock: p.clock, Units: p.units, Authorizer: p.authz.service, Rights: p.authz.service,
		Audit: p.audit.recorder, Log: p.sync.appender, Publisher: p.signals, Instance: p.instance.service, Keys: p.instance.service,
		Structure: p.chat.structure, Threads: p.chat.threads, Messages: p.messaging.port, Agents: p.agents.service,
		People: people{p.identity.service}, Jobs: runsjobs.Insert(p.queue.InsertTx), Runs: runspg.NewRuns(p.db), Steps: runspg.NewSteps(p.db),
		Followups: runspg.NewFollowups(p.db), Present: runshttp.Presenter{},
	})
	p.runs = &runsModule{service: service, updates: runshttp.NewUpdates(service), http: runshttp.New(service)}
	p.identity.authenticator.BindActingFor(service)
	runsjobs.Register(p.jobs, service, p.config.Modules.Agents.PresenceTimeout)
	return nil
}

// people names members for runs.
type people struct{ directory identity.Directory }

// People implements the port of runs.
func (d people) People(ctx context.Context, list []ids.ID) (map[ids.ID]runsapp.Person, error) {
	found, err := d.directory.ByID(ctx, list)
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]runsapp.Person, len(found))
	for id, one := range found {
		out[id] = runsapp.Person{ID: id, Kind: string(one.Kind), Handle: one.Handle, DisplayName: one.DisplayName, Locale: one.Locale}
	}
	return out, nil
}
