// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

func TestOnlyWhatDoConfirmedSurvivesACrash(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithFsync())
	ctx := context.Background()
	if err := b.units().Do(ctx, func(ctx context.Context) error { return insert(ctx, "confirmed") }); err != nil {
		t.Fatal(err)
	}
	// The same commit without the barrier shows that the crash loses what is not flushed.
	conn, err := b.db.Pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"SET synchronous_commit = off", "INSERT INTO things (id, name) VALUES (uuidv7(), 'without barrier')"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	b.db.Cluster.Kill()
	conn.Release()
	if err := b.db.Cluster.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server has recovered", func() bool { return b.db.Pool.Ping(ctx) == nil })
	if b.db.Count(t, "SELECT count(*) FROM things WHERE name = 'confirmed'") != 1 {
		t.Error("a confirmed row is gone")
	}
	if b.db.Count(t, "SELECT count(*) FROM things WHERE name = 'without barrier'") != 0 {
		t.Error("the crash lost nothing, so this test proves nothing")
	}
}

func TestManyCommitsShareFlushes(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithFsync(), pgtest.WithConfig(func(c *pg.Config) { c.MaxConns = 16 }))
	units := b.units()
	const writers, each = 16, 25
	before := b.db.Flusher().Flushes()
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				err := units.Do(context.Background(), func(ctx context.Context) error { return insert(ctx, fmt.Sprintf("%d/%d", w, i)) })
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	group.Wait()
	if got := b.things(t); got != writers*each {
		t.Errorf("%d rows, want %d", got, writers*each)
	}
	if flushes := b.db.Flusher().Flushes() - before; flushes >= writers*each {
		t.Errorf("%d flushes for %d commits: no group was made", flushes, writers*each)
	}
}

func TestATicketOfAnotherGenerationFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	barrier := b.db.Barrier()
	old := barrier.Generation()
	if err := barrier.Wait(ctx, old); err != nil {
		t.Fatal(err)
	}
	terminate(t, b, "bothy-flush")
	// The loss is noticed by the next flush, which must fail.
	if err := barrier.Wait(ctx, old); !errs.Is(err, errs.CodeUnavailable) || pg.CauseOf(err) != pg.CauseOutcomeUnknown {
		t.Fatalf("a flush on a lost connection gave %v", err)
	}
	eventually(t, "a new generation", func() bool { return barrier.Generation() == old+1 })
	if err := barrier.Wait(ctx, old); !errs.Is(err, errs.CodeUnavailable) {
		t.Errorf("a ticket of the old generation gave %v", err)
	}
	if err := barrier.Wait(ctx, barrier.Generation()); err != nil {
		t.Errorf("a ticket of the new generation gave %v", err)
	}
}

func TestAUnitAcrossGenerationsIsUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	units := b.units()
	err := units.Do(context.Background(), func(ctx context.Context) error {
		if err := b.bump(ctx, "a"); err != nil {
			return err
		}
		old := b.db.Barrier().Generation()
		terminate(t, b, "bothy-flush")
		_ = b.db.Barrier().Wait(ctx, old) // Makes the flusher notice.
		eventually(t, "a new generation", func() bool { return b.db.Barrier().Generation() > old })
		return nil
	})
	if !errs.Is(err, errs.CodeUnavailable) || pg.CauseOf(err) != pg.CauseOutcomeUnknown {
		t.Errorf("got %v", err)
	}
	if err := units.Do(context.Background(), func(ctx context.Context) error { return b.bump(ctx, "a") }); err != nil {
		t.Errorf("the next unit failed: %v", err)
	}
}

func TestUnsafeServersAreRefused(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, pgtest.WithMigrations()) // The shared cluster runs without fsync.
	cfg := pg.Default()
	cfg.DSN = db.DSN
	opened, err := pg.Open(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		opened.Close()
		t.Fatal("a server without fsync was accepted")
	}
}

