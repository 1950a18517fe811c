// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

func TestPhasesRunInTheirOrder(t *testing.T) {
	t.Parallel()
	change := txn.WithRightsChange(txn.RightsChange{Action: "grant.create", Everyone: true})
	for name, c := range map[string]struct {
		opts []txn.Option
		want []string
	}{
		"plain":            {want: []string{"work", "log", "audit"}},
		"change of rights": {opts: []txn.Option{change}, want: []string{"begin", "work", "rights", "log", "audit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.registry.SetHooks(b.hooks())
			err := b.units().Do(context.Background(), func(ctx context.Context) error {
				b.trace.add("work")
				return insert(ctx, "a")
			}, c.opts...)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.trace.all(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("steps %v, want %v", got, c.want)
			}
			if b.things(t) != 1 {
				t.Error("the row is not there")
			}
		})
	}
}

func TestAnErrorAnywhereRollsBack(t *testing.T) {
	t.Parallel()
	veto := errors.New("veto")
	fails := func(context.Context) error { return veto }
	failsRights := func(context.Context, txn.RightsChange) error { return veto }
	for name, hooks := range map[string]txn.Hooks{
		"begin": {RightsBegin: failsRights}, "rights": {RightsCheck: failsRights}, "log": {Log: fails}, "audit": {Audit: fails},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.registry.SetHooks(hooks)
			err := b.units().Do(context.Background(), func(ctx context.Context) error {
				if err := insert(ctx, "a"); err != nil {
					return err
				}
				return b.bump(ctx, "a") // Sends the row, so there is something to undo.
			}, txn.WithRightsChange(txn.RightsChange{}))
			if !errors.Is(err, veto) {
				t.Errorf("got %v", err)
			}
			if b.things(t) != 0 {
				t.Error("the row survived")
			}
		})
	}
}

func TestAPanicRollsBackAndGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	units := b.units()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = units.Do(context.Background(), func(ctx context.Context) error {
			if err := b.bump(ctx, "a"); err != nil {
				return err
			}
			panic("fault")
		})
	}()
	if got := b.db.Count(t, "SELECT value FROM counters WHERE name = 'a'"); got != 0 {
		t.Errorf("counter %d", got)
	}
	if got := b.db.Stat().AcquiredConns(); got != 0 {
		t.Errorf("%d connections are still out", got)
	}
}

