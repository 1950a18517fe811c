// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// Repository keeps runs. Inserts and saves queue their statement; reads of one run fail with
// not_found when there is none.
type Repository interface {
	Insert(ctx context.Context, r domain.Run) error
	ByID(ctx context.Context, id ids.ID) (domain.Run, error)
	// Lock holds the row until the unit ends.
	Lock(ctx context.Context, id ids.ID) (domain.Run, error)
	// Save writes everything but the output, SaveOutput the output alone.
	Save(ctx context.Context, r domain.Run) error
	SaveOutput(ctx context.Context, r domain.Run) error
	// ForTrigger reads, for the agents, their active run in the thread and any run that the
	// message has begun.
	ForTrigger(ctx context.Context, agents []ids.ID, thread, message ids.ID) ([]domain.Run, error)
	QueuedCounts(ctx context.Context, agents []ids.ID) (map[ids.ID]int, error)
	// StartedCount counts the runs the agent works on and lets no other start of the agent
	// pass before the unit ends.
	StartedCount(ctx context.Context, agent ids.ID) (int, error)
	// ChainCount counts the children of a run and all runs of its root.
	ChainCount(ctx context.Context, parent, root ids.ID) (children, ofRoot int, err error)
	// ActiveChildren lists the runs that a run has begun, in the order of their threads.
	ActiveChildren(ctx context.Context, parent ids.ID) ([]domain.Run, error)
	// ByMessage lists the runs that a message has begun, ended ones as well.
	ByMessage(ctx context.Context, message ids.ID) ([]domain.Run, error)
	ActiveByAgent(ctx context.Context, agent ids.ID) ([]domain.Run, error)
	ActiveByPrincipals(ctx context.Context, principals []ids.ID) ([]domain.Run, error)
	// ActiveByChannels lists in ascending order of ID.
	ActiveByChannels(ctx context.Context, channels []ids.ID, after ids.ID, limit int) ([]domain.Run, error)
	ActiveByThread(ctx context.Context, thread ids.ID) ([]domain.Run, error)
	// ByThread lists newest first, before the given one; zero begins with the newest.
	ByThread(ctx context.Context, thread, before ids.ID, limit int) ([]domain.Run, error)
	// Started lists the runs under way, longest silent first.
	Started(ctx context.Context, limit int) ([]ids.ID, error)
}

// StepRepository keeps the steps of runs.
type StepRepository interface {
	ByKeys(ctx context.Context, run ids.ID, keys []string) (steps map[string]*domain.Step, total int, err error)
	// Newest lists in ascending order of ordinal.
	Newest(ctx context.Context, run ids.ID, limit int) ([]domain.Step, error)
	Save(ctx context.Context, run ids.ID, s domain.Step) error
}

// The states of a follow-up.
const (
	FollowupPending   = "pending"
	FollowupDelivered = "delivered"
	FollowupConsumed  = "consumed"
	FollowupCarried   = "carried"
	FollowupDropped   = "dropped"
)

// Followup is an order that arrived while a run was under way.
type Followup struct {
	ID, RunID, MessageID, AuthorID ids.ID
	Mode, State                    string
	// Position is the number of the message in its thread.
	Position                int64
	CarriedRunID            ids.ID
	CreatedAt               time.Time
	DeliveredAt, ConsumedAt *time.Time
}

// Open reports whether the follow-up still waits to be taken up.
func (f Followup) Open() bool { return f.State == FollowupPending || f.State == FollowupDelivered }

// FollowupRepository keeps follow-ups.
type FollowupRepository interface {
	Insert(ctx context.Context, f Followup) error
	// Open lists what has not been taken up, in the order of the thread.
	Open(ctx context.Context, run ids.ID) ([]Followup, error)
	ByID(ctx context.Context, id ids.ID) (Followup, error)
	ByMessage(ctx context.Context, message ids.ID) ([]Followup, error)
	Save(ctx context.Context, f Followup) error
}

// Jobs puts work off. The job exists exactly when the running unit commits.
type Jobs interface {
	CancelTimeout(ctx context.Context, run ids.ID, at time.Time) error
	QueuedExpiry(ctx context.Context, run ids.ID, at time.Time) error
}

// Person is what a run may know of somebody in the thread.
type Person struct {
	ID                        ids.ID
	Kind, Handle, DisplayName string
	// Locale is set for people.
	Locale string
}

// People names members. The module identity knows them; the wiring brings it in.
type People interface {
	People(ctx context.Context, list []ids.ID) (map[ids.ID]Person, error)
}

// OrderMessage is a message on its way to an agent.
type OrderMessage struct {
	messaging.Message
	Trust domain.Trust
}

// OrderFollowup is a follow-up on its way to an agent.
type OrderFollowup struct {
	Followup
	Message OrderMessage
}

// Token is a signed invocation token.
type Token struct {
	Compact   string
	ExpiresAt time.Time
}

// Invocation is everything an agent is handed with an order.
type Invocation struct {
	Run       domain.Run
	Message   *OrderMessage
	Thread    chat.Thread
	Channel   chat.Channel
	Followups []OrderFollowup
	// Redelivery means that the agent has received the order before.
	Redelivery bool
	Token      Token
}

// FollowupOrder is a further order for a run under way.
type FollowupOrder struct {
	RunID ids.ID
	// FollowupID is zero for a correction of the message that began the run.
	FollowupID ids.ID
	Correction bool
	Message    OrderMessage
	Token      Token
}

// ContextMessage is a message that a run may read.
type ContextMessage struct {
	messaging.Message
	Trust    domain.Trust
	Withheld bool
}

// RunContext is what a run may know.
type RunContext struct {
	Channel      chat.Channel
	Participants []Person
	Messages     []ContextMessage
	// Before is the number below which the next page begins; zero at the beginning.
	Before   int64
	Language string
}

// Presenter gives payloads in the form of the contract.
type Presenter interface {
	// Summary is the payload of lists and of the snapshot.
	Summary(r domain.Run) any
	// StateChanged is the payload of run.state_changed; previous is nil when the run began.
	StateChanged(r domain.Run, previous *domain.State) any
	// Snapshot is the payload of run.updated with the whole document and the end of the output.
	Snapshot(r domain.Run, steps []domain.Step) any
	CancelRequested(r domain.Run, deadline time.Time) any
	Invocation(i Invocation) any
	Followup(f FollowupOrder) any
	// Patch is the merge patch that gives others what an update has changed; nil when that
	// was only appended text.
	Patch(w domain.Work, c domain.Changes) (json.RawMessage, error)
	// Marked is the merge patch of a stall mark.
	Marked(r domain.Run) (json.RawMessage, error)
}
