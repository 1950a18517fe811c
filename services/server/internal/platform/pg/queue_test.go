// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

func TestQueuedStatementsTravelTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work func(ctx context.Context, b *bundle) error
		want pg.Counters
	}{
		"writes alone go with the commit": {
			work: func(ctx context.Context, _ *bundle) error { return errors.Join(insert(ctx, "a"), insert(ctx, "b")) },
			want: pg.Counters{Statements: 4, RoundTrips: 1}, // BEGIN, two rows, COMMIT
		},
		"a read takes the writes before it along": {
			work: func(ctx context.Context, b *bundle) error {
				if err := insert(ctx, "a"); err != nil {
					return err
				}
				var n int
				if err := b.db.Querier(ctx).QueryRow(ctx, "SELECT count(*) FROM things").Scan(&n); err != nil {
					return err
				}
				if n != 1 {
					t.Errorf("the read sees %d rows", n)
				}
				return insert(ctx, "b")
			},
			want: pg.Counters{Statements: 5, RoundTrips: 2},
		},
		"a flush sends what waits, once": {
			work: func(ctx context.Context, _ *bundle) error {
				return errors.Join(insert(ctx, "a"), pg.Flush(ctx), pg.Flush(ctx))
			},
			want: pg.Counters{Statements: 3, RoundTrips: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ctx, meter := pg.WithMeter(context.Background())
			if err := b.units().Do(ctx, func(ctx context.Context) error { return c.work(ctx, b) }); err != nil {
				t.Fatal(err)
			}
			if got := meter.Total(); got != c.want {
				t.Errorf("sent %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheTailOfHooksIsOnePipeline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var value int64
	queued := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			return pg.QueuedRow(ctx, "UPDATE counters SET value = value + 3 WHERE name = $1 RETURNING value", []any{name},
				func(row pgx.Row) error { return row.Scan(&value) })
		}
	}
	b.registry.SetHooks(txn.Hooks{Log: queued("a"), Audit: queued("b")})
	ctx, meter := pg.WithMeter(context.Background())
	if err := b.units().Do(ctx, func(ctx context.Context) error { return insert(ctx, "a") }); err != nil {
		t.Fatal(err)
	}
	if value != 3 {
		t.Errorf("the number did not come back with the pipeline: %d", value)
	}
	if got := meter.Total(); got != (pg.Counters{Statements: 5, RoundTrips: 1}) {
		t.Errorf("sent %+v", got)
	}
}

func TestAQueuedStatementSeesTheOneBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var seen int64
	err := b.units().Do(context.Background(), func(ctx context.Context) error {
		return errors.Join(
			pg.QueuedExec(ctx, "UPDATE counters SET value = 7 WHERE name = 'a'", nil),
			pg.QueuedRow(ctx, "SELECT value FROM counters WHERE name = 'a'", nil, func(row pgx.Row) error { return row.Scan(&seen) }),
		)
	})
	if err != nil || seen != 7 {
		t.Errorf("saw %d, %v", seen, err)
	}
}

func TestAFailedQueuedStatementFailsTheUnit(t *testing.T) {
	t.Parallel()
	taken := errs.Conflict("name_taken", "The name is taken.")
	mapped := pg.MapError(func(err error) error {
		if pg.Constraint(err) == "things_name_unique" {
			return taken
		}
		return err
	})
	for name, c := range map[string]struct {
		work func(ctx context.Context, b *bundle) error
		want error
	}{
		"mapped, with the commit": {
			work: func(ctx context.Context, _ *bundle) error { return insert(ctx, "old", mapped) }, want: taken,
		},
		"mapped, with a read whose error is swallowed": {
			work: func(ctx context.Context, b *bundle) error {
				if err := insert(ctx, "old", mapped); err != nil {
					return err
				}
				if err := b.bump(ctx, "a"); !errors.Is(err, taken) {
					t.Errorf("the read gave %v", err)
				}
				return nil
			}, want: taken,
		},
		"wrong number of rows": {
			work: func(ctx context.Context, _ *bundle) error {
				return pg.QueuedExec(ctx, "UPDATE things SET n = 1 WHERE name = 'absent'", nil, pg.ExpectRows(1, errs.NotFound()))
			}, want: errs.NotFound(),
		},
		"a veto of the callback": {
			work: func(ctx context.Context, _ *bundle) error {
				return pg.QueuedRow(ctx, "SELECT 1", nil, func(pgx.Row) error { return taken }, pg.MayVeto())
			}, want: taken,
		},
		"a failure that the callback hides": {
			work: func(ctx context.Context, _ *bundle) error {
				return pg.QueuedRow(ctx, "SELECT 1 / $1::int", []any{0}, func(row pgx.Row) error { var n int; _ = row.Scan(&n); return nil })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.db.Exec(t, "INSERT INTO things (id, name) VALUES ($1, 'old')", ids.New())
			err := b.units().Do(context.Background(), func(ctx context.Context) error {
				if err := insert(ctx, "new"); err != nil {
					return err
				}
				return c.work(ctx, b)
			})
			if err == nil || c.want != nil && errs.As(err).Code != errs.As(c.want).Code {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if b.things(t) != 1 {
				t.Error("the unit was committed")
			}
			if b.db.Stat().AcquiredConns() != 0 {
				t.Error("the connection is still out")
			}
		})
	}
}

func TestAFailedUnitGoesNoFurther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.units().Do(context.Background(), func(ctx context.Context) error {
		if _, err := b.db.Querier(ctx).Exec(ctx, "SELECT 1 / 0"); pg.State(err) != "22012" {
			t.Errorf("got %v", err)
		}
		if err := b.bump(ctx, "a"); pg.State(err) != "22012" {
			t.Errorf("a statement after a failure gave %v", err)
		}
		if err := insert(ctx, "a"); err == nil {
			t.Error("a write was queued after a failure")
		}
		return nil
	})
	if pg.State(err) != "22012" {
		t.Errorf("got %v", err)
	}
}

func TestOnlyOneResultIsOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.units().View(context.Background(), func(ctx context.Context) error {
		rows, err := b.db.Querier(ctx).Query(ctx, "SELECT generate_series(1, 3)")
		if err != nil {
			return err
		}
		if err := b.db.Querier(ctx).QueryRow(ctx, "SELECT 1").Scan(new(int)); err == nil {
			t.Error("a second result was opened")
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(got, []int{1, 2, 3}) {
			t.Errorf("rows %v", got)
		}
		return b.db.Querier(ctx).QueryRow(ctx, "SELECT 1").Scan(new(int))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNoRowsIsNotAFailure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.units().Do(context.Background(), func(ctx context.Context) error {
		err := b.db.Querier(ctx).QueryRow(ctx, "SELECT n FROM things WHERE name = 'absent'").Scan(new(int))
		if !pg.IsNoRows(err) || !errs.Is(pg.NotFound(err), errs.CodeNotFound) {
			t.Errorf("got %v", err)
		}
		return insert(ctx, "a")
	})
	if err != nil || b.things(t) != 1 {
		t.Errorf("got %v", err)
	}
}

func TestIdentifiersTravelAsBinaryUUIDs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, other := ids.New(), ids.New()
	err := b.units().View(context.Background(), func(ctx context.Context) error {
		var one ids.ID
		var none, some *ids.ID
		var many, empty []ids.ID
		if err := b.db.Querier(ctx).QueryRow(ctx, "SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid[], '{}'::uuid[]",
			id, (*ids.ID)(nil), &other, []ids.ID{id, other}).Scan(&one, &none, &some, &many, &empty); err != nil {
			return err
		}
		if one != id || none != nil || *some != other || !reflect.DeepEqual(many, []ids.ID{id, other}) || len(empty) != 0 {
			t.Errorf("read %v %v %v %v %v", one, none, some, many, empty)
		}
		one = other
		if err := b.db.Querier(ctx).QueryRow(ctx, "SELECT NULL::uuid").Scan(&one); err != nil || !one.IsZero() {
			t.Errorf("NULL gave %v, %v", one, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTxServesLibraries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.units().Do(context.Background(), func(ctx context.Context) error {
		if err := insert(ctx, "queued"); err != nil {
			return err
		}
		tx, err := pg.Tx(ctx)
		if err != nil {
			return err
		}
		if tx.Commit(ctx) == nil || tx.Rollback(ctx) == nil {
			t.Error("a library ended the unit")
		}
		inner, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := inner.Exec(ctx, "INSERT INTO things (id, name) VALUES ($1, 'queued')", ids.New()); !pg.IsUnique(err) {
			t.Errorf("got %v", err)
		}
		if err := inner.Rollback(ctx); err != nil {
			return err
		}
		n, err := tx.CopyFrom(ctx, pgx.Identifier{"things"}, []string{"id", "name"}, pgx.CopyFromRows([][]any{{ids.New(), "copied"}}))
		if err != nil || n != 1 {
			t.Errorf("copied %d, %v", n, err)
		}
		batch := &pgx.Batch{}
		batch.Queue("UPDATE things SET n = 5")
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.db.Count(t, "SELECT sum(n)::bigint FROM things"); got != 10 {
		t.Errorf("sum %d, want 10", got)
	}
}

func TestTheCommandTagArrivesWithThePipeline(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithConfig(func(c *pg.Config) { c.CommitMode = pg.CommitSynchronous }))
	var touched int64
	err := b.units().Do(context.Background(), func(ctx context.Context) error {
		return pg.QueuedExec(ctx, "UPDATE counters SET value = 1", nil, pg.OnDone(func(tag pgconn.CommandTag) error {
			touched = tag.RowsAffected()
			return nil
		}))
	})
	if err != nil || touched != 2 {
		t.Errorf("touched %d rows, %v", touched, err)
	}
}