func TestNestedUnitsJoin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registry.SetHooks(b.hooks())
	units := b.units()
	err := units.Do(context.Background(), func(ctx context.Context) error {
		if err := insert(ctx, "outer"); err != nil {
			return err
		}
		return units.Do(ctx, func(ctx context.Context) error {
			return units.View(ctx, func(ctx context.Context) error {
				var n int
				if err := b.db.Querier(ctx).QueryRow(ctx, "SELECT count(*) FROM things").Scan(&n); err != nil {
					return err
				}
				if n != 1 {
					t.Errorf("the nested read sees %d rows", n)
				}
				return insert(ctx, "inner")
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.trace.all(); !reflect.DeepEqual(got, []string{"log", "audit"}) {
		t.Errorf("hooks %v", got)
	}
	if b.things(t) != 2 {
		t.Error("rows are missing")
	}
}

func TestANestedErrorFailsTheUnitEvenWhenSwallowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	units := b.units()
	half := errors.New("half done")
	err := units.Do(context.Background(), func(ctx context.Context) error {
		_ = units.Do(ctx, func(ctx context.Context) error {
			if err := insert(ctx, "half"); err != nil {
				return err
			}
			return half
		})
		return nil
	})
	if !errors.Is(err, half) {
		t.Errorf("got %v", err)
	}
	if b.things(t) != 0 {
		t.Error("half a unit was committed")
	}
}

func TestLateChangeOfRights(t *testing.T) {
	t.Parallel()
	change := txn.WithRightsChange(txn.RightsChange{Action: "grant.create"})
	nothing := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		outer  []txn.Option
		inner  int // nested declarations
		refuse bool
		want   []string
	}{
		"allowed once":               {outer: []txn.Option{txn.AllowLateRightsChange()}, inner: 1, want: []string{"begin", "rights", "log", "audit"}},
		"refused twice":              {outer: []txn.Option{txn.AllowLateRightsChange()}, inner: 2, refuse: true},
		"refused without permission": {inner: 1, refuse: true},
		"refused after the outer":    {outer: []txn.Option{txn.AllowLateRightsChange(), change}, inner: 1, refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.registry.SetHooks(b.hooks())
			units := b.units()
			err := units.Do(context.Background(), func(ctx context.Context) error {
				for range c.inner {
					if err := units.Do(ctx, nothing, change); err != nil {
						return err
					}
					if txn.PhaseOf(ctx) != txn.PhaseWork {
						t.Error("the outer unit does not go on with its work")
					}
				}
				return nil
			}, c.outer...)
			if (err != nil) != c.refuse {
				t.Fatalf("got %v", err)
			}
			if got := b.trace.all(); !c.refuse && !reflect.DeepEqual(got, c.want) {
				t.Errorf("hooks %v, want %v", got, c.want)
			}
		})
	}
}

func TestADeadlockIsRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithConfig(func(c *pg.Config) { c.LockTimeout = 20 * time.Second }))
	units := b.units()
	attempts := make(chan struct{}, 16)
	meet := make(chan struct{})
	run := func(first, second string, enter func()) error {
		tries := 0
		return units.Do(context.Background(), func(ctx context.Context) error {
			attempts <- struct{}{}
			if err := b.bump(ctx, first); err != nil {
				return err
			}
			if tries++; tries == 1 {
				enter()
			}
			// The first attempts of both hold one row each and want the other's.
			return b.bump(ctx, second)
		})
	}
	result := make(chan error, 1)
	go func() { result <- run("a", "b", func() { meet <- struct{}{} }) }()
	mine := run("b", "a", func() { <-meet })
	if other := <-result; mine != nil || other != nil {
		t.Fatalf("units failed: %v, %v", mine, other)
	}
	if n := len(attempts); n != 3 {
		t.Errorf("%d attempts, want 3: one of two units runs twice", n)
	}
	if got := b.db.Count(t, "SELECT sum(value)::bigint FROM counters"); got != 4 {
		t.Errorf("the counters sum up to %d, want 4", got)
	}
}

func TestRepetitionsAreBounded(t *testing.T) {
	t.Parallel()
	raise := func(state string) func(context.Context, *bundle) error {
		return func(ctx context.Context, b *bundle) error {
			return pg.QueuedExec(ctx, "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '"+state+"'; END $$", nil)
		}
	}
	for name, c := range map[string]struct {
		work func(context.Context, *bundle) error
		want int
	}{
		"stale rights by error":     {func(context.Context, *bundle) error { return txn.ErrRetry }, 4},
		"stale rights by statement": {raise(pg.StateStaleRights), 4},
		"deadlock":                  {raise("40P01"), 3},
		"lock timeout":              {raise("55P03"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			attempts := 0
			err := b.units().Do(context.Background(), func(ctx context.Context) error {
				attempts++
				if err := insert(ctx, "a"); err != nil {
					return err
				}
				return c.work(ctx, b)
			})
			if !errs.Is(err, errs.CodeUnavailable) || pg.CauseOf(err) != pg.CauseRetries {
				t.Errorf("got %v", err)
			}
			if attempts != c.want {
				t.Errorf("%d attempts, want %d", attempts, c.want)
			}
			if b.things(t) != 0 {
				t.Error("a row survived")
			}
		})
	}
}

func TestAFinalLockTimeoutIsAnAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithConfig(func(c *pg.Config) { c.LockTimeout = 100 * time.Millisecond }))
	units := b.units()
	attempts := 0
	err := units.Do(context.Background(), func(ctx context.Context) error {
		if err := b.bump(ctx, "a"); err != nil {
			return err
		}
		return units.Do(txn.WithUnit(ctx, nil), func(ctx context.Context) error {
			attempts++
			if err := b.bump(pg.FinalLockTimeout(ctx), "a"); pg.IsLockTimeout(err) {
				return errs.New(errs.CodeRequestInProgress, "The same request is running.")
			}
			return nil
		})
	})
	if !errs.Is(err, errs.CodeRequestInProgress) || attempts != 1 {
		t.Errorf("%d attempts, got %v", attempts, err)
	}
}

