// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// What Do has confirmed must be there after any crash of the database; what it has not
// confirmed may be there or not.

func TestACrashBetweenCommitAndFlushIsNotConfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithFsync())
	var told atomic.Int32
	b.registry.SetHooks(txn.Hooks{Committed: func(context.Context) { told.Add(1) }})
	units := b.units()
	ctx := context.Background()
	refused := errors.New("refused")
	if err := units.Do(ctx, func(context.Context) error { return refused }); !errors.Is(err, refused) || told.Load() != 0 {
		t.Errorf("%v, and the hook of commits ran %d times", err, told.Load())
	}
	if err := units.Do(ctx, func(ctx context.Context) error { return insert(ctx, "kept") }); err != nil {
		t.Fatal(err)
	}
	pid := b.db.Count(t, "SELECT pid FROM pg_stat_activity WHERE application_name = 'bothy-flush'")
	resume := b.db.Cluster.Freeze(t, uint32(pid)) // The flush cannot happen, the commit can.
	result := make(chan error, 1)
	go func() {
		result <- units.Do(ctx, func(ctx context.Context) error { return insert(ctx, "doubtful") })
	}()
	eventually(t, "the commit is visible", func() bool { return b.things(t) == 2 })
	eventually(t, "readers are told before the flush", func() bool { return told.Load() == 2 })
	b.db.Cluster.Kill()
	resume()
	err := <-result
	if !errs.Is(err, errs.CodeUnavailable) || pg.CauseOf(err) != pg.CauseOutcomeUnknown {
		t.Errorf("got %v", err)
	}
	if err := b.db.Cluster.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "units work again", func() bool {
		return units.Do(ctx, func(ctx context.Context) error { return b.bump(ctx, "a") }) == nil
	})
	eventually(t, "the other pool works again", func() bool { return b.db.Pool.Ping(ctx) == nil })
	if b.db.Count(t, "SELECT count(*) FROM things WHERE name = 'kept'") != 1 {
		t.Error("a confirmed row is gone")
	}
}

func TestConfirmedCommitsSurviveKilledBackends(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithFsync(), pgtest.WithConfig(func(c *pg.Config) { c.MaxConns = 8 }))
	units := b.units()
	ctx, stop := context.WithCancel(context.Background())
	var mu sync.Mutex
	confirmed := map[string]bool{}
	unknown := 0
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%d/%d", w, i)
				err := units.Do(context.Background(), func(ctx context.Context) error { return insert(ctx, name) })
				mu.Lock()
				if err == nil {
					confirmed[name] = true
				} else {
					unknown++
				}
				mu.Unlock()
			}
		})
	}
	size := func() int { mu.Lock(); defer mu.Unlock(); return len(confirmed) }
	for round := range 3 {
		before := size()
		eventually(t, "commits are confirmed", func() bool { return size() > before+50 })
		var pid uint32
		eventually(t, "a backend to kill", func() bool {
			return b.db.Pool.QueryRow(context.Background(), "SELECT pg_backend_pid()").Scan(&pid) == nil
		})
		if err := b.db.Cluster.KillBackend(pid); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		eventually(t, "the server has recovered", func() bool { return b.db.Pool.Ping(context.Background()) == nil })
	}
	before := size()
	eventually(t, "commits are confirmed again", func() bool { return size() > before+50 })
	stop()
	group.Wait()
	rows, err := b.db.Pool.Query(context.Background(), "SELECT name FROM things")
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		stored[name] = true
	}
	for name := range confirmed {
		if !stored[name] {
			t.Errorf("%s was confirmed and is gone", name)
		}
	}
	t.Logf("%d confirmed, %d unknown, %d stored", len(confirmed), unknown, len(stored))
}

func TestALostDatabaseIsUnavailableAndComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithFsync())
	units := b.units()
	ctx := context.Background()
	work := func(ctx context.Context) error { return b.bump(ctx, "a") }
	if err := units.Do(ctx, work); err != nil {
		t.Fatal(err)
	}
	b.db.Cluster.Kill()
	if err := units.Do(ctx, work); !errs.Is(err, errs.CodeUnavailable) {
		t.Errorf("a unit without a database gave %v", err)
	}
	if err := b.db.Ping(ctx); !errs.Is(err, errs.CodeUnavailable) {
		t.Errorf("a ping without a database gave %v", err)
	}
	if err := b.db.Cluster.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "units work again", func() bool { return units.Do(ctx, work) == nil })
}

func TestAConnectionThatBreaksDuringCommitLeavesTheOutcomeOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// The commit waits in a deferred trigger, where its connection is ended.
	b.db.Exec(t, `
		CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON things DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()`)
	units := b.units()
	result := make(chan error, 1)
	attempts := 0
	go func() {
		result <- units.Do(context.Background(), func(ctx context.Context) error {
			attempts++
			return insert(ctx, "a")
		})
	}()
	eventually(t, "the commit is under way and ended", func() bool {
		return b.db.Count(t, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'PgSleep'`) == 1
	})
	if err := <-result; !errs.Is(err, errs.CodeUnavailable) || pg.CauseOf(err) != pg.CauseOutcomeUnknown {
		t.Errorf("got %v", err)
	}
	if attempts != 1 {
		t.Errorf("%d attempts: an unknown outcome must not be repeated", attempts)
	}
}

func TestADeferredConstraintIsAKnownFailure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.db.Exec(t, "ALTER TABLE things ADD CONSTRAINT things_n_unique UNIQUE (n) DEFERRABLE INITIALLY DEFERRED")
	err := b.units().Do(context.Background(), func(ctx context.Context) error { return errors.Join(insert(ctx, "a"), insert(ctx, "b")) })
	if pg.Constraint(err) != "things_n_unique" || errs.Is(err, errs.CodeUnavailable) {
		t.Errorf("got %v", err)
	}
	if b.things(t) != 0 {
		t.Error("rows are there")
	}
}
