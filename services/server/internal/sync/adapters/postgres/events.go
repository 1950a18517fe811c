// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps the event log, the read positions and the answers of repeatable
// writes in PostgreSQL.
package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/sync/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/sync/app"
)

// Events implements app.LogWriter and app.LogReader.
type Events struct{ db *pg.DB }

// NewEvents makes the repository of the log.
func NewEvents(db *pg.DB) *Events { return &Events{db: db} }

// Append implements app.LogWriter. The statements travel with the commit.
func (r *Events) Append(ctx context.Context, entries []app.Entry, decided *int64) error {
	first := entries[0]
	p := sqlcgen.EventsAppendParams{
		OccurredAt: first.OccurredAt, ActorID: first.Actor.ID.Ptr(), ActorKind: first.Actor.Kind,
		ActingForID: first.Actor.ActingFor.Ptr(), Decided: decided, CorrelationID: correlation(first.CorrelationID),
	}
	for _, e := range entries {
		p.EventIds = append(p.EventIds, e.EventID)
		p.Types = append(p.Types, e.Type)
		p.SpaceIds = append(p.SpaceIds, e.Place.SpaceID)
		p.ChannelIds = append(p.ChannelIds, e.Place.ChannelID)
		p.ThreadIds = append(p.ThreadIds, e.Place.ThreadID)
		p.PrincipalIds = append(p.PrincipalIds, e.PrincipalID)
		p.ResourceTypes = append(p.ResourceTypes, e.Resource.Type)
		p.ResourceIds = append(p.ResourceIds, e.Resource.ID)
		p.Payloads = append(p.Payloads, string(e.Payload))
	}
	return sqlcgen.New(pg.Queued(ctx)).EventsAppend(ctx, p)
}

// Notify implements app.LogWriter.
func (r *Events) Notify(ctx context.Context) error {
	return sqlcgen.New(pg.Queued(ctx)).EventsNotify(ctx)
}

// correlation reads the trace ID of a request; work without a request has none.
func correlation(text string) *ids.ID {
	id, err := ids.Parse(text)
	if err != nil {
		return nil
	}
	return &id
}

// Redact implements app.LogWriter.
func (r *Events) Redact(ctx context.Context, messageID ids.ID, superseded bool) error {
	return sqlcgen.New(pg.Queued(ctx)).EventsRedact(ctx, txn.Current(ctx).Now(), superseded, &messageID)
}

// From implements app.LogReader.
func (r *Events) From(ctx context.Context, from, through int64, limit int) ([]eventlog.Record, error) {
	rows, err := r.queries(ctx).EventsFrom(ctx, from, through, int32(limit))
	return records(rows), wrap("read the log", err)
}

// Visible implements app.LogReader.
func (r *Events) Visible(ctx context.Context, recipient ids.ID, scope authorize.Scope, from, through int64, limit int) ([]eventlog.Record, error) {
	rows, err := r.queries(ctx).EventsVisible(ctx, sqlcgen.EventsVisibleParams{
		FromSeq: from, ThroughSeq: through, Recipient: recipient, AllPlaces: scope.All,
		Channels: notNil(scope.Channels), Spaces: notNil(append(append([]ids.ID{}, scope.Spaces...), scope.PassingSpaces...)), MaxRows: int32(limit),
	})
	return records(rows), wrap("read the visible log", err)
}

// Personal implements app.LogReader.
func (r *Events) Personal(ctx context.Context, principal ids.ID, after, through int64, limit int) ([]eventlog.Record, error) {
	rows, err := r.queries(ctx).EventsPersonal(ctx, sqlcgen.EventsPersonalParams{
		Recipient: principal, AfterSeq: after, ThroughSeq: through, MaxRows: int32(limit),
	})
	return records(rows), wrap("read personal events", err)
}

// Count implements app.LogReader.
func (r *Events) Count(ctx context.Context, from, through int64) (int64, error) {
	n, err := r.queries(ctx).EventsCount(ctx, from, through)
	return n, wrap("count the log", err)
}

// Bounds implements app.LogReader.
func (r *Events) Bounds(ctx context.Context) (minSeq, head int64, err error) {
	b, err := r.queries(ctx).EventsBounds(ctx)
	return b.MinSeq, b.HeadSeq, wrap("read the bounds of the log", err)
}

// CreatePartitions implements app.Partitions, as do the three methods below it.
func (r *Events) CreatePartitions(ctx context.Context, ahead int, size int64) (int, error) {
	n, err := r.queries(ctx).PartitionsCreate(ctx, int32(ahead), size)
	return int(n), wrap("create partitions", err)
}

// DetachExpired implements app.Partitions.
func (r *Events) DetachExpired(ctx context.Context, before time.Time) (int, error) {
	n, err := r.queries(ctx).PartitionsDetach(ctx, before)
	return int(n), wrap("detach partitions", err)
}

// DropDetached implements app.Partitions.
func (r *Events) DropDetached(ctx context.Context) (int, error) {
	n, err := r.queries(ctx).PartitionsDrop(ctx)
	return int(n), wrap("drop partitions", err)
}

// Trim implements app.Partitions.
func (r *Events) Trim(ctx context.Context, before time.Time, limit int) (int64, error) {
	n, err := r.queries(ctx).EventsTrim(ctx, before, int32(limit))
	return n, wrap("trim the log", err)
}

func (r *Events) queries(ctx context.Context) *sqlcgen.Queries { return sqlcgen.New(r.db.Querier(ctx)) }

func records(rows []sqlcgen.EventLog) []eventlog.Record {
	out := make([]eventlog.Record, len(rows))
	for i, row := range rows {
		out[i] = eventlog.Record{
			Seq: row.Seq, EventID: row.EventID, Type: row.Type, OccurredAt: row.OccurredAt,
			Actor:       eventlog.Actor{ID: ids.Deref(row.ActorID), Kind: row.ActorKind, ActingFor: ids.Deref(row.ActingForID)},
			Place:       eventlog.Place{SpaceID: ids.Deref(row.SpaceID), ChannelID: ids.Deref(row.ChannelID), ThreadID: ids.Deref(row.ThreadID)},
			PrincipalID: ids.Deref(row.PrincipalID), Resource: resource(row), Payload: row.Payload,
			PermissionVersion: row.PermissionVersion, Redacted: row.RedactedAt != nil,
		}
	}
	return out
}

func resource(row sqlcgen.EventLog) eventlog.Resource {
	if row.ResourceType == nil {
		return eventlog.Resource{}
	}
	return eventlog.Resource{Type: *row.ResourceType, ID: ids.Deref(row.ResourceID)}
}

func notNil(list []ids.ID) []ids.ID {
	if list == nil {
		return []ids.ID{}
	}
	return list
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