func TestViewReadsOneSnapshotAndCannotWrite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	units := b.units()
	count := func(ctx context.Context) (n int64) {
		if err := b.db.Querier(ctx).QueryRow(ctx, "SELECT count(*) FROM things").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	err := units.View(context.Background(), func(ctx context.Context) error {
		before := count(ctx)
		b.db.Exec(t, "INSERT INTO things (id, name) VALUES ($1, 'late')", ids.New())
		if after := count(ctx); before != 0 || after != 0 {
			t.Errorf("the view saw %d, then %d rows", before, after)
		}
		if err := insert(ctx, "queued"); err == nil {
			t.Error("a view queued a write")
		}
		if err := units.Do(ctx, func(context.Context) error { return nil }); err == nil {
			t.Error("a writing unit joined a view")
		}
		if !txn.Current(ctx).ReadOnly() {
			t.Error("the view does not say that it is read-only")
		}
		return b.bump(ctx, "a")
	})
	if pg.State(err) != "25006" {
		t.Errorf("a write in a view gave %v", err)
	}
}

func TestWritesOutsideUnitsFail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	if err := b.bump(ctx, "a"); pg.State(err) != "25006" {
		t.Errorf("a direct write gave %v", err)
	}
	if err := insert(ctx, "a"); err == nil {
		t.Error("a queued write without a unit was accepted")
	}
	if err := pg.Flush(ctx); err == nil {
		t.Error("there was something to flush without a unit")
	}
	var n int
	if err := b.db.Querier(ctx).QueryRow(ctx, "SELECT count(*) FROM counters").Scan(&n); err != nil || n != 2 {
		t.Errorf("a read outside a unit gave %d, %v", n, err)
	}
}

func TestAnUnitWithoutStatementsTouchesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, meter := pg.WithMeter(context.Background())
	if err := b.units().Do(ctx, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := meter.Total(); got != (pg.Counters{}) {
		t.Errorf("sent %+v", got)
	}
}

func TestTheContextMustNotOutliveItsUnit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	units := b.units()
	var kept context.Context
	if err := units.Do(context.Background(), func(ctx context.Context) error { kept = ctx; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := insert(kept, "late"); err == nil {
		t.Error("a write after the end was accepted")
	}
	if err := units.Do(kept, func(context.Context) error { return nil }); err == nil {
		t.Error("a unit joined one that has ended")
	}
}

// Whoever registered too late would never be called, and nobody would notice.
func TestNoUnitRunsBeforeTheRegistryIsSealed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	units := pg.NewUnits(b.db.DB, b.registry, fixedClock{}, pg.UnitConfig{})
	ran := func(context.Context) error { t.Error("the unit ran"); return nil }
	if units.Do(context.Background(), ran) == nil || units.View(context.Background(), ran) == nil {
		t.Error("no error")
	}
}

// passwords notes with which password connections begin.
type passwords struct {
	mu  sync.Mutex
	got []string
}

func (p *passwords) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (p *passwords) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (p *passwords) TraceConnectStart(ctx context.Context, data pgx.TraceConnectStartData) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, data.ConnConfig.Password)
	return ctx
}

func (p *passwords) TraceConnectEnd(context.Context, pgx.TraceConnectEndData) {}

