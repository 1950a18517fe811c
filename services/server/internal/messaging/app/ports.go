// SPDX-License-Identifier: Apache-2.0

// Package app has the use cases of the module messaging: writing, reading, editing and
// deleting messages, and what other modules do with messages inside their units of work.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// Config has the rules of messages that are settings.
type Config struct {
	MaxMentions       int           `key:"message.max_mentions" default:"50" min:"1" max:"500" doc:"Different targets one message may name."`
	BroadcastPerHour  int           `key:"message.broadcast_per_hour" default:"10" min:"0" max:"1000" doc:"Calls of many people per author and channel."`
	EditWindow        time.Duration `key:"message.edit_window" default:"0s" min:"0s" max:"8760h" doc:"How long an author may edit; zero means for ever."`
	MaxRevisions      int           `key:"message.max_revisions" default:"100" min:"2" max:"10000" doc:"Former texts kept of one message."`
	AutoTitleClusters int           `key:"thread.auto_title_graphemes" default:"80" min:"10" max:"120" doc:"Characters of a title taken from the first message."`
	// PublicURL is the address of the instance, which permalinks begin with.
	PublicURL string
}

// Deps is what the use cases are built from.
type Deps struct {
	Config      Config
	Units       txn.UnitOfWork
	Authorizer  authorize.Authorizer
	Rights      authorize.Rights
	Log         eventlog.Appender
	Redactor    eventlog.Redactor
	Directory   identity.Directory
	Places      chat.Places
	Structure   Structure
	Threads     chat.Threads
	ThreadReads chat.ThreadReads
	Messages    Repository
	Parser      domain.Parser
	Payloads    Payloads
	Clock       clock.Clock
}

// Structure finds channels, by ID and by what people call them.
type Structure interface {
	chat.Structure
	chat.ChannelNames
}

// Payloads gives the form of the contract, for answers and events alike.
type Payloads interface {
	Created(m domain.Message, c chat.Counters) any
	Updated(m domain.Message, cause string, added []domain.Mention) any
	Deleted(m domain.Message, c chat.Counters) any
}

// ErrClientKey means that the author has used the client key before, in a unit that ended
// between the look-up and the insertion.
var ErrClientKey = errors.New("the client key is used")

// Sent is a message found by its client key.
type Sent struct {
	ID ids.ID
	// Hash is empty when the message has been deleted.
	Hash []byte
}

// Target is a message that another one answers.
type Target struct {
	ThreadID ids.ID
	domain.Reply
}

// Repository keeps messages. A read of a missing row is not_found; writes and locks are
// queued and travel with the next read. The space of a message is not known here.
type Repository interface {
	Get(ctx context.Context, id ids.ID) (domain.Message, error)
	In(ctx context.Context, list []ids.ID) ([]domain.Message, error)
	// Window reads a range of numbers, ascending.
	Window(ctx context.Context, thread ids.ID, w domain.Window) ([]domain.Message, error)
	// Place tells the thread and number of a message.
	Place(ctx context.Context, id ids.ID) (thread ids.ID, seq int64, err error)
	Lock(ctx context.Context, id ids.ID) error

	// FindSent and FindReply queue a look-up whose result is there after the next read; a
	// missing row leaves the zero value.
	FindSent(ctx context.Context, author, key ids.ID, into *Sent) error
	FindReply(ctx context.Context, id ids.ID, into *Target) error

	// Insert fails with ErrClientKey.
	Insert(ctx context.Context, m domain.Message) error
	// Edit writes the text of the message; replaced is what it said before, as the revision
	// before. Revisions up to trim are dropped, but the first.
	Edit(ctx context.Context, m domain.Message, replaced string, by ids.ID, trim int) error
	// Delete removes everything that holds content.
	Delete(ctx context.Context, m domain.Message) error
	SetTrigger(ctx context.Context, m domain.Message) error
	SetThread(ctx context.Context, m domain.Message) error
	// Ever lists the targets the message has ever named.
	Ever(ctx context.Context, id ids.ID) ([]domain.Mention, error)
	// CountableBelow is the highest number below another that can be unread, 0 for none.
	CountableBelow(ctx context.Context, thread ids.ID, below int64) (int64, error)
	Unread(ctx context.Context, reader ids.ID, queries []messaging.UnreadQuery, limit int) (map[ids.ID]messaging.Unread, error)
	BroadcastsSince(ctx context.Context, author, channel ids.ID, since time.Time) (int, error)
	// LockAuthor makes the messages of an author in a channel queue up.
	LockAuthor(ctx context.Context, author, channel ids.ID) error
	// LastOfAuthor is when the author wrote last in the channel since a time; zero for never.
	LastOfAuthor(ctx context.Context, author, channel ids.ID, since time.Time) (time.Time, error)
}

// Written is a message as its author gets it back.
type Written struct {
	Message  domain.Message
	Warnings []domain.Warning
	// Repeated is true when the message was there before.
	Repeated bool
}

// ThreadWritten is the answer to a new thread.
type ThreadWritten struct {
	Written
	// Thread is in the form of the contract.
	Thread json.RawMessage
	// Created is false when the message went to a thread that was there.
	Created bool
}
