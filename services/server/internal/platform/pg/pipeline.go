// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// statement is SQL that has been queued, or that is about to be sent.
type statement struct {
	sql  string
	args []any
	// row receives the row of a queued query, done the tag of a queued statement.
	row  func(pgx.Row) error
	done func(pgconn.CommandTag) error
	// mapErr gives a failure its meaning; nil passes it.
	mapErr func(error) error
	final  bool // a lock timeout is an answer, see FinalLockTimeout
	// veto says that row or done may refuse the commit, so COMMIT must not travel along.
	veto bool
}

// send puts BEGIN (before the first statement), everything queued and last into one
// pipeline, and reads the results of all but last. The caller reads and closes last; with
// a nil last the pipeline is closed here. u.mu is held.
func (u *unit) send(ctx context.Context, last *statement) (pgx.BatchResults, error) {
	switch {
	case u.ended:
		return nil, errors.New("pg: the unit of work has ended")
	case u.failed != nil:
		return nil, fmt.Errorf("pg: the unit of work has failed before: %w", u.failed)
	case u.reading:
		return nil, errors.New("pg: a statement was issued while a result is open")
	}
	if err := u.acquire(ctx); err != nil {
		u.fail(err)
		return nil, err
	}
	pending := append(u.prefix(), u.queue...)
	u.queue = nil
	if len(pending) == 0 && last == nil {
		return nil, nil
	}
	batch := &pgx.Batch{}
	for _, s := range pending {
		batch.Queue(s.sql, s.args...)
	}
	if last != nil {
		batch.Queue(last.sql, last.args...)
	}
	u.begun = true
	u.counters.Statements += batch.Len()
	u.counters.RoundTrips++
	results := u.conn.SendBatch(ctx, batch)
	for i := range pending {
		if err := pending[i].read(results); err != nil {
			_ = results.Close() // It repeats the same failure.
			u.fail(err)
			return nil, err
		}
	}
	if last != nil {
		return results, nil
	}
	if err := results.Close(); err != nil {
		u.fail(err)
		return nil, err
	}
	return nil, nil
}

// prefix opens the transaction, once.
func (u *unit) prefix() []statement {
	if u.begun {
		return nil
	}
	begin := []statement{{sql: beginWrite}}
	if u.readOnly {
		begin[0].sql = beginView
	}
	if d := u.opts.StatementTimeout; d > 0 {
		begin = append(begin, statement{sql: setTimeout, args: []any{milliseconds(d)}})
	}
	return begin
}

// acquire takes the connection and then notes the generation: a connection is handed out
// only while the flusher answers, and nothing has been sent on it yet.
func (u *unit) acquire(ctx context.Context) error {
	if u.conn != nil {
		return nil
	}
	conn, err := u.units.db.acquire(ctx)
	if err != nil {
		return err
	}
	u.conn = conn
	if err := u.units.db.flusherUp(ctx); err != nil {
		return err
	}
	u.generation = u.units.db.barrier.Generation()
	return nil
}

// read takes the statement's own result out of the pipeline.
func (s *statement) read(results pgx.BatchResults) error {
	var err error
	if s.row != nil {
		row := &trackedRow{Row: results.QueryRow()}
		if err = s.row(row); row.err != nil && !IsNoRows(row.err) {
			err = row.err
		}
	} else {
		var tag pgconn.CommandTag
		if tag, err = results.Exec(); err == nil && s.done != nil {
			return s.done(tag)
		}
	}
	if err == nil {
		return nil
	}
	if s.final && IsLockTimeout(err) {
		err = &finalLockTimeout{err: err}
	}
	if s.mapErr != nil && retryOf(err) == retryNone {
		return s.mapErr(err)
	}
	return err
}

// trackedRow remembers the failure of Scan, so a callback cannot hide a lost transaction.
type trackedRow struct {
	pgx.Row
	err error
}

// Scan implements pgx.Row.
func (r *trackedRow) Scan(dest ...any) error {
	r.err = r.Row.Scan(dest...)
	return r.err
}

// Counters counts what a unit sent. BEGIN and COMMIT are statements like others; a round
// trip is one pipeline. Preparing a statement for the first time on a connection costs a
// further one that is not counted.
type Counters struct{ Statements, RoundTrips int }

// CountersFrom gives what the running unit has sent so far.
func CountersFrom(ctx context.Context) Counters {
	if u, ok := txn.Current(ctx).(*unit); ok {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.counters
	}
	return Counters{}
}

// Meter sums the counters of units, including their commits and repetitions.
type Meter struct{ statements, roundTrips, units atomic.Int64 }

type meterKey struct{}

// WithMeter lets the units of the returned context add what they sent to a meter.
func WithMeter(ctx context.Context) (context.Context, *Meter) {
	m := &Meter{}
	return context.WithValue(ctx, meterKey{}, m), m
}

// Total is the sum so far.
func (m *Meter) Total() Counters {
	return Counters{Statements: int(m.statements.Load()), RoundTrips: int(m.roundTrips.Load())}
}

// Units is the number of attempts that have ended.
func (m *Meter) Units() int { return int(m.units.Load()) }

func (u *unit) report(ctx context.Context) {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		m.statements.Add(int64(u.counters.Statements))
		m.roundTrips.Add(int64(u.counters.RoundTrips))
		m.units.Add(1)
	}
}
