// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Maintenance restricts the runtime while the instance is read-only: only the queues
// delivery and maintenance are worked, nothing is scheduled, and of the queue maintenance
// only the allowed kinds run. The others are held without using an attempt.
type Maintenance struct {
	RetryAfter time.Duration
	Allowed    func(kind string) bool
}

// Dependencies are what a runtime works with.
type Dependencies struct {
	// DB gives the ambient units of InsertTx and the runtime's own pool.
	DB        *pg.DB
	Barrier   flush.Barrier
	Log       *slog.Logger
	Telemetry *otel.Telemetry
	Meter     otel.Meter
	// InsertOnly makes a runtime that never works: for processes that serve requests alone.
	InsertOnly bool
	// SoftStop is how long running jobs may take when the runtime stops; then their contexts
	// end.
	SoftStop    time.Duration
	Maintenance *Maintenance
	// Done is told of every job that ended, with its error; nil for nobody.
	Done func(kind string, err error)
}

// ownConnections is what the runtime keeps beside the connections of its handlers, which
// work through units: fetching, completing, LISTEN, election and schedules.
const ownConnections = 4

// Runtime inserts and runs jobs.
type Runtime struct {
	client   *river.Client[pgx.Tx]
	registry *Registry
	pool     *pgxpool.Pool
	deps     Dependencies
	log      *slog.Logger
	schema   string
}

// New makes a runtime. It opens a pool of its own whose connections commit synchronously,
// so that a job that was fetched or finished stays so. Close it after Run.
func New(ctx context.Context, c Config, d Dependencies, r *Registry) (*Runtime, error) {
	if d.Meter == nil {
		d.Meter = otel.NoMeter{}
	}
	rt := &Runtime{registry: r, deps: d, log: d.Log.With("component", "jobs"), schema: c.Schema}
	connections := ownConnections
	if d.InsertOnly {
		// A client that only inserts in the units of others needs none for itself; one is
		// for the check of the schema.
		connections = 1
	}
	pool, err := d.DB.OpenPlain(ctx, "bothy-jobs", connections)
	if err != nil {
		return nil, fmt.Errorf("open pool of the jobs: %w", err)
	}
	rt.pool = pool
	rt.client, err = river.NewClient(riverpgxv5.New(pool), rt.config(c))
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("make job client: %w", err)
	}
	return rt, nil
}

// fetchCooldown is the least time between two looks of a queue.
const fetchCooldown = 10 * time.Millisecond

func (rt *Runtime) config(c Config) *river.Config {
	config := &river.Config{
		Schema:  c.Schema,
		Logger:  slog.New(quiet{rt.log.Handler()}),
		Workers: rt.registry.workers,
		// The library announces a queue at most once per cooldown, and what is inserted between
		// two announcements waits for the next look. Its default of 100ms would make pushes
		// late now and then.
		FetchCooldown: fetchCooldown,
		// The role of the server owns no index, so rebuilding them could only fail.
		ReindexerSchedule:   river.NeverSchedule(),
		ReindexerIndexNames: []string{},
		SoftStopTimeout:     rt.deps.SoftStop,
		WorkerMiddleware:    []rivertype.WorkerMiddleware{&middleware{rt: rt}}, //nolint:staticcheck // Plugins replace it in a later version of the library.
		ErrorHandler:        &failures{rt: rt},
	}
	if rt.deps.InsertOnly {
		return config
	}
	config.Queues = map[string]river.QueueConfig{}
	for queue, workers := range c.workers() {
		if rt.deps.Maintenance == nil || queue == QueueDelivery || queue == QueueMaintenance {
			config.Queues[string(queue)] = river.QueueConfig{MaxWorkers: workers}
		}
	}
	if rt.deps.Maintenance == nil {
		config.PeriodicJobs = rt.registry.periodic
	}
	return config
}

// InsertOptions say when and how often a job runs.
type InsertOptions struct {
	// ScheduledAt delays the job; zero means at once.
	ScheduledAt time.Time
	// Unique inserts nothing while a job of the same kind and arguments waits or runs.
	Unique bool
	// Low lets every other job of the queue go first.
	Low bool
}

// lowPriority is River's lowest; 1 is the default and the highest.
const lowPriority = 4

// InsertTx adds a job in the running unit of work: it becomes visible with the commit, and
// not at all when the unit fails. Outside a unit it fails.
func (rt *Runtime) InsertTx(ctx context.Context, args Args, o InsertOptions) error {
	queue, known := rt.registry.queues[args.Kind()]
	if !known {
		return fmt.Errorf("insert job %s: the kind is not registered", args.Kind())
	}
	tx, err := pg.Tx(ctx)
	if err != nil {
		return fmt.Errorf("insert job %s: %w", args.Kind(), err)
	}
	options := &river.InsertOpts{Queue: string(queue), ScheduledAt: o.ScheduledAt}
	if o.Unique {
		options.UniqueOpts = unique()
	}
	if o.Low {
		options.Priority = lowPriority
	}
	if _, err := rt.client.InsertTx(ctx, insertTx{tx}, args, options); err != nil {
		return fmt.Errorf("insert job %s: %w", args.Kind(), err)
	}
	return nil
}

