// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errNoUnit answers a write outside a unit of work: nothing would make it durable, order
// it or undo it.
var errNoUnit = errors.New("pg: there is no unit of work to write in")

// QueueOption says what happens with the result of a queued statement.
type QueueOption func(*statement)

// MapError translates a failure of the statement, for example a violated constraint. It
// does not see failures that repeat the unit.
func MapError(fn func(error) error) QueueOption { return func(s *statement) { s.mapErr = fn } }

// ExpectRows fails the unit with err unless the statement touched exactly n rows. Like
// OnDone it costs a round trip when no read follows.
func ExpectRows(n int64, err error) QueueOption {
	return OnDone(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != n {
			return err
		}
		return nil
	})
}

// OnDone hands the command tag over when the pipeline is read; an error fails the unit, so
// COMMIT waits for it.
func OnDone(fn func(pgconn.CommandTag) error) QueueOption {
	return func(s *statement) { s.done, s.veto = fn, true }
}

// MayVeto says that the callback of QueuedRow may refuse the unit, so COMMIT waits for it.
func MayVeto() QueueOption { return func(s *statement) { s.veto = true } }

// Queued is the handle for writes whose result the use case does not need. Exec only
// notes the statement; it travels with the next read or with the commit, and a failure
// then fails the unit. The arguments must not change afterwards. The returned command tag
// is empty, and the handle cannot read.
func Queued(ctx context.Context, opts ...QueueOption) DBTX { return &queuedHandle{opts: opts} }

// QueuedRow queues a query for one row and hands the row to scan when the pipeline is
// read. COMMIT may travel in the same pipeline, so scan only takes values: its error then
// comes after the commit and is reported as internal. See MayVeto.
func QueuedRow(ctx context.Context, sql string, args []any, scan func(pgx.Row) error, opts ...QueueOption) error {
	return enqueue(ctx, statement{sql: sql, args: args, row: scan}, opts)
}

// QueuedExec queues a statement.
func QueuedExec(ctx context.Context, sql string, args []any, opts ...QueueOption) error {
	return enqueue(ctx, statement{sql: sql, args: args}, opts)
}

// Flush sends what is queued and reads its results, in one round trip. Without anything
// queued it does nothing.
func Flush(ctx context.Context) error {
	u, err := unitOf(ctx)
	if err != nil {
		return err
	}
	if u == nil {
		return errNoUnit
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) == 0 {
		return nil
	}
	_, err = u.send(ctx, nil)
	return translate(err)
}

// QueueLength is the number of statements waiting in the running unit.
func QueueLength(ctx context.Context) int {
	if u, err := unitOf(ctx); err == nil && u != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		return len(u.queue)
	}
	return 0
}

func enqueue(ctx context.Context, s statement, opts []QueueOption) error {
	u, err := unitOf(ctx)
	switch {
	case err != nil:
		return err
	case u == nil:
		return errNoUnit
	case u.readOnly:
		return errors.New("pg: a View cannot write")
	}
	for _, opt := range opts {
		opt(&s)
	}
	s.final = ctx.Value(finalLockKey{}) != nil
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failed != nil {
		return fmt.Errorf("pg: the unit of work has failed before: %w", u.failed)
	}
	u.queue = append(u.queue, s)
	return nil
}

type queuedHandle struct{ opts []QueueOption }

// Exec implements DBTX.
func (h *queuedHandle) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, enqueue(ctx, statement{sql: sql, args: args}, h.opts)
}

// Query implements DBTX by refusing.
func (h *queuedHandle) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return nil, errors.New("pg: a queued handle cannot read; use Querier or QueuedRow")
}

// QueryRow implements DBTX by refusing.
func (h *queuedHandle) QueryRow(context.Context, string, ...any) pgx.Row {
	return errorRow{errors.New("pg: a queued handle cannot read; use Querier or QueuedRow")}
}

type errorRow struct{ err error }

// Scan implements pgx.Row.
func (r errorRow) Scan(...any) error { return r.err }
