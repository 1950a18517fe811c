// SPDX-License-Identifier: Apache-2.0

// Package agents is the port of the module agents: the agents of the team, whether they are
// there, and where each has got to in the events addressed to it.
package agents

import (
	"context"
	"encoding/json"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The billing modes: who pays for what an agent does.
const (
	BillingPersonal     = "personal"
	BillingOrganization = "organization"
	BillingLocal        = "local"
)

// Agent is what other modules need to know of an agent.
type Agent struct {
	ID            ids.ID
	Active        bool
	BillingMode   string
	HolderID      ids.ID
	ToolClass     string
	MaxConcurrent int
	// AllowedModels are the models a run may name; empty for any.
	AllowedModels []string
	// SteersFollowups says that the adapter takes further orders up in the middle of a turn.
	SteersFollowups bool
	// MaxTriggerAge is how old an order may be when it is delivered; zero means the
	// default of the installation.
	MaxTriggerAge    time.Duration
	UntrustedContext string
	// Presence is unknown, online, degraded or offline.
	Presence string
	// ReportedBillingMode and ReportedToolClass are what the adapter found; empty when not
	// reported.
	ReportedBillingMode, ReportedToolClass string
	LastHeartbeatAt                        *time.Time
	// ActiveRuns are the runs the adapter says it works on; nil when it does not say.
	ActiveRuns []ids.ID
}

// Agents reads agents. It does not authorize.
type Agents interface {
	// ByID reads the named ones; unknown IDs are left out.
	ByID(ctx context.Context, list []ids.ID) (map[ids.ID]Agent, error)
	// SnapshotAgents gives the payloads of the visible agents for the snapshot.
	SnapshotAgents(ctx context.Context, after ids.ID, limit int) ([]SnapshotItem, error)
}

// SnapshotItem is one agent as in the contract.
type SnapshotItem struct {
	ID      ids.ID
	Payload json.RawMessage
}

// Heartbeat is the report of an adapter; the raw form is decoded strictly by the module, so
// that REST and the gateway share one decoder.
type Heartbeat = json.RawMessage

// Presence takes heartbeats.
type Presence interface {
	// Heartbeat authorizes the actor of the context as the agent itself and applies the
	// report; faults are validation_failed with pointers.
	Heartbeat(ctx context.Context, agent ids.ID, report Heartbeat) error
}

// Consumers keeps the durable place of each agent in the event log. Holders fence each
// other: the newest takes over and the older one's saves fail.
type Consumers interface {
	// TakeOver makes the session the holder and returns the acknowledged position. The first
	// connection ever starts at head.
	TakeOver(ctx context.Context, agent, session ids.ID, head int64) (acked int64, err error)
	// Save stores the acknowledged position for the holder; held is false when another
	// session has taken over.
	Save(ctx context.Context, agent, session ids.ID, acked int64) (held bool, err error)
}

// AgentDisabled is published in the transaction that disables an agent.
type AgentDisabled struct{ AgentID ids.ID }
