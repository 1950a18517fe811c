// SPDX-License-Identifier: Apache-2.0

// Package sync is the port of the module sync: the event log, from writing it to reading it
// in every way there is, and the personal state that follows it.
package sync

import (
	"context"
	"encoding/json"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Follower receives the log in order, from one goroutine, behind the flush barrier and
// behind the update of the rights in memory. It must not block.
type Follower interface {
	Deliver(e eventlog.Record)
}

// Tail is the one reader of the log in a process.
type Tail interface {
	// LocalHead is the position the process has passed to its follower.
	LocalHead() int64
	// Ready reports whether the tail reads; false while the database is away.
	Ready() bool
}

// ReceiveAction gives the action a recipient needs for an event type and the resource to
// check; known is false for a type this version does not know.
func ReceiveAction(e eventlog.Record) (action authorize.Action, r authorize.Resource, known bool) {
	return receiveAction(e)
}

// ReceivedAt gives the space, channel or thread that everybody who may receive an event can
// see; ok is false for an event that is not bound to one.
func ReceivedAt(e eventlog.Record) (r authorize.Resource, ok bool) {
	switch rule := receiveRules[e.Type]; rule.on {
	case onSpace, onChannel, onThread:
		return resourceOf(rule.on, e), true
	default:
		return r, false
	}
}

// Admit is the one decision by which an event reaches a recipient: the hub, catch-up, agent
// runners and ephemeral fan-out call it. It never queries.
func Admit(d authorize.Delivery, recipient ids.ID, e eventlog.Record) authorize.Verdict {
	if !e.PrincipalID.IsZero() && e.PrincipalID != recipient {
		return authorize.Denied
	}
	action, resource, known := receiveAction(e)
	if !known {
		return authorize.Denied
	}
	return d.Admit(recipient, action, resource, e.PermissionVersion)
}

// Page is a stretch of the log as one recipient may see it.
type Page struct {
	Events []eventlog.Record
	// FromSeq and ThroughSeq are the first and last position covered.
	FromSeq, ThroughSeq int64
}

// CatchUp reads what a follower has missed.
type CatchUp interface {
	// Check validates a cursor against target; it fails with resync_required and a reason of
	// epoch, retention, future or too_far.
	Check(ctx context.Context, epoch ids.ID, cursor, target int64) error
	// Page reads from cursor+1 up to target, filtered for the recipient.
	Page(ctx context.Context, recipient ids.ID, cursor, target int64) (Page, error)
	// Personal reads the events addressed to one principal behind cursor up to target.
	Personal(ctx context.Context, principal ids.ID, cursor, target int64, limit int) ([]eventlog.Record, error)
}

// Log reads heads and epochs.
type Log interface {
	// Head is the highest durable position.
	Head(ctx context.Context) (int64, error)
	Epoch(ctx context.Context) (ids.ID, error)
}

// Envelope is an event in the form of the wire, encoded once for all recipients.
func Envelope(e eventlog.Record) (json.RawMessage, error) { return envelope(e) }

// ReadState is the read position of a person in a thread.
type ReadState struct {
	ThreadID           ids.ID    `json:"thread_id"`
	ChannelID          ids.ID    `json:"channel_id"`
	LastReadThreadSeq  int64     `json:"last_read_thread_seq"`
	ManuallyUnreadFrom *int64    `json:"manually_unread_from"`
	FirstUnread        *int64    `json:"first_unread_thread_seq"`
	UnreadCount        int       `json:"unread_count"`
	UnreadCapped       bool      `json:"unread_capped"`
	MentionCount       int       `json:"mention_count"`
	AsOfThreadSeq      int64     `json:"as_of_thread_seq"`
	Version            int64     `json:"version"`
	UpdatedAt          time.Time `json:"updated_at"`
}

// MarshalJSON writes the time as every time of the contract is written: in milliseconds.
func (r ReadState) MarshalJSON() ([]byte, error) {
	type members ReadState
	return json.Marshal(struct {
		members
		UpdatedAt string `json:"updated_at"`
	}{members(r), r.UpdatedAt.UTC().Format("2006-01-02T15:04:05.000Z")})
}
