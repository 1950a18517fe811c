// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Record is an agent as stored: how it is configured and what was reported last.
type Record struct {
	domain.Agent
	Presence        domain.State
	LastHeartbeatAt *time.Time
	Report          domain.Report
	// ModeSince is when the adapter began to report the payment it reports now, zero when
	// this process has not heard it.
	ModeSince time.Time
}

// Filter narrows a list; nil does not.
type Filter struct{ Presence, BillingMode *string }

// Repository keeps agents.
type Repository interface {
	// Insert and Configure queue their statement.
	Insert(ctx context.Context, a domain.Agent) error
	Configure(ctx context.Context, a domain.Agent) error
	// Lock reads the row and holds it until the unit ends; not_found without one.
	Lock(ctx context.Context, id ids.ID) (Record, error)
	ByID(ctx context.Context, list []ids.ID) (map[ids.ID]Record, error)
	// After lists in ascending order of ID.
	After(ctx context.Context, after ids.ID, f Filter, limit int) ([]Record, error)
	// Present lists the agents whose stored presence is online or degraded.
	Present(ctx context.Context) ([]Record, error)
	// Personal lists those that spend one person's own plan, by ID.
	Personal(ctx context.Context) ([]Record, error)
	// SaveReport queues presence and report unless the row holds a newer one.
	SaveReport(ctx context.Context, id ids.ID, state domain.State, at time.Time, r domain.Report) error
}

// CursorRepository keeps the places of agents in the event log.
type CursorRepository interface {
	// Begin queues the first place of a new agent.
	Begin(ctx context.Context, agent ids.ID, head int64, now time.Time) error
	TakeOver(ctx context.Context, agent, holder ids.ID, head int64, now time.Time) (acked int64, err error)
	Save(ctx context.Context, agent, holder ids.ID, acked int64, now time.Time) (held bool, err error)
	// MoveAll queues the move of every place to a position and takes it from its holder.
	MoveAll(ctx context.Context, head int64, now time.Time) error
}

// View is an agent with everything that an answer shows of it.
type View struct {
	Record
	Principal identity.Principal
	// Warnings are what the report contradicts.
	Warnings []string
}

// Presenter gives payloads in the form of the contract.
type Presenter interface {
	// Agent is the resource; without runtime it is the payload of agent.updated.
	Agent(v View, runtime bool) any
	// Presence is the payload of agent.presence_changed.
	Presence(agent ids.ID, state domain.State, reportedMode string) any
}
