// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

const (
	beginWrite   = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	beginView    = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	commitUnit   = "COMMIT"
	setTimeout   = "SELECT set_config('statement_timeout', $1, true)"
	rollbackTime = 2 * time.Second
)

// unit is one attempt of a unit of work. It belongs to the goroutine that runs it; the
// lock makes a wrong concurrent use an error instead of a broken protocol.
type unit struct {
	units    *Units
	opts     txn.Options
	readOnly bool
	registry *txn.Registry
	now      time.Time

	phase          txn.Phase
	rightsDeclared bool
	values         map[any]any

	mu         sync.Mutex
	conn       *pgxpool.Conn
	generation uint64 // of the flusher, noted before the first statement; 0 before it
	begun      bool
	reading    bool // a result is open
	ended      bool
	queue      []statement
	failed     error // first failure of a statement or a nested unit: only rollback is left
	counters   Counters
}

var _ txn.Unit = (*unit)(nil)

func (s *Units) newUnit(o txn.Options, readOnly bool) *unit {
	return &unit{units: s, opts: o, readOnly: readOnly, registry: s.registry, now: s.clock.Now(), values: map[any]any{}}
}

// unitOf is the running unit of the context, nil outside. A unit of another
// implementation is refused: its transaction is not ours.
func unitOf(ctx context.Context) (*unit, error) {
	current := txn.Current(ctx)
	if current == nil {
		return nil, nil
	}
	u, ok := current.(*unit)
	if !ok {
		return nil, fmt.Errorf("pg: the context carries a unit of type %T", current)
	}
	if u.ended {
		return nil, errors.New("pg: the context outlived its unit of work")
	}
	return u, nil
}

// Phase implements txn.Unit.
func (u *unit) Phase() txn.Phase { return u.phase }

// ReadOnly implements txn.Unit.
func (u *unit) ReadOnly() bool { return u.readOnly }

// Value implements txn.Unit.
func (u *unit) Value(key any) any { return u.values[key] }

// SetValue implements txn.Unit.
func (u *unit) SetValue(key, value any) { u.values[key] = value }

// Now implements txn.Unit.
func (u *unit) Now() time.Time { return u.now }

// Registry implements txn.Unit.
func (u *unit) Registry() *txn.Registry { return u.registry }

func (u *unit) fail(err error) {
	if u.failed == nil {
		u.failed = err
	}
}

// outcome joins what fn said with what the statements said. A failure that asks for a
// repetition wins over what fn made of it; a failure that fn swallowed still counts,
// because the transaction is lost.
func (u *unit) outcome(err error) error {
	if u.failed != nil && (err == nil || retryOf(u.failed) != retryNone) {
		return u.failed
	}
	return err
}

// commit sends what is queued together with COMMIT in one round trip and releases the
// connection. A connection that breaks here leaves the outcome unknown.
func (u *unit) commit(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer u.end()
	if !u.begun && len(u.queue) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return unavailable(CauseDeadline, ctx.Err())
	}
	if u.reading {
		return errors.New("pg: a result is still open at the end of the unit")
	}
	// From here on the caller's patience must not decide between two outcomes.
	limit := u.units.db.cfg.LockTimeout + 2*max(u.units.db.cfg.StatementTimeout, u.opts.StatementTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if u.mustCheckFirst() {
		if _, err := u.send(ctx, nil); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	var tag pgconn.CommandTag
	results, err := u.send(ctx, &statement{sql: commitUnit})
	if err == nil {
		tag, err = results.Exec()
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		return u.commitError(err)
	}
	if tag.String() != "COMMIT" {
		return fmt.Errorf("pg: the server answered COMMIT with %s", tag)
	}
	return nil
}

// mustCheckFirst reports whether something queued may still refuse the commit.
func (u *unit) mustCheckFirst() bool {
	return slices.ContainsFunc(u.queue, func(s statement) bool { return s.veto })
}

// commitError tells a refusal of the server from an unknown outcome, and both from a
// callback that failed after the commit.
func (u *unit) commitError(err error) error {
	u.fail(err)
	switch {
	case u.outcomeUnknown(err):
		return unavailable(CauseOutcomeUnknown, fmt.Errorf("commit: %w", err))
	case State(err) == "" && u.leftTransaction():
		return errs.Internal(fmt.Errorf("a queued row could not be read, and the unit is probably committed: %w", err))
	}
	return fmt.Errorf("commit: %w", err)
}

// leftTransaction reports whether the server has left the transaction: after a failed
// statement it stays inside until told to roll back.
func (u *unit) leftTransaction() bool {
	return u.begun && u.conn != nil && !u.conn.Conn().IsClosed() && u.conn.Conn().PgConn().TxStatus() == 'I'
}

// outcomeUnknown tells an answer of the server, which means rolled back, from a broken
// connection.
func (u *unit) outcomeUnknown(err error) bool {
	if u.conn == nil || !u.begun {
		return false
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Severity != "ERROR"
	}
	return u.conn.Conn().IsClosed()
}

// rollback ends a unit that has not committed; after a commit it does nothing.
func (u *unit) rollback(ctx context.Context) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.end()
	_ = ctx
}

// end releases the connection; a transaction that is still open is rolled back first, on
// a clock of its own because the caller may be gone.
func (u *unit) end() {
	u.ended = true
	u.queue = nil
	if u.conn == nil {
		return
	}
	raw := u.conn.Conn()
	if !raw.IsClosed() && raw.PgConn().TxStatus() != 'I' && !raw.PgConn().IsBusy() {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTime)
		_, _ = raw.Exec(ctx, "ROLLBACK")
		cancel()
	}
	u.conn.Release() // A connection that is closed, busy or in a transaction leaves the pool.
	u.conn = nil
}
