// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DBTX is what generated queries run on.
type DBTX interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Querier is the handle for statements whose result is needed now. Inside a unit it sends
// everything queued and the statement in one round trip; outside it reads from the pool,
// where a write fails. Only one result may be open at a time.
func (db *DB) Querier(ctx context.Context) DBTX { return querier{db: db} }

// querier finds the unit in the context of each call, so a handle may be kept.
type querier struct{ db *DB }

// Exec implements DBTX.
func (q querier) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	u, err := unitOf(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	if u == nil {
		return q.poolExec(ctx, sql, args)
	}
	return u.exec(ctx, sql, args)
}

// Query implements DBTX.
func (q querier) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	u, err := unitOf(ctx)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return q.poolQuery(ctx, sql, args)
	}
	return u.query(ctx, sql, args)
}

// QueryRow implements DBTX.
func (q querier) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return errorRow{err}
	}
	return singleRow{rows}
}

func (q querier) poolExec(ctx context.Context, sql string, args []any) (pgconn.CommandTag, error) {
	conn, err := q.db.acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer conn.Release()
	tag, err := conn.Exec(ctx, sql, args...)
	return tag, translate(err)
}

func (q querier) poolQuery(ctx context.Context, sql string, args []any) (pgx.Rows, error) {
	conn, err := q.db.acquire(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		conn.Release()
		return nil, translate(err)
	}
	return &poolRows{Rows: rows, conn: conn}, nil
}

// exec runs one statement of the unit with the queue in front.
func (u *unit) exec(ctx context.Context, sql string, args []any) (pgconn.CommandTag, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	results, err := u.send(ctx, &statement{sql: sql, args: args})
	if err != nil {
		return pgconn.CommandTag{}, translate(err)
	}
	tag, err := results.Exec()
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	if err = markFinal(ctx, err); err != nil {
		u.fail(err)
	}
	return tag, translate(err)
}

func (u *unit) query(ctx context.Context, sql string, args []any) (pgx.Rows, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	results, err := u.send(ctx, &statement{sql: sql, args: args})
	if err != nil {
		return nil, translate(err)
	}
	u.reading = true
	rows, _ := results.Query() // A failure is in rows.Err as well.
	return &unitRows{Rows: rows, ctx: ctx, u: u, results: results}, nil
}

// unitRows is a result inside a unit. Closing it ends the pipeline and tells the unit
// about a failure.
type unitRows struct {
	pgx.Rows
	ctx     context.Context
	u       *unit
	results pgx.BatchResults
	closed  bool
	err     error
}

// Next implements pgx.Rows.
func (r *unitRows) Next() bool {
	if r.closed {
		return false
	}
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Close implements pgx.Rows.
func (r *unitRows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.Rows.Close()
	err := r.results.Close()
	if rowsErr := r.Rows.Err(); rowsErr != nil {
		err = rowsErr
	}
	r.u.mu.Lock()
	defer r.u.mu.Unlock()
	r.u.reading = false
	if err = markFinal(r.ctx, err); err != nil {
		r.u.fail(err)
	}
	r.err = translate(err)
}

// Err implements pgx.Rows.
func (r *unitRows) Err() error {
	if r.closed {
		return r.err
	}
	return r.Rows.Err()
}

// poolRows is a result outside a unit; closing it gives the connection back.
type poolRows struct {
	pgx.Rows
	conn   *pgxpool.Conn
	closed bool
}

// Next implements pgx.Rows.
func (r *poolRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Close implements pgx.Rows.
func (r *poolRows) Close() {
	r.Rows.Close()
	if !r.closed {
		r.closed = true
		r.conn.Release()
	}
}

// Err implements pgx.Rows.
func (r *poolRows) Err() error { return translate(r.Rows.Err()) }

// singleRow reads the first row of a result and closes it.
type singleRow struct{ rows pgx.Rows }

// Scan implements pgx.Row: pgx.ErrNoRows when there is none.
func (r singleRow) Scan(dest ...any) error {
	defer r.rows.Close()
	if !r.rows.Next() {
		r.rows.Close()
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return fmt.Errorf("scan a row: %w", err)
	}
	r.rows.Close()
	return r.rows.Err()
}
