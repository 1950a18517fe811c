// SPDX-License-Identifier: Apache-2.0

// Package messaging is the port of the module messaging: what is written in threads.
package messaging

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The kinds of messages. Only KindMessage counts and can be unread.
const (
	KindMessage = "message"
	KindSystem  = "system"
	KindRun     = "run"
)

// The outcomes of a message for the agents it may set to work.
const (
	TriggerNone      = "none"
	TriggerTriggered = "triggered"
	TriggerFollowup  = "followup"
	TriggerHeld      = "held"
	TriggerDenied    = "denied"
)

// Author is who wrote a message.
type Author struct {
	Kind actor.Kind
	ID   ids.ID
}

// Message is what other modules need to know of a message.
type Message struct {
	ID           ids.ID
	ThreadID     ids.ID
	ChannelID    ids.ID
	ThreadSeq    int64
	Kind         string
	Author       Author
	Content      string
	PlainText    string
	ReplyToID    ids.ID
	RunID        ids.ID
	MentionedIDs []ids.ID
	Revision     int
	CreatedAt    time.Time
	EditedAt     *time.Time
	Deleted      bool
	TriggerState string
	Version      int64
	ClientMsgID  ids.ID
}

// TriggerOutcome is what became of a message for one agent.
type TriggerOutcome struct {
	AgentID ids.ID `json:"agent_id"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	RunID   ids.ID `json:"run_id,omitzero"`
}

// NewMessage describes a message that another module writes inside its unit of work.
type NewMessage struct {
	ThreadID    ids.ID
	Author      Author
	Content     string
	ReplyToID   ids.ID
	RunID       ids.ID
	ClientMsgID ids.ID
	// SuppressTrigger keeps the message from setting agents to work.
	SuppressTrigger bool
}

// Messages is what runs and sync do with messages. It does not authorize.
type Messages interface {
	// Get reads one message; not_found when there is none.
	Get(ctx context.Context, id ids.ID) (Message, error)
	// Newest reads the newest messages of a thread up to and including a number, newest
	// last; zero means up to the end.
	Newest(ctx context.Context, thread ids.ID, upTo int64, limit int) ([]Message, error)
	// Create writes a message, publishes MessagePosted and appends message.created.
	Create(ctx context.Context, m NewMessage) (Message, error)
	// Anchor writes the message that holds the place of a run in its thread.
	Anchor(ctx context.Context, thread, run, agent ids.ID) (Message, error)
	// SetTriggerState notes the outcomes on the message and appends message.updated.
	SetTriggerState(ctx context.Context, id ids.ID, state string, outcomes []TriggerOutcome) error
}

// Unread counts for sync.
type Unread struct {
	Count    int
	Capped   bool
	Mentions int
}

// UnreadQuery asks about one thread from a position of a reader.
type UnreadQuery struct {
	ThreadID ids.ID
	// Above is the effective read position; messages with a higher number count.
	Above int64
}

// Mentions counts what is unread. It does not authorize.
type Mentions interface {
	// UnreadCounts counts, per thread, countable messages of others above the position, up
	// to cap, and the reader's own mentions among them.
	UnreadCounts(ctx context.Context, reader ids.ID, queries []UnreadQuery, cap int) (map[ids.ID]Unread, error)
}

// MessagePosted is published in the transaction that writes a message of kind message,
// behind message.created.
type MessagePosted struct {
	Message Message
	SpaceID ids.ID
	// Mentioned are the principals the message names in a way that wakes them, in the order
	// of appearance.
	Mentioned []ids.ID
	// DeviceID is the sending device, zero for none.
	DeviceID        ids.ID
	SuppressTrigger bool
	ThreadKind      string
	// OperatorID, TriggerRule and AgentChaining are how the channel sets agents to work, as
	// read when the message was placed; with them a subscriber needs no further query.
	OperatorID    ids.ID
	TriggerRule   string
	AgentChaining bool
}

// MessageEdited is published in the transaction that changes the content of a message.
type MessageEdited struct {
	Message Message
	SpaceID ids.ID
	// Added are the principals that this edit names for the first time.
	Added []ids.ID
}

// MessageDeleted is published in the transaction that deletes a message.
type MessageDeleted struct {
	MessageID, ThreadID, ChannelID ids.ID
	Author                         Author
	RunID                          ids.ID
}