func TestARotatedPasswordIsUsedByFurtherConnections(t *testing.T) {
	t.Parallel()
	seen := &passwords{}
	b := setup(t, pgtest.WithConfig(func(c *pg.Config) { c.Tracer = seen }))
	b.db.UsePassword("rotated")
	pool, err := b.db.OpenPlain(context.Background(), "further", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Ping(context.Background()); err != nil {
		t.Fatal(err)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if n := len(seen.got); n == 0 || seen.got[n-1] != "rotated" || seen.got[0] == "rotated" {
		t.Errorf("connections began with %q", seen.got)
	}
}

func TestMaintenanceRefusesWrites(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registry.Seal()
	units := pg.NewUnits(b.db.DB, b.registry, fixedClock{}, pg.UnitConfig{
		Maintenance: func() bool { return true }, MaintenanceRetryAfter: time.Minute,
	})
	work := func(ctx context.Context) error { return insert(ctx, "a") }
	err := units.Do(context.Background(), work)
	if !errs.Is(err, errs.CodeMaintenance) || errs.As(err).RetryAfter != time.Minute {
		t.Errorf("got %v", err)
	}
	if err := units.Do(context.Background(), work, txn.WithWriteInMaintenance()); err != nil {
		t.Errorf("the exempted unit failed: %v", err)
	}
	more := func(ctx context.Context) error { return insert(ctx, "b") }
	if err := units.Do(txn.ExemptFromMaintenance(context.Background()), more); err != nil {
		t.Errorf("the unit of an exempted request failed: %v", err)
	}
	if err := units.View(context.Background(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("reading failed: %v", err)
	}
}

func TestAnEndedContextRollsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(context.Background())
	err := b.units().Do(ctx, func(ctx context.Context) error {
		if err := b.bump(ctx, "a"); err != nil {
			return err
		}
		cancel()
		return insert(ctx, "a")
	})
	if !errs.Is(err, errs.CodeUnavailable) {
		t.Errorf("got %v", err)
	}
	if b.things(t) != 0 || b.db.Count(t, "SELECT value FROM counters WHERE name = 'a'") != 0 {
		t.Error("something was committed")
	}
}

func TestStatementTimeoutOfAUnit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.units().View(context.Background(), func(ctx context.Context) error {
		_, err := b.db.Querier(ctx).Exec(ctx, "SELECT pg_sleep(20)")
		return err
	}, txn.StatementTimeout(50*time.Millisecond))
	if !errs.Is(err, errs.CodeUnavailable) || !pg.IsStatementTimeout(err) || pg.CauseOf(err) != pg.CauseDeadline {
		t.Errorf("got %v", err)
	}
}

func TestAnExhaustedPoolRefusesInTime(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.WithConfig(func(c *pg.Config) { c.MaxConns, c.AcquireTimeout = 4, 200*time.Millisecond }))
	units := b.units()
	release := make(chan struct{})
	var held = make(chan struct{}, 4)
	done := make(chan error, 4)
	for range 4 {
		go func() {
			done <- units.View(context.Background(), func(ctx context.Context) error {
				if _, err := b.db.Querier(ctx).Exec(ctx, "SELECT 1"); err != nil {
					return err
				}
				held <- struct{}{}
				<-release
				return nil
			})
		}()
	}
	for range 4 {
		<-held
	}
	start := time.Now()
	err := units.Do(context.Background(), func(ctx context.Context) error { return insert(ctx, "a") })
	if !errs.Is(err, errs.CodeUnavailable) || pg.CauseOf(err) != pg.CausePoolExhausted {
		t.Errorf("got %v", err)
	}
	if waited := time.Since(start); waited > 5*time.Second {
		t.Errorf("waited %s", waited)
	}
	close(release)
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// fixedClock stands still.
type fixedClock struct{ clockSystem }

// Now implements clock.Clock.
func (fixedClock) Now() time.Time { return time.Date(2026, 3, 29, 1, 30, 0, 0, time.UTC) }

func TestAfterCommitWaitsForTheOutermostUnit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	units := b.units()
	var seen []int64
	look := func() { seen = append(seen, b.db.Count(t, "SELECT count(*) FROM things")) }
	err := units.Do(context.Background(), func(ctx context.Context) error {
		err := units.Do(ctx, func(ctx context.Context) error {
			txn.AfterCommit(ctx, look)
			return insert(ctx, "inner")
		})
		if len(seen) != 0 {
			t.Error("called with the nested unit, before the commit")
		}
		return err
	})
	if err != nil || !reflect.DeepEqual(seen, []int64{1}) {
		t.Errorf("error %v, rows seen %v", err, seen)
	}
	refused := errors.New("refused")
	err = units.Do(context.Background(), func(ctx context.Context) error {
		txn.AfterCommit(ctx, look)
		return refused
	})
	if !errors.Is(err, refused) || len(seen) != 1 {
		t.Errorf("error %v; a unit that was rolled back tells %d times", err, len(seen)-1)
	}
	txn.AfterCommit(context.Background(), look)
	if len(seen) != 2 {
		t.Error("without a unit nothing was called")
	}
}
