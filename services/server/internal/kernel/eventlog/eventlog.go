// SPDX-License-Identifier: Apache-2.0

// Package eventlog is the one channel of durable change. A use case appends what has
// changed inside its unit of work; the log numbers it at the end of the unit, and every
// follower (gateway, worker consumers, agents) reads it in that order.
package eventlog

import (
	"context"
	"encoding/json"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Place is where an event happened, at the time it happened. A thread lies in a channel
// and a channel in a space, so a set field needs the ones before it; a direct channel has
// no space.
type Place struct{ SpaceID, ChannelID, ThreadID ids.ID }

// Resource is the thing that changed; redaction and the history of a thing find events
// by it.
type Resource struct {
	Type string
	ID   ids.ID
}

// Event is a change to be appended.
type Event struct {
	// Type is one of the closed catalogue, registered by the module that appends it.
	Type  string
	Place Place
	// PrincipalID makes the event personal: it goes to this principal alone.
	PrincipalID ids.ID
	Resource    Resource
	// Payload is marshalled to JSON: the resource after the change, complete enough to be
	// applied without a further request and the same for every recipient.
	Payload any
}

// Appender buffers events of the running unit of work. The module sync implements it.
type Appender interface {
	// Append is legal while a unit works and during the check of rights changes; elsewhere
	// it fails with kind internal. The event has no position before the unit ends.
	Append(ctx context.Context, events ...Event) error
}

// Redactor takes content out of events that are already in the log.
type Redactor interface {
	// Redact reduces every retained payload about the message to its skeleton, in the
	// running unit.
	Redact(ctx context.Context, messageID ids.ID) error
	// Supersede does the same with the older payloads of an edited message and marks them,
	// so that an edited-out secret is not replayed.
	Supersede(ctx context.Context, messageID ids.ID) error
}

// Actor is who caused a recorded event.
type Actor struct {
	ID        ids.ID
	Kind      string
	ActingFor ids.ID
}

// Record is an event as the log holds it.
type Record struct {
	// Seq is the position: gapless, ascending in the order of commits.
	Seq     int64
	EventID ids.ID
	Type    string
	// OccurredAt is the clock of the unit; it is for display and does not order.
	OccurredAt  time.Time
	Actor       Actor
	Place       Place
	PrincipalID ids.ID
	Resource    Resource
	Payload     json.RawMessage
	// PermissionVersion is the version of all rights in force at this position.
	PermissionVersion int64
	Redacted          bool
}

// Ephemeral is a signal that is never stored: lost when nobody listens, at most once.
type Ephemeral struct {
	Type        string
	Place       Place
	PrincipalID ids.ID
	Actor       Actor
	OccurredAt  time.Time
	Payload     any
	// ExceptPrincipalID receives nothing, for example the typist herself.
	ExceptPrincipalID ids.ID
}

// EphemeralPublisher fans signals out to the connections of this process. The module
// gateway implements it. It never blocks and never fails: what cannot be sent is dropped.
type EphemeralPublisher interface {
	Publish(ctx context.Context, e Ephemeral)
}
