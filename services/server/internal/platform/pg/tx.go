// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errNotYours answers an attempt to end a unit from inside.
var errNotYours = errors.New("pg: only the unit of work ends its transaction")

// Tx shows the running unit as a pgx.Tx, for libraries that insist on one: the jobs
// runtime inserts jobs in the transaction of their cause. Everything queued goes out before
// its statements. Commit and Rollback fail; Begin makes a savepoint.
func Tx(ctx context.Context) (pgx.Tx, error) {
	u, err := unitOf(ctx)
	switch {
	case err != nil:
		return nil, err
	case u == nil:
		return nil, errNoUnit
	case u.readOnly:
		return nil, errors.New("pg: a View has no transaction to write in")
	}
	return &unitTx{u: u}, nil
}

// unitTx is the unit itself, or with a savepoint a part of it.
type unitTx struct {
	u         *unit
	savepoint string
	before    error // failure of the unit when the savepoint was made
	depth     int
}

// Begin implements pgx.Tx with a savepoint.
func (t *unitTx) Begin(ctx context.Context) (pgx.Tx, error) {
	inner := &unitTx{u: t.u, depth: t.depth + 1, savepoint: fmt.Sprintf("unit_%d", t.depth+1), before: t.u.failed}
	if _, err := t.u.exec(ctx, "SAVEPOINT "+inner.savepoint, nil); err != nil {
		return nil, err
	}
	return inner, nil
}

// Commit implements pgx.Tx: it releases a savepoint and nothing else.
func (t *unitTx) Commit(ctx context.Context) error {
	if t.savepoint == "" {
		return errNotYours
	}
	_, err := t.u.exec(ctx, "RELEASE SAVEPOINT "+t.savepoint, nil)
	t.savepoint = ""
	return err
}

// Rollback implements pgx.Tx: it goes back to a savepoint and nothing else.
func (t *unitTx) Rollback(ctx context.Context) error {
	if t.savepoint == "" {
		return errNotYours
	}
	t.u.mu.Lock()
	defer t.u.mu.Unlock()
	t.u.queue = nil // What was queued since then belongs to what is undone.
	if t.u.conn == nil || t.u.reading {
		return errNotYours
	}
	if _, err := t.u.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT "+t.savepoint); err != nil {
		t.u.fail(err)
		return translate(err)
	}
	t.u.failed, t.savepoint = t.before, ""
	return nil
}

// Exec implements pgx.Tx.
func (t *unitTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.u.exec(ctx, sql, args)
}

// Query implements pgx.Tx.
func (t *unitTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.u.query(ctx, sql, args)
}

// QueryRow implements pgx.Tx.
func (t *unitTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := t.u.query(ctx, sql, args)
	if err != nil {
		return errorRow{err}
	}
	return singleRow{rows}
}

// CopyFrom implements pgx.Tx.
func (t *unitTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error) {
	t.u.mu.Lock()
	defer t.u.mu.Unlock()
	if _, err := t.u.send(ctx, nil); err != nil {
		return 0, translate(err)
	}
	t.u.counters.Statements++
	t.u.counters.RoundTrips++
	n, err := t.u.conn.CopyFrom(ctx, table, columns, source)
	if err != nil {
		t.u.fail(err)
	}
	return n, translate(err)
}

// SendBatch implements pgx.Tx. The results must be closed before the next statement.
func (t *unitTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	t.u.mu.Lock()
	defer t.u.mu.Unlock()
	if _, err := t.u.send(ctx, nil); err != nil {
		return failedBatch{err: translate(err)}
	}
	t.u.counters.Statements += b.Len()
	t.u.counters.RoundTrips++
	t.u.reading = true
	return &unitBatch{BatchResults: t.u.conn.SendBatch(ctx, b), u: t.u}
}

// LargeObjects implements pgx.Tx; there are none here.
func (t *unitTx) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Prepare implements pgx.Tx by refusing: statements are prepared by themselves.
func (t *unitTx) Prepare(context.Context, string, string) (*pgconn.StatementDescription, error) {
	return nil, errors.New("pg: statements of a unit are prepared by the pool")
}

// Conn implements pgx.Tx. The connection must not be used beside the transaction.
func (t *unitTx) Conn() *pgx.Conn {
	if t.u.conn == nil {
		return nil
	}
	return t.u.conn.Conn()
}

type unitBatch struct {
	pgx.BatchResults
	u *unit
}

// Close implements pgx.BatchResults.
func (b *unitBatch) Close() error {
	err := b.BatchResults.Close()
	b.u.mu.Lock()
	defer b.u.mu.Unlock()
	b.u.reading = false
	if err != nil {
		b.u.fail(err)
	}
	return translate(err)
}

type failedBatch struct {
	pgx.BatchResults
	err error
}

// Exec implements pgx.BatchResults.
func (b failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, b.err }

// Query implements pgx.BatchResults.
func (b failedBatch) Query() (pgx.Rows, error) { return nil, b.err }

// QueryRow implements pgx.BatchResults.
func (b failedBatch) QueryRow() pgx.Row { return errorRow{b.err} }

// Close implements pgx.BatchResults.
func (b failedBatch) Close() error { return b.err }
