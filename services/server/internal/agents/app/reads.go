// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ByID implements agents.Agents with the stored rows.
func (s *Service) ByID(ctx context.Context, list []ids.ID) (map[ids.ID]agents.Agent, error) {
	rows, err := s.d.Rows.ByID(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	if len(rows) == 0 {
		return map[ids.ID]agents.Agent{}, nil
	}
	found := make([]ids.ID, 0, len(rows))
	for id := range rows {
		found = append(found, id)
	}
	principals, err := s.d.Directory.ByID(ctx, found)
	if err != nil {
		return nil, fmt.Errorf("read the principals of agents: %w", err)
	}
	out := make(map[ids.ID]agents.Agent, len(rows))
	for id, r := range rows {
		out[id] = port(r, principals[id].Active())
	}
	return out, nil
}

func port(r Record, active bool) agents.Agent {
	a := agents.Agent{
		ID: r.ID, Active: active, BillingMode: r.BillingMode, HolderID: r.HolderID, ToolClass: r.ToolClass,
		MaxConcurrent: r.MaxConcurrent, MaxTriggerAge: r.MaxTriggerAge, UntrustedContext: r.UntrustedContext,
		AllowedModels: r.AllowedModels, Presence: string(r.Presence), ReportedBillingMode: r.Report.BillingMode,
		ReportedToolClass: r.Report.ToolClass, LastHeartbeatAt: r.LastHeartbeatAt, ActiveRuns: r.Report.Details.ActiveRuns,
	}
	if c := r.Report.Details.Capabilities; c != nil {
		a.SteersFollowups = c.Followups == "steer"
	}
	return a
}

// Policies tells the module authz how agents are paid for. It is apart from Service, because
// authz needs it before there is an authorizer to build the use cases with.
type Policies struct {
	rows   Repository
	active func(ctx context.Context, list []ids.ID) (map[ids.ID]bool, error)
}

// NewPolicies makes the source; active tells which principals are active.
func NewPolicies(rows Repository, active func(ctx context.Context, list []ids.ID) (map[ids.ID]bool, error)) *Policies {
	return &Policies{rows: rows, active: active}
}

// AgentPolicies implements authz.AgentPolicySource.
func (p *Policies) AgentPolicies(ctx context.Context, list []ids.ID) ([]authz.AgentPolicy, error) {
	rows, err := p.rows.ByID(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read the policies of agents: %w", err)
	}
	active, err := p.active(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read which agents are active: %w", err)
	}
	out := make([]authz.AgentPolicy, 0, len(rows))
	for _, id := range list {
		if r, ok := rows[id]; ok {
			out = append(out, policy(r, active[id]))
		}
	}
	return out, nil
}

// PersonalAgents implements authz.AgentPolicySource.
func (p *Policies) PersonalAgents(ctx context.Context) ([]authz.AgentPolicy, error) {
	rows, err := p.rows.Personal(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the personal agents: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	list := make([]ids.ID, len(rows))
	for i, r := range rows {
		list[i] = r.ID
	}
	active, err := p.active(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read which agents are active: %w", err)
	}
	var out []authz.AgentPolicy
	for _, r := range rows {
		if active[r.ID] {
			out = append(out, policy(r, true))
		}
	}
	return out, nil
}

func policy(r Record, active bool) authz.AgentPolicy {
	return authz.AgentPolicy{AgentID: r.ID, BillingMode: r.BillingMode, HolderID: r.HolderID, Active: active}
}