func unique() river.UniqueOpts {
	return river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
		rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}
}

// insertTx lets the wake-up of the workers travel with the end of the unit instead of
// costing a round trip of its own.
type insertTx struct{ pgx.Tx }

// Exec implements pgx.Tx.
func (t insertTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, pg.QueuedExec(ctx, sql, args)
}

// Run works until the context ends and then stops: no new jobs, running ones get the soft
// stop. It returns an error when the client ends by itself or cannot be stopped in time.
func (rt *Runtime) Run(ctx context.Context) error {
	if rt.deps.InsertOnly {
		<-ctx.Done()
		return nil
	}
	// The client must outlive ctx, whose end begins the orderly stop.
	if err := rt.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start jobs: %w", err)
	}
	select {
	case <-rt.client.Stopped():
		return errors.New("the job client ended by itself")
	case <-ctx.Done():
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rt.deps.SoftStop+stopMargin)
	defer cancel()
	if err := rt.client.Stop(stopCtx); err != nil {
		return fmt.Errorf("stop jobs: %w", err)
	}
	return nil
}

// stopMargin is the time for cancelled jobs to notice.
const stopMargin = 5 * time.Second

// Close ends the pool of the runtime, after Run has returned.
func (rt *Runtime) Close() { rt.pool.Close() }

// middleware surrounds every job with what its handler relies on.
type middleware struct {
	river.MiddlewareDefaults
	rt *Runtime
}

// Work implements rivertype.WorkerMiddleware.
func (m *middleware) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	if mode := m.rt.deps.Maintenance; mode != nil && job.Queue == string(QueueMaintenance) && !mode.Allowed(job.Kind) {
		return river.JobSnooze(mode.RetryAfter)
	}
	// A job row may be visible before what it was committed with is durable.
	if b := m.rt.deps.Barrier; b != nil {
		if err := b.Wait(ctx, b.Generation()); err != nil {
			return fmt.Errorf("wait until the job is durable: %w", err)
		}
	}
	ctx, span := m.rt.deps.Telemetry.Start(actor.With(ctx, actor.System()), "job "+job.Kind,
		otel.String("bothy.job.kind", job.Kind), otel.Int("bothy.job.attempt", job.Attempt))
	outcome, began := "", time.Now()
	defer func() { span.End(outcome) }()
	err := doInner(ctx)
	ended := "ok"
	if err != nil {
		outcome, ended = "failed", "failed"
	}
	m.rt.deps.Meter.Histogram("bothy.job.duration").Record(ctx, time.Since(began).Seconds(), "bothy.job.kind", job.Kind, "bothy.outcome", ended)
	if m.rt.deps.Done != nil {
		m.rt.deps.Done(job.Kind, err)
	}
	var final *finalError
	if errors.As(err, &final) {
		return river.JobCancel(err)
	}
	return err
}

// failures logs what went wrong. Arguments stay out of the log.
type failures struct{ rt *Runtime }

// HandleError implements river.ErrorHandler.
func (f *failures) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	f.note(ctx, job, slog.String("err", err.Error()))
	return nil
}

// HandlePanic implements river.ErrorHandler.
func (f *failures) HandlePanic(ctx context.Context, job *rivertype.JobRow, value any, trace string) *river.ErrorHandlerResult {
	f.rt.deps.Meter.Counter("bothy.panics").Add(ctx, 1, "bothy.component", "jobs")
	f.note(ctx, job, slog.String("panic", fmt.Sprint(value)), slog.String("stack", trace))
	return nil
}

func (f *failures) note(ctx context.Context, job *rivertype.JobRow, attrs ...slog.Attr) {
	attrs = append(attrs, slog.String("kind", job.Kind), slog.Int("attempt", job.Attempt), slog.Int64("job", job.ID))
	if job.Attempt >= job.MaxAttempts {
		f.rt.deps.Meter.Counter("bothy.job.discarded").Add(ctx, 1, "bothy.job.kind", job.Kind)
		f.rt.log.LogAttrs(ctx, slog.LevelError, "job given up", attrs...)
		return
	}
	f.rt.log.LogAttrs(ctx, slog.LevelWarn, "job failed and will be repeated", attrs...)
}

// quiet drops what the library says below a warning; its routine is not ours.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
