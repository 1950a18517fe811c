// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
)

// Outcome is how a unit of work ended.
type Outcome string

// The outcomes of a unit.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeVeto    Outcome = "veto"    // an error with a public meaning rolled it back
	OutcomeFailed  Outcome = "failed"  // anything else rolled it back
	OutcomeUnknown Outcome = "unknown" // the connection broke, or the flush was not proved
)

// Metrics receives what this package measures. Its methods are called often and by many
// goroutines, and must not block.
type Metrics interface {
	// UnitDone is called once per unit, with the time from its begin to its answer.
	UnitDone(ctx context.Context, outcome Outcome, d time.Duration)
	// UnitRepeated is called per repetition, with the SQLSTATE or "stale_rights".
	UnitRepeated(ctx context.Context, reason string)
	// AcquireWait is the wait for a connection of the pool.
	AcquireWait(ctx context.Context, d time.Duration)
	// FlushWait is the wait of one commit for its flush.
	FlushWait(ctx context.Context, d time.Duration)
	// FlushGroup is the number of commits that one flush served.
	FlushGroup(ctx context.Context, size int)
	// ListenReconnected counts replaced LISTEN connections, by application name.
	ListenReconnected(ctx context.Context, appName string)
}

// NewMetrics measures into a meter.
func NewMetrics(m otel.Meter) Metrics {
	return metered{
		units: m.Histogram("bothy.db.tx.duration"), repeated: m.Counter("bothy.db.tx.retries"),
		acquire: m.Histogram("db.client.connection.wait_time"), flush: m.Histogram("bothy.db.flush.wait"),
		group: m.Histogram("bothy.db.flush.group_size"), listen: m.Counter("bothy.db.listen.reconnects"),
	}
}

// WatchPool lets a meter read how many connections of the pool are in use.
func (db *DB) WatchPool(m otel.Meter) {
	m.Watch("db.client.connection.count", func(observe otel.Observe) {
		s := db.Stat()
		observe(float64(s.AcquiredConns()), "db.client.connection.state", "used")
		observe(float64(s.IdleConns()), "db.client.connection.state", "idle")
	})
}

type metered struct {
	units, acquire, flush, group otel.Histogram
	repeated, listen             otel.Counter
}

func (m metered) UnitDone(ctx context.Context, outcome Outcome, d time.Duration) {
	m.units.Record(ctx, d.Seconds(), "bothy.outcome", string(outcome))
}

func (m metered) UnitRepeated(ctx context.Context, reason string) {
	m.repeated.Add(ctx, 1, "bothy.reason", reason)
}

func (m metered) AcquireWait(ctx context.Context, d time.Duration) {
	m.acquire.Record(ctx, d.Seconds())
}

func (m metered) FlushWait(ctx context.Context, d time.Duration) { m.flush.Record(ctx, d.Seconds()) }

func (m metered) FlushGroup(ctx context.Context, size int) { m.group.Record(ctx, float64(size)) }

func (m metered) ListenReconnected(ctx context.Context, appName string) {
	m.listen.Add(ctx, 1, "bothy.component", appName)
}

// noMetrics is the default.
type noMetrics struct{}

func (noMetrics) UnitDone(context.Context, Outcome, time.Duration) {}
func (noMetrics) UnitRepeated(context.Context, string)             {}
func (noMetrics) AcquireWait(context.Context, time.Duration)       {}
func (noMetrics) FlushWait(context.Context, time.Duration)         {}
func (noMetrics) FlushGroup(context.Context, int)                  {}
func (noMetrics) ListenReconnected(context.Context, string)        {}

func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return OutcomeOK
	case CauseOf(err) == CauseOutcomeUnknown:
		return OutcomeUnknown
	case errs.As(err).Kind() == errs.KindInternal || errs.As(err).Kind() == errs.KindUnavailable:
		return OutcomeFailed
	}
	return OutcomeVeto
}

func retryReason(err error) string {
	if retryOf(err) == retryRights {
		return "stale_rights"
	}
	return State(err)
}
