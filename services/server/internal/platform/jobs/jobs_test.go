// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

type noteArgs struct {
	ID    ids.ID
	List  []ids.ID
	Until int64
}

func (noteArgs) Kind() string { return "test.note" }

type sweepArgs struct{}

func (sweepArgs) Kind() string { return "test.sweep" }

var config = jobs.Config{Schema: "jobs", DefaultWorkers: 4, FilesWorkers: 1, DeliveryWorkers: 1, MaintenanceWorkers: 1, PrivacyWorkers: 1}

type bundle struct {
	*jobs.Runtime
	db    *pgtest.DB
	units *pg.Units
	log   *lockedBuffer
	meter *otel.MemoryMeter
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func setup(t *testing.T, r *jobs.Registry, change func(*jobs.Dependencies)) *bundle {
	t.Helper()
	ctx := context.Background()
	b := &bundle{db: pgtest.New(t, pgtest.WithMigrations()), log: &lockedBuffer{}, meter: &otel.MemoryMeter{}}
	b.units = b.db.Units(txn.NewRegistry())
	conn, err := b.db.Pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Twice, as every start of "migrate up" repeats it.
	for range 2 {
		if err := jobs.Migrate(ctx, conn.Conn(), "jobs"); err != nil {
			t.Fatal(err)
		}
	}
	conn.Release()
	d := jobs.Dependencies{DB: b.db.DB, Barrier: b.db.Barrier(), Log: slog.New(slog.NewTextHandler(b.log, nil)), Meter: b.meter, SoftStop: 5 * time.Second}
	if change != nil {
		change(&d)
	}
	if b.Runtime, err = jobs.New(ctx, config, d, r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// work runs the runtime until the test ends.
func (b *bundle) work(t *testing.T) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() { cancel(); err = <-done })
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return stop
}

func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestAJobRunsOnceItsCauseIsCommitted(t *testing.T) {
	t.Parallel()
	ran := make(chan noteArgs, 4)
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.QueueDefault, func(ctx context.Context, args noteArgs) error {
		if actor.From(ctx).Kind != actor.KindSystem {
			return errors.New("a job acts as the system")
		}
		ran <- args
		return nil
	})
	b := setup(t, r, nil)
	if err := b.CheckMigrated(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.work(t)
	rolledBack, committed := ids.New(), ids.New()
	failure := errors.New("no")
	if err := b.units.Do(context.Background(), func(ctx context.Context) error {
		if err := b.InsertTx(ctx, noteArgs{ID: rolledBack}, jobs.InsertOptions{}); err != nil {
			return err
		}
		return failure
	}); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	want := noteArgs{ID: committed, List: []ids.ID{committed}, Until: 7}
	if err := b.units.Do(context.Background(), func(ctx context.Context) error {
		return b.InsertTx(ctx, want, jobs.InsertOptions{})
	}); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, ran); !reflect.DeepEqual(got, want) {
		t.Errorf("ran %+v, want %+v", got, want)
	}
}

func TestAnInsertOutsideAUnitFails(t *testing.T) {
	t.Parallel()
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.QueueDefault, func(context.Context, noteArgs) error { return nil })
	b := setup(t, r, func(d *jobs.Dependencies) { d.InsertOnly = true })
	if err := b.InsertTx(context.Background(), noteArgs{}, jobs.InsertOptions{}); err == nil {
		t.Error("inserted")
	}
	if err := b.units.Do(context.Background(), func(ctx context.Context) error {
		return b.InsertTx(ctx, sweepArgs{}, jobs.InsertOptions{})
	}); err == nil {
		t.Error("an unregistered kind was inserted")
	}
}

