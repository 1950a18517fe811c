// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps the rows of the module agents.
package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/agents/app"
	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Agents implements app.Repository.
type Agents struct{ db *pg.DB }

// NewAgents makes the repository.
func NewAgents(db *pg.DB) *Agents { return &Agents{db: db} }

// Insert implements app.Repository.
func (r *Agents) Insert(ctx context.Context, a domain.Agent) error {
	return sqlcgen.New(pg.Queued(ctx)).AgentInsert(ctx, sqlcgen.AgentInsertParams{
		PrincipalID: a.ID, Description: a.Description, BillingMode: a.BillingMode, CredentialHolderID: a.HolderID.Ptr(), ToolClass: a.ToolClass,
		MaxConcurrentRuns: int16(a.MaxConcurrent), AllowedModels: a.AllowedModels, UntrustedContext: a.UntrustedContext,
		MaxTriggerAgeMs: milliseconds(a.MaxTriggerAge), CreatedAt: a.CreatedAt, CreatedBy: a.CreatedBy,
	})
}

// Configure implements app.Repository.
func (r *Agents) Configure(ctx context.Context, a domain.Agent) error {
	return sqlcgen.New(pg.Queued(ctx)).AgentConfigure(ctx, sqlcgen.AgentConfigureParams{
		PrincipalID: a.ID, Description: a.Description, BillingMode: a.BillingMode, CredentialHolderID: a.HolderID.Ptr(), ToolClass: a.ToolClass,
		MaxConcurrentRuns: int16(a.MaxConcurrent), AllowedModels: a.AllowedModels,
		UntrustedContext: a.UntrustedContext, MaxTriggerAgeMs: milliseconds(a.MaxTriggerAge), Version: a.Version, UpdatedAt: a.UpdatedAt,
	})
}

// Lock implements app.Repository.
func (r *Agents) Lock(ctx context.Context, id ids.ID) (app.Record, error) {
	row, err := sqlcgen.New(r.db.Querier(ctx)).AgentLock(ctx, id)
	if err != nil {
		return app.Record{}, pg.NotFound(err)
	}
	return record(row)
}

// ByID implements app.Repository.
func (r *Agents) ByID(ctx context.Context, list []ids.ID) (map[ids.ID]app.Record, error) {
	if len(list) == 0 {
		return map[ids.ID]app.Record{}, nil
	}
	rows, err := sqlcgen.New(r.db.Querier(ctx)).AgentsByID(ctx, list)
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]app.Record, len(rows))
	for _, row := range rows {
		if out[row.PrincipalID], err = record(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// After implements app.Repository.
func (r *Agents) After(ctx context.Context, after ids.ID, f app.Filter, limit int) ([]app.Record, error) {
	rows, err := sqlcgen.New(r.db.Querier(ctx)).AgentsAfter(ctx, sqlcgen.AgentsAfterParams{
		After: after, PresenceState: f.Presence, BillingMode: f.BillingMode, MaxRows: int32(limit),
	})
	if err != nil {
		return nil, err
	}
	return records(rows)
}

// Present implements app.Repository.
func (r *Agents) Present(ctx context.Context) ([]app.Record, error) {
	rows, err := sqlcgen.New(r.db.Querier(ctx)).AgentsPresent(ctx)
	if err != nil {
		return nil, err
	}
	return records(rows)
}

// Personal implements app.Repository.
func (r *Agents) Personal(ctx context.Context) ([]app.Record, error) {
	rows, err := sqlcgen.New(r.db.Querier(ctx)).AgentsPersonal(ctx)
	if err != nil {
		return nil, err
	}
	return records(rows)
}

// SaveReport implements app.Repository.
func (r *Agents) SaveReport(ctx context.Context, id ids.ID, state domain.State, at time.Time, report domain.Report) error {
	details, err := json.Marshal(report.Details)
	if err != nil {
		return fmt.Errorf("encode the details of a report: %w", err)
	}
	p := sqlcgen.AgentReportParams{
		PrincipalID: id, PresenceState: string(state), LastHeartbeatAt: &at, ReportedBillingMode: optional(report.BillingMode),
		ReportedToolClass: optional(report.ToolClass), ReportedModes: report.Modes, ReportedRuntimeVersion: optional(report.RuntimeVersion),
		ReportedDetails: details,
	}
	if report.Evidence != nil {
		if p.ReportedEvidence, err = json.Marshal(report.Evidence); err != nil {
			return fmt.Errorf("encode the evidence of a report: %w", err)
		}
	}
	return sqlcgen.New(pg.Queued(ctx)).AgentReport(ctx, p)
}

func records(rows []sqlcgen.Agent) ([]app.Record, error) {
	out := make([]app.Record, 0, len(rows))
	for _, row := range rows {
		r, err := record(row)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func record(row sqlcgen.Agent) (app.Record, error) {
	r := app.Record{
		Agent: domain.Agent{
			ID: row.PrincipalID, Description: row.Description, Billing: domain.Billing{BillingMode: row.BillingMode, HolderID: ids.Deref(row.CredentialHolderID)},
			ToolClass: row.ToolClass, MaxConcurrent: int(row.MaxConcurrentRuns), AllowedModels: row.AllowedModels,
			UntrustedContext: row.UntrustedContext, Version: row.Version, CreatedAt: row.CreatedAt, CreatedBy: row.CreatedBy, UpdatedAt: row.UpdatedAt,
		},
		Presence: domain.State(row.PresenceState), LastHeartbeatAt: row.LastHeartbeatAt,
		Report: domain.Report{
			State: domain.State(row.PresenceState), BillingMode: value(row.ReportedBillingMode), ToolClass: value(row.ReportedToolClass),
			Modes: row.ReportedModes, RuntimeVersion: value(row.ReportedRuntimeVersion),
		},
	}
	if row.MaxTriggerAgeMs != nil {
		r.MaxTriggerAge = time.Duration(*row.MaxTriggerAgeMs) * time.Millisecond
	}
	if err := json.Unmarshal(row.ReportedDetails, &r.Report.Details); err != nil {
		return r, fmt.Errorf("decode the details of agent %s: %w", row.PrincipalID, err)
	}
	if len(row.ReportedEvidence) > 0 {
		if err := json.Unmarshal(row.ReportedEvidence, &r.Report.Evidence); err != nil {
			return r, fmt.Errorf("decode the evidence of agent %s: %w", row.PrincipalID, err)
		}
	}
	return r, nil
}

func milliseconds(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
