// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The states of a thread.
const (
	StateOpen   = "open"
	StateClosed = "closed"
)

// The origins of a title.
const (
	TitleNone   = "none"
	TitleAuto   = "auto"
	TitlePerson = "person"
	TitleAgent  = "agent"
	TitleApp    = "app"
)

// Thread is a conversation. Its messages are numbered from 1 without gaps.
type Thread struct {
	ID              ids.ID
	ChannelID       ids.ID
	SpaceID         ids.ID
	Kind            string
	ParentMessageID ids.ID
	// Title is empty only for main threads.
	Title       string
	TitleSource string
	State       string
	ClosedAt    *time.Time
	ClosedBy    ids.ID
	CloseReason string
	Counters    Counters
	ActiveAt    time.Time
	CreatedBy   ids.ID
	CreatedAt   time.Time
	Version     int64
}

// Counters change with messages and have a number of their own, Rev: of two values the one
// with the higher Rev is newer.
type Counters struct {
	Rev, First, Last, LastCountable, Messages int64
	LastMessageAt                             time.Time
}

// Reopens reports whether a message of the author opens a closed thread again. An agent's
// late answer leaves it closed.
func Reopens(messageKind, authorKind string) bool {
	return messageKind == "message" && authorKind != "agent" && authorKind != "system"
}

// Countable reports whether messages of the kind can be unread.
func Countable(messageKind string) bool { return messageKind == "message" }
