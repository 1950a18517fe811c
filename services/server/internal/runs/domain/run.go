// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// State is where a run stands.
type State string

// The states. The first three are active, the others final.
const (
	Queued       State = "queued"
	Running      State = "running"
	WaitingInput State = "waiting_input"
	Completed    State = "completed"
	Failed       State = "failed"
	Cancelled    State = "cancelled"
)

// Active reports whether the run can still change.
func (s State) Active() bool { return s == Queued || s == Running || s == WaitingInput }

// Started reports whether an agent works on the run.
func (s State) Started() bool { return s == Running || s == WaitingInput }

// The kinds of orders that begin a run.
const (
	TriggerMessage  = "message"
	TriggerFollowup = "followup"
	TriggerChain    = "chain"
)

// The ways a follow-up is taken up.
const (
	ModeQueue = "queue"
	ModeSteer = "steer"
)

// Reasons of an end.
const (
	ReasonDone             = "done"
	ReasonMaxTokens        = "max_tokens"
	ReasonMaxTurns         = "max_turns"
	ReasonRefusal          = "refusal"
	ReasonAgentError       = "agent_error"
	ReasonAgentRejected    = "agent_rejected"
	ReasonAgentUnavailable = "agent_unavailable"
	ReasonExpired          = "expired"
	ReasonPolicyDenied     = "policy_denied"
	ReasonInterrupted      = "interrupted"
	ReasonStale            = "stale"
	ReasonTokenRejected    = "token_rejected"
	ReasonRequested        = "requested"
	ReasonCancelTimeout    = "cancel_timeout"
	ReasonAccessRevoked    = "access_revoked"
	ReasonUserDisabled     = "user_disabled"
	ReasonAgentDisabled    = "agent_disabled"
	ReasonChannelReadOnly  = "channel_read_only"
	ReasonMessageDeleted   = "message_deleted"
	ReasonParentCancelled  = "parent_cancelled"
)

// Run is one order that an agent carries out.
type Run struct {
	ID               ids.ID
	AgentID          ids.ID
	ThreadID         ids.ID
	ChannelID        ids.ID
	SpaceID          ids.ID
	TriggerKind      string
	TriggerMessageID ids.ID
	// TriggeredBy is the person at the root of the order, also in a chain.
	TriggeredBy ids.ID
	ParentRunID ids.ID
	RootRunID   ids.ID
	ChainDepth  int
	// Chain are the agents above, nearest last.
	Chain       []ids.ID
	BillingMode string

	State     State
	EndReason string
	// DocVersion counts every change of the document, AgentDocVersion the last one that the
	// agent made.
	DocVersion, AgentDocVersion int64
	Document                    Document
	Output                      string
	// OutputLength is in code points.
	OutputLength    int
	OutputMessageID ids.ID
	AnchorMessageID ids.ID

	FollowupsPending int
	FollowupMode     string

	QueuedAt          time.Time
	DeliveredAt       *time.Time
	StartedAt         *time.Time
	LastActivityAt    time.Time
	StallWarnedAt     *time.Time
	EndedAt           *time.Time
	CancelRequestedAt *time.Time
	CancelRequestedBy ids.ID
	CancelReason      string
	ErrorCode         string
	ErrorMessage      string
}

// NewRun describes a run to be made.
type NewRun struct {
	ID, AgentID, ThreadID, ChannelID, SpaceID ids.ID
	TriggerKind                               string
	TriggerMessageID, TriggeredBy             ids.ID
	BillingMode                               string
	FollowupMode                              string
	// Parent is set in a chain.
	Parent *Run
}

// Queue makes a run that waits for its agent.
func Queue(n NewRun, now time.Time) Run {
	r := Run{
		ID: n.ID, AgentID: n.AgentID, ThreadID: n.ThreadID, ChannelID: n.ChannelID, SpaceID: n.SpaceID, TriggerKind: n.TriggerKind,
		TriggerMessageID: n.TriggerMessageID, TriggeredBy: n.TriggeredBy, RootRunID: n.ID, BillingMode: n.BillingMode,
		FollowupMode: n.FollowupMode, State: Queued, DocVersion: 1, QueuedAt: now, LastActivityAt: now, Chain: []ids.ID{},
	}
	if p := n.Parent; p != nil {
		r.ParentRunID, r.RootRunID, r.TriggeredBy = p.ID, p.RootRunID, p.TriggeredBy
		r.ChainDepth = p.ChainDepth + 1
		r.Chain = append(append(r.Chain, p.Chain...), p.AgentID)
	}
	return r
}
