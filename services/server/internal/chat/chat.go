// SPDX-License-Identifier: Apache-2.0

// Package chat is the port of the module chat: the spaces, channels and threads that
// everything is written in.
package chat

import (
	"context"
	"encoding/json"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The rules by which messages of a channel set its operator to work.
const (
	TriggerMention = "mention"
	TriggerAll     = "all"
	TriggerOff     = "off"
)

// Channel is what other modules need to know of a channel.
type Channel struct {
	ID           ids.ID
	SpaceID      ids.ID
	Kind         string
	Name         string
	MainThreadID ids.ID
	Archived     bool
	ReadOnly     bool
	// OperatorID is the effective operator, zero for none.
	OperatorID      ids.ID
	TriggerRule     string
	AgentChaining   bool
	AgentSources    string
	ConfigVersion   int64
	Prompt          string
	SlowModeSeconds int
}

// The kinds of threads.
const (
	ThreadMain = "main"
	ThreadPost = "post"
	ThreadSide = "side"
)

// Thread is what other modules need to know of a thread.
type Thread struct {
	ID              ids.ID
	ChannelID       ids.ID
	SpaceID         ids.ID
	Kind            string
	Title           string
	ParentMessageID ids.ID
	Closed          bool
	CreatedBy       ids.ID
	Counters        Counters
	CreatedAt       time.Time
}

// Counters are the numbers of a thread that change with its messages.
type Counters struct {
	Rev              int64
	FirstThreadSeq   int64
	LastThreadSeq    int64
	LastCountableSeq int64
	MessageCount     int64
	LastMessageAt    time.Time
}

// Structure reads spaces and channels. It does not authorize.
type Structure interface {
	// Channel reads one; not_found when there is none.
	Channel(ctx context.Context, id ids.ID) (Channel, error)
	Channels(ctx context.Context, list []ids.ID) (map[ids.ID]Channel, error)
	// OperatorChannels lists the channels whose effective operator is the agent.
	OperatorChannels(ctx context.Context, agent ids.ID) ([]ids.ID, error)
}

// ChannelNames finds channels by what people call them. It does not authorize.
type ChannelNames interface {
	// ChannelsNamed gives the channels of a space that are not archived, by lower-cased name;
	// unknown names are left out.
	ChannelsNamed(ctx context.Context, space ids.ID, names []string) (map[string]ids.ID, error)
}

// NewThread describes a side thread to be created with its first message.
type NewThread struct {
	ID              ids.ID
	ChannelID       ids.ID
	Kind            string
	ParentMessageID ids.ID
	Title           string
	TitleSource     string
	CreatedBy       ids.ID
}

// Appended is what AppendToThread found and gave.
type Appended struct {
	Thread    Thread
	ThreadSeq int64
	// Reopened is true when the message opened a closed thread again.
	Reopened bool
}

// Threads is what messaging and runs do with threads, inside their units of work.
type Threads interface {
	// Info reads a thread; not_found when there is none.
	Info(ctx context.Context, id ids.ID) (Thread, error)
	Infos(ctx context.Context, list []ids.ID) (map[ids.ID]Thread, error)
	// Create makes a side thread and appends thread.created.
	Create(ctx context.Context, t NewThread) (Thread, error)
	// Lock takes the place lock of the channel, shared, and the thread row, without a
	// message; it fails with channel_read_only when the place has become read-only.
	Lock(ctx context.Context, id ids.ID) (Thread, error)
	// AppendToThread takes the place lock and gives the next number of the thread to a
	// message of the given kind ("message" counts; "run" and "system" do not). The author's
	// kind decides whether a closed thread opens again.
	AppendToThread(ctx context.Context, id ids.ID, messageKind string, author actor.Kind) (Appended, error)
	// MessageDeleted takes a deleted message out of the counters: lastCountable is the
	// highest countable number left.
	MessageDeleted(ctx context.Context, id ids.ID, countable bool, lastCountable int64) (Thread, error)
	// UnreadCandidates lists the threads of channels with their counters.
	UnreadCandidates(ctx context.Context, channels []ids.ID) ([]Thread, error)
}

// Place is a thread with the channel it lies in, as they are under the place lock.
type Place struct {
	Thread  Thread
	Channel Channel
}

// Places finds where a thread lies, for modules that write in it. It does not authorize.
type Places interface {
	// Place reads a thread and its channel; not_found when there is none. In a unit that
	// writes it takes the place lock first, so what it reads cannot change before the end of
	// the unit; outside it only reads. The prompt of the channel is left out.
	Place(ctx context.Context, thread ids.ID) (Place, error)
}

// SnapshotReads gives the payloads of the snapshot, marshalled as in the contract, for the
// scope of the actor. Items come in ascending order of ID behind after.
type SnapshotReads interface {
	SnapshotSpaces(ctx context.Context, targets []ids.ID, after ids.ID, limit int) ([]SnapshotItem, error)
	SnapshotChannels(ctx context.Context, targets []ids.ID, after ids.ID, limit int) ([]SnapshotItem, error)
	// SnapshotThreads gives all main threads and the other threads active since the time.
	SnapshotThreads(ctx context.Context, targets []ids.ID, since time.Time, after ids.ID, limit int) ([]SnapshotItem, error)
}

// ThreadReads gives one thread as in the contract, marshalled. It does not authorize.
type ThreadReads interface {
	ThreadPayload(ctx context.Context, id ids.ID) (json.RawMessage, error)
}

// SnapshotItem is one resource of a snapshot section.
type SnapshotItem struct {
	ID      ids.ID
	Payload json.RawMessage
}

// ChannelArchived is published in the transaction that archives a channel or takes it back.
type ChannelArchived struct {
	ChannelID, SpaceID ids.ID
	Archived           bool
}
