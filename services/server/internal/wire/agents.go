// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"time"

	agentshttp "github.com/OWNER/bothy/services/server/internal/agents/adapters/httpapi"
	agentspg "github.com/OWNER/bothy/services/server/internal/agents/adapters/postgres"
	agentsapp "github.com/OWNER/bothy/services/server/internal/agents/app"
	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

type agentsModule struct {
	service   *agentsapp.Service
	tracker   *agentsapp.Tracker
	consumers *agentsapp.Consumers
	http      *agentshttp.Handlers
}

func (p *process) buildAgents(context.Context) error {
	rows, present := agentspg.NewAgents(p.db), agentshttp.Presenter{}
	p.authz.service.SetSources(authzapp.Sources{Agents: agentsapp.NewPolicies(rows, p.activePrincipals)})
	cursors := agentspg.NewCursors(p.db)
	m := &agentsModule{consumers: agentsapp.NewConsumers(p.units, p.authz.service, cursors)}
	m.tracker = agentsapp.NewTracker(agentsapp.TrackerDeps{
		Config: p.config.Modules.Agents, Clock: p.clock, Units: p.units, Authorizer: p.authz.service, Audit: p.audit.recorder,
		Publisher: p.signals, Rows: rows, Present: present, Log: p.log,
	})
	m.service = agentsapp.New(agentsapp.Deps{
		Units: p.units, Authorizer: p.authz.service, Audit: p.audit.recorder, Log: p.sync.appender, Directory: p.identity.service,
		Principals: p.identity.service, Tokens: p.identity.service, Rows: rows, Present: present, Tracker: m.tracker,
		Holders: p.authz.service, Cursors: cursors, Head: func(ctx context.Context) (int64, error) {
			return p.instance.service.Current(ctx, instance.CounterEventSeq)
		},
	})
	p.authz.service.SetRemedies(authzapp.Remedies{Switch: m.service})
	m.http = agentshttp.New(m.service, m.tracker, p.clock, p.heartbeatInterval())
	p.agents = m
	return nil
}

func (p *process) heartbeatInterval() time.Duration { return p.config.Gateway.HeartbeatInterval }

// activePrincipals tells which principals are active, below the authorizer.
func (p *process) activePrincipals(ctx context.Context, list []ids.ID) (map[ids.ID]bool, error) {
	found, err := p.identity.sources.Principals(ctx, list)
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]bool, len(found))
	for _, principal := range found {
		out[principal.ID] = principal.Active
	}
	return out, nil
}
