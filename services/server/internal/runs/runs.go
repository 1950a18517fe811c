// SPDX-License-Identifier: Apache-2.0

// Package runs is the port of the module runs: what agents do when they are set to work.
package runs

import (
	"context"
	"encoding/json"

	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// State is where a run stands.
type State string

// The states. The first three are active; the others are final.
const (
	StateQueued       State = "queued"
	StateRunning      State = "running"
	StateWaitingInput State = "waiting_input"
	StateCompleted    State = "completed"
	StateFailed       State = "failed"
	StateCancelled    State = "cancelled"
)

// Active reports whether the run can still change.
func (s State) Active() bool {
	return s == StateQueued || s == StateRunning || s == StateWaitingInput
}

// Prepared is an event that may be sent to an agent, with what is read at that moment.
type Prepared struct {
	// Payload is the delivered form with content and token.
	Payload json.RawMessage
	// Refused means that nothing is to be sent and the event counts as handled.
	Refused bool
}

// Delivery prepares events for agents under the rights of the moment of delivery.
type Delivery interface {
	// Prepare checks and completes one stored event of the named type. An error means that
	// it must be tried again and that later events wait.
	Prepare(ctx context.Context, agent ids.ID, eventType string, eventID ids.ID, stored json.RawMessage) (Prepared, error)
}

// Updates applies progress of a run that arrives over the gateway.
type Updates interface {
	// Update decodes the op run.update strictly (run_id, invocation_token, base_version,
	// patch?, append?, consumed?), verifies the token for the agent of the context, applies
	// the progress and returns the answer of the operation updateRun.
	Update(ctx context.Context, body json.RawMessage) (json.RawMessage, error)
}

// SnapshotItem is one run as in the contract, with its place and agent.
type SnapshotItem struct {
	ID      ids.ID
	AgentID ids.ID
	Place   eventlog.Place
	Payload json.RawMessage
}

// Reads gives runs for the snapshot and for new focus. It does not authorize.
type Reads interface {
	// ActiveInChannels gives RunSummary of the active runs in the channels.
	ActiveInChannels(ctx context.Context, channels []ids.ID, after ids.ID, limit int) ([]SnapshotItem, error)
	// Snapshots gives the payload of run.updated with a snapshot for each active run of a
	// thread.
	Snapshots(ctx context.Context, thread ids.ID) ([]SnapshotItem, error)
	// Snapshot gives the same for one run.
	Snapshot(ctx context.Context, run ids.ID) (SnapshotItem, error)
}

// RunningRuns tells which runs may go on while the instance takes no other writes.
type RunningRuns interface {
	// Running reports whether an agent is at work on the run; an unknown run is not running.
	Running(ctx context.Context, run ids.ID) (bool, error)
}

// Updated is the payload of the ephemeral event run.updated with patches, which the gateway
// gathers per run.
type Updated struct {
	RunID       ids.ID  `json:"run_id"`
	ThreadID    ids.ID  `json:"thread_id"`
	BaseVersion int64   `json:"base_version"`
	Version     int64   `json:"version"`
	Patches     []Patch `json:"patches"`
}

// Patch is one stored step of progress.
type Patch struct {
	Version int64           `json:"version"`
	Patch   json.RawMessage `json:"patch,omitempty"`
	Append  []Append        `json:"append,omitempty"`
}

// Append is text added to an output at an offset in code points.
type Append struct {
	Target string `json:"target"`
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}
