// SPDX-License-Identifier: Apache-2.0

// Package app has the use cases of the module sync: appending to the event log, reading it,
// the snapshot, read positions and the answers of repeatable writes.
package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// Entry is an event with everything but its number.
type Entry struct {
	EventID       ids.ID
	Type          string
	OccurredAt    time.Time
	Actor         eventlog.Actor
	Place         eventlog.Place
	PrincipalID   ids.ID
	Resource      eventlog.Resource
	Payload       json.RawMessage
	CorrelationID string
}

// LogWriter queues the statements of the log's tail.
type LogWriter interface {
	// Append queues the insertion of the entries, which takes the numbers that end at the
	// present value of the counter. When decided is not nil and the version of all rights
	// differs from it, the unit is rolled back and run again.
	Append(ctx context.Context, entries []Entry, decided *int64) error
	// Notify queues the signal that wakes the readers of other processes at the commit.
	Notify(ctx context.Context) error
	// Redact queues the reduction of all payloads of a message to their skeleton; superseded
	// says that the message lives on with another text.
	Redact(ctx context.Context, messageID ids.ID, superseded bool) error
}

// DecidedVersion tells with which version of all rights the running unit has decided.
type DecidedVersion func(ctx context.Context) (version int64, decided bool)

// AppendConfig bounds what a unit may append.
type AppendConfig struct {
	MaxEventsPerUnit int   `key:"sync.max_events_per_unit" default:"1000" min:"1" max:"100000" doc:"Events one unit of work may append; larger work is split."`
	MaxPayloadBytes  int64 `key:"sync.event_payload_max_bytes" type:"bytes" default:"262144" min:"4096" max:"16777216" doc:"Largest payload of one event."`
}

// Appender implements eventlog.Appender and eventlog.Redactor, and the hook that numbers.
type Appender struct {
	config   AppendConfig
	counters instance.Counters
	log      LogWriter
	decided  DecidedVersion
	// wake is set when the only reader of the log is in this process.
	wake atomic.Pointer[func()]
}

// NewAppender makes the appender.
func NewAppender(config AppendConfig, counters instance.Counters, log LogWriter, decided DecidedVersion) *Appender {
	return &Appender{config: config, counters: counters, log: log, decided: decided}
}

// ReadHere says that the only reader of the log is in this process. It is then woken by a call,
// which costs the database nothing; a notification takes a lock of the whole database and
// wakes a connection for every commit.
func (a *Appender) ReadHere(wake func()) { a.wake.Store(&wake) }

// Committed is the hook that wakes a reader in this process.
func (a *Appender) Committed(ctx context.Context) {
	if wake := a.wake.Load(); wake != nil && buffered(ctx) != nil {
		(*wake)()
	}
}

type bufferKey struct{}

func buffered(ctx context.Context) *buffer {
	b, _ := txn.Current(ctx).Value(bufferKey{}).(*buffer)
	return b
}

// buffer holds the events of one attempt of a unit. What the check of rights appends is kept
// apart, because it is numbered first: a receiver then knows its new rights before it meets
// anything that depends on them.
type buffer struct{ rights, work []Entry }

// Append implements eventlog.Appender.
func (a *Appender) Append(ctx context.Context, events ...eventlog.Event) error {
	unit := txn.Current(ctx)
	if unit == nil || unit.ReadOnly() || unit.Phase() != txn.PhaseWork && unit.Phase() != txn.PhaseRights {
		return errs.Internal(fmt.Errorf("append of %d events outside the work of a unit", len(events)))
	}
	b, _ := unit.Value(bufferKey{}).(*buffer)
	if b == nil {
		b = &buffer{}
		unit.SetValue(bufferKey{}, b)
	}
	for _, e := range events {
		entry, err := a.entry(ctx, unit, e)
		if err != nil {
			return err
		}
		if unit.Phase() == txn.PhaseRights {
			b.rights = append(b.rights, entry)
		} else {
			b.work = append(b.work, entry)
		}
	}
	// A change of rights cannot be split, so what it tells those concerned is not counted;
	// their number is bounded by that of the members.
	if n := len(b.work); n > a.config.MaxEventsPerUnit {
		return errs.Internal(fmt.Errorf("a unit appends %d events, more than %d", n, a.config.MaxEventsPerUnit))
	}
	return nil
}

// encode writes a payload as JSON with the characters as they are: the escapes for HTML would
// make a text of angle brackets six times as long, and no log entry is read by a browser's
// parser of pages.
func encode(payload any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(payload); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func (a *Appender) entry(ctx context.Context, unit txn.Unit, e eventlog.Event) (Entry, error) {
	if !sync.KnownType(e.Type) {
		return Entry{}, errs.Internal(fmt.Errorf("append of the unknown event type %q", e.Type))
	}
	payload, err := encode(e.Payload)
	if err != nil {
		return Entry{}, errs.Internal(fmt.Errorf("encode the payload of %s: %w", e.Type, err))
	}
	if int64(len(payload)) > a.config.MaxPayloadBytes {
		return Entry{}, errs.Internal(fmt.Errorf("the payload of %s has %d bytes", e.Type, len(payload)))
	}
	who := actor.From(ctx)
	entry := Entry{
		EventID: ids.NewAt(unit.Now()), Type: e.Type, OccurredAt: unit.Now(), Place: e.Place,
		PrincipalID: e.PrincipalID, Resource: e.Resource, Payload: payload,
		Actor:         eventlog.Actor{ID: who.ID, Kind: string(who.Kind)},
		CorrelationID: reqmeta.From(ctx).CorrelationID,
	}
	if who.Kind == actor.KindAnonymous {
		// Signing in makes events before there is an actor; the log then names the system.
		entry.Actor = eventlog.Actor{Kind: string(actor.KindSystem)}
	}
	if who.ActingFor != nil {
		entry.Actor.ActingFor = who.ActingFor.PrincipalID
	}
	return entry, nil
}

// NumberEvents is the hook of the phase in which the log is written. A unit without events
// takes neither the counter nor a notification.
func (a *Appender) NumberEvents(ctx context.Context) error {
	b := buffered(ctx)
	if b == nil || len(b.rights)+len(b.work) == 0 {
		return nil
	}
	entries := append(b.rights, b.work...)
	record := func(seq int64) { flush.Record(ctx, seq) }
	if err := a.counters.Raise(ctx, instance.CounterEventSeq, int64(len(entries)), record); err != nil {
		return fmt.Errorf("raise the counter of events: %w", err)
	}
	var decided *int64
	if version, ok := a.decided(ctx); ok {
		decided = &version
	}
	if err := a.log.Append(ctx, entries, decided); err != nil {
		return fmt.Errorf("append %d events: %w", len(entries), err)
	}
	if a.wake.Load() != nil {
		return nil
	}
	if err := a.log.Notify(ctx); err != nil {
		return fmt.Errorf("notify the readers: %w", err)
	}
	return nil
}

// Redact implements eventlog.Redactor.
func (a *Appender) Redact(ctx context.Context, messageID ids.ID) error {
	return a.log.Redact(ctx, messageID, false)
}

// Supersede implements eventlog.Redactor.
func (a *Appender) Supersede(ctx context.Context, messageID ids.ID) error {
	return a.log.Redact(ctx, messageID, true)
}