func TestAFlushTakesNoLongerThanAllowed(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithFsync(), pgtest.WithConfig(func(c *pg.Config) { c.FlushTimeout = 200 * time.Millisecond }))
	pid := b.db.Count(t, "SELECT pid FROM pg_stat_activity WHERE application_name = 'bothy-flush'")
	resume := b.db.Cluster.Freeze(t, uint32(pid))
	defer resume()
	start := time.Now()
	err := b.units().Do(context.Background(), func(ctx context.Context) error { return insert(ctx, "a") })
	if !errs.Is(err, errs.CodeUnavailable) || pg.CauseOf(err) != pg.CauseOutcomeUnknown {
		t.Errorf("got %v", err)
	}
	if waited := time.Since(start); waited > 5*time.Second {
		t.Errorf("waited %s", waited)
	}
}

func TestAViewWaitsForWhatItMayHaveSeen(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithFsync(), pgtest.WithConfig(func(c *pg.Config) { c.FlushTimeout = 500 * time.Millisecond }))
	units := b.units()
	read := func() error {
		return units.View(context.Background(), func(ctx context.Context) error {
			_, err := b.db.Querier(ctx).Exec(ctx, "SELECT * FROM things")
			return err
		})
	}
	before := b.db.Flusher().Flushes()
	if err := read(); err != nil || b.db.Flusher().Flushes() != before {
		t.Errorf("a view without unflushed commits flushed, %v", err)
	}
	pid := b.db.Count(t, "SELECT pid FROM pg_stat_activity WHERE application_name = 'bothy-flush'")
	resume := b.db.Cluster.Freeze(t, uint32(pid))
	done := make(chan error, 1)
	go func() {
		done <- units.Do(context.Background(), func(ctx context.Context) error { return insert(ctx, "a") })
	}()
	eventually(t, "the commit is visible", func() bool { return b.things(t) == 1 })
	generation := b.db.Barrier().Generation()
	// It succeeds only when it came late and another connection has flushed meanwhile.
	if err := read(); err == nil && b.db.Barrier().Generation() == generation {
		t.Error("a view showed an unflushed commit")
	} else if err != nil && !errs.Is(err, errs.CodeUnavailable) {
		t.Errorf("a view of an unflushed commit gave %v", err)
	}
	if err := <-done; pg.CauseOf(err) != pg.CauseOutcomeUnknown {
		t.Errorf("the unit gave %v", err)
	}
	resume()
	// The unit has ended without a proof, so the next view brings it.
	eventually(t, "a view succeeds", func() bool { return read() == nil })
	before = b.db.Flusher().Flushes()
	if err := read(); err != nil || b.db.Flusher().Flushes() != before {
		t.Errorf("the doubt was not settled, %v", err)
	}
}

func TestAnIdleFlusherNoticesItsLoss(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := b.db.Barrier().Generation()
	terminate(t, b, "bothy-flush")
	eventually(t, "a new generation", func() bool { return b.db.Barrier().Generation() > old })
	if err := b.units().Do(context.Background(), func(ctx context.Context) error { return insert(ctx, "a") }); err != nil {
		t.Errorf("a unit after the loss gave %v", err)
	}
}

// terminate ends the backends with an application name.
func terminate(t testing.TB, b *bundle, app string) {
	t.Helper()
	n := b.db.Count(t, "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()", app)
	if n == 0 {
		t.Fatalf("no backend of %s", app)
	}
}

func BenchmarkUnit16Writers(b *testing.B) {
	for _, mode := range []string{pg.CommitGroupFlush, pg.CommitSynchronous} {
		for _, counter := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/counter=%t", mode, counter), func(b *testing.B) {
				s := setup(b, pgtest.WithCluster(pgtest.ClusterOptions{Durable: true, OnDisk: true}), pgtest.WithConfig(func(c *pg.Config) { c.MaxConns, c.CommitMode = 16, mode }))
				units := s.units()
				b.SetParallelism(8) // Times two processors.
				b.ResetTimer()
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						err := units.Do(context.Background(), func(ctx context.Context) error {
							if err := insert(ctx, ids.New().String()); err != nil || !counter {
								return err
							}
							return pg.QueuedExec(ctx, "UPDATE counters SET value = value + 1 WHERE name = 'a'", nil)
						})
						if err != nil {
							b.Error(err)
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			})
		}
	}
}