func TestUniqueAndScheduledJobsWait(t *testing.T) {
	t.Parallel()
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.QueueDefault, func(context.Context, noteArgs) error { return nil })
	b := setup(t, r, func(d *jobs.Dependencies) { d.InsertOnly = true })
	at := time.Now().Add(time.Hour)
	for range 3 {
		if err := b.units.Do(context.Background(), func(ctx context.Context) error {
			return b.InsertTx(ctx, noteArgs{Until: 1}, jobs.InsertOptions{Unique: true, ScheduledAt: at, Low: true})
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.db.Count(t, "SELECT count(*) FROM jobs.river_job WHERE state = 'scheduled' AND priority = 4 AND queue = 'default'"); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

func TestPeriodicJobsRunWithoutBeingAsked(t *testing.T) {
	t.Parallel()
	ran := make(chan struct{}, 16)
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.QueueMaintenance, func(context.Context, sweepArgs) error { ran <- struct{}{}; return nil })
	r.Every(time.Hour, sweepArgs{})
	b := setup(t, r, nil)
	b.work(t)
	receive(t, ran)
}

func TestAFailureIsLoggedWithoutArguments(t *testing.T) {
	t.Parallel()
	ran := make(chan struct{}, 16)
	id := ids.New()
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.QueueDefault, func(_ context.Context, args noteArgs) error {
		ran <- struct{}{}
		if args.Until == 1 {
			panic("broken")
		}
		return errors.New("broken")
	})
	b := setup(t, r, nil)
	stop := b.work(t)
	for until := range int64(2) {
		if err := b.units.Do(context.Background(), func(ctx context.Context) error {
			return b.InsertTx(ctx, noteArgs{ID: id, Until: until}, jobs.InsertOptions{})
		}); err != nil {
			t.Fatal(err)
		}
		receive(t, ran)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	log := b.log.String()
	for _, want := range []string{"job failed and will be repeated", "err=broken", "panic=broken", "kind=test.note"} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is missing in %s", want, log)
		}
	}
	if strings.Contains(log, id.String()) || b.meter.Sum("bothy.panics") == 0 {
		t.Errorf("log %s, panics %d", log, b.meter.Sum("bothy.panics"))
	}
}

func TestTheSoftStopLetsARunningJobFinish(t *testing.T) {
	t.Parallel()
	inside, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.QueueDefault, func(ctx context.Context, _ noteArgs) error {
		close(inside)
		<-release
		ended <- ctx.Err()
		return ctx.Err()
	})
	b := setup(t, r, nil)
	stop := b.work(t)
	if err := b.units.Do(context.Background(), func(ctx context.Context) error {
		return b.InsertTx(ctx, noteArgs{}, jobs.InsertOptions{})
	}); err != nil {
		t.Fatal(err)
	}
	receive(t, inside)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	close(release)
	if err := receive(t, ended); err != nil {
		t.Errorf("the job was cancelled: %v", err)
	}
	if err := receive(t, stopped); err != nil {
		t.Error(err)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM jobs.river_job WHERE state = 'completed'"); n != 1 {
		t.Errorf("%d completed", n)
	}
}

func TestMaintenanceHoldsWhatIsNotAllowed(t *testing.T) {
	t.Parallel()
	ran := make(chan struct{}, 4)
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.QueueMaintenance, func(context.Context, sweepArgs) error { t.Error("a held job ran"); return nil })
	jobs.Register(r, jobs.QueueDelivery, func(context.Context, noteArgs) error { ran <- struct{}{}; return nil })
	b := setup(t, r, func(d *jobs.Dependencies) {
		d.Maintenance = &jobs.Maintenance{RetryAfter: time.Hour, Allowed: func(string) bool { return false }}
	})
	if err := b.units.Do(context.Background(), func(ctx context.Context) error {
		return errors.Join(b.InsertTx(ctx, sweepArgs{}, jobs.InsertOptions{}), b.InsertTx(ctx, noteArgs{}, jobs.InsertOptions{}))
	}); err != nil {
		t.Fatal(err)
	}
	stop := b.work(t)
	receive(t, ran)
	deadline := time.Now().Add(20 * time.Second)
	const held = "SELECT count(*) FROM jobs.river_job WHERE kind = 'test.sweep' AND state = 'scheduled'"
	for b.db.Count(t, held) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the job is not held")
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestArgumentsHoldIDsAndNumbersAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value any
		ok    bool
	}{
		"good":       {noteArgs{}, true},
		"empty":      {sweepArgs{}, true},
		"string":     {struct{ Text string }{}, false},
		"bytes":      {struct{ B []byte }{}, false},
		"pointer":    {struct{ P *ids.ID }{}, false},
		"map":        {struct{ M map[string]int64 }{}, false},
		"nested":     {struct{ N noteArgs }{}, false},
		"unexported": {struct{ id ids.ID }{}, false},
		"embedded":   {struct{ noteArgs }{}, false},
		"no struct":  {int64(1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := jobs.ValidateArgsType(reflect.TypeOf(c.value)); (err == nil) != c.ok {
				t.Error(err)
			}
		})
	}
}
