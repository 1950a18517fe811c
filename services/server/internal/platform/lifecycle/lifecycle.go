// SPDX-License-Identifier: Apache-2.0

// Package lifecycle starts and stops a process: steps in order on the way up, phases with
// budgets on the way down, and an owner for every goroutine in between.
//
// Whatever a start step has begun it hands to the Runner with OnStop or Go, so that an
// interrupted start takes down exactly what is up. A stop step that overruns its budget is
// named in the log and left behind; the ones after it still run. The package decides the
// exit code of the process and knows nothing of what it starts.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
)

// The exit codes of the process.
const (
	ExitOK           = 0
	ExitFailure      = 1
	ExitConfig       = 2
	ExitSecondSignal = 3
)

// Phase orders the stop steps.
type Phase int

// The phases of an orderly stop. Those after PhaseStores count outside the total, because
// a database that the process itself runs may need longer than everything before it.
const (
	PhaseHTTP Phase = iota
	PhaseConnections
	PhaseTail
	PhaseConsumers
	PhaseJobs
	PhaseTelemetry
	PhaseMeasurement
	PhaseStores
	PhaseEmbedded
)

// Config has the budgets of the operator.
type Config struct {
	Role                  string        `key:"server.role" default:"all" enum:"api,worker,all" doc:"What this process does: requests and connections (api), jobs and consumers (worker), or both."`
	DependencyWait        time.Duration `key:"startup.dependency_wait" default:"60s" min:"1s" max:"10m" doc:"How long the start waits for the database."`
	DrainDelay            time.Duration `key:"shutdown.drain_delay" default:"5s" min:"0s" max:"5m" doc:"Time between turning unready and closing the listener, in which a proxy notices."`
	HTTPGrace             time.Duration `key:"shutdown.http_grace" default:"20s" min:"0s" max:"5m" doc:"Time for running requests to finish."`
	JobsSoftTimeout       time.Duration `key:"shutdown.jobs_soft_timeout" default:"20s" min:"0s" max:"5m" doc:"Time for running jobs to finish before they are cancelled."`
	TelemetryFlushTimeout time.Duration `key:"shutdown.telemetry_flush_timeout" default:"5s" min:"0s" max:"5m" doc:"Time for the last traces and logs to leave."`
	TotalTimeout          time.Duration `key:"shutdown.total_timeout" default:"60s" min:"0s" max:"5m" doc:"Limit of the whole stop; an orchestrator must wait longer."`
}

// CheckBudget is the cross-check shutdown_budget: the budgets fit into the total.
func (c Config) CheckBudget() error {
	if c.DrainDelay+c.HTTPGrace+c.JobsSoftTimeout+c.TelemetryFlushTimeout > c.TotalTimeout {
		return errors.New("the four shutdown budgets sum to more than shutdown.total_timeout; raise it or lower one of them")
	}
	return nil
}

// ServesAPI reports whether the role answers public requests.
func (c Config) ServesAPI() bool { return c.Role == "api" || c.Role == "all" }

// Works reports whether the role runs jobs and consumers.
func (c Config) Works() bool { return c.Role == "worker" || c.Role == "all" }

// Runner is one life of a process. Fill it with Step, then call Run once.
type Runner struct {
	config Config
	log    *slog.Logger
	clock  clock.Clock

	steps []step

	mu       sync.Mutex
	stops    []stop
	unready  []func()
	public   bool
	stopping bool
	fatal    chan error
	ready    string
}

type step struct {
	name string
	run  func(ctx context.Context) error
}

type stop struct {
	phase  Phase
	name   string
	budget time.Duration
	run    func(ctx context.Context) error
}

// New makes a runner without steps.
func New(c Config, log *slog.Logger, clk clock.Clock) *Runner {
	return &Runner{config: c, log: log.With("component", "lifecycle"), clock: clk, fatal: make(chan error, 1)}
}

// Step adds a start step. Steps run one after another; the first error ends the start. Its
// exit code is 1 unless the error was made by Exit.
func (r *Runner) Step(name string, run func(ctx context.Context) error) {
	r.steps = append(r.steps, step{name, run})
}

// OnStop adds a stop step. Within a phase the one added last runs first. A budget of zero
// means what is left of the total.
func (r *Runner) OnStop(phase Phase, name string, budget time.Duration, run func(ctx context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops = append(r.stops, stop{phase, name, budget, run})
}

// OnUnready adds what turns the process unready, before everything else of the stop.
func (r *Runner) OnUnready(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unready = append(r.unready, fn)
}

// Public notes that a public listener is open: only then has a stop to wait for proxies.
func (r *Runner) Public() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.public = true
}

// Go runs a component in a goroutine until the phase of the stop, which cancels its context
// and waits for it. A component that ends earlier, by an error, a panic or a plain return,
// ends the process with exit code 1: half a process serves nobody.
func (r *Runner) Go(phase Phase, name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := protect(ctx, run)
		if ctx.Err() == nil {
			if err == nil {
				err = errors.New("ended by itself")
			}
			r.Fail(fmt.Errorf("component %s: %w", name, err))
		}
	}()
	r.OnStop(phase, name, 0, func(stopCtx context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-stopCtx.Done():
			return stopCtx.Err()
		}
	})
}

// Fail begins the stop with exit code 1. Only the first failure counts.
func (r *Runner) Fail(err error) {
	select {
	case r.fatal <- err:
	default:
	}
}

// SetReadyDetail sets what the last line of a good start says besides, such as the address.
func (r *Runner) SetReadyDetail(detail string) { r.ready = detail }

func protect(ctx context.Context, run func(ctx context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return run(ctx)
}

// Run starts, waits for a signal, the end of ctx or a fatal component, stops, and gives the
// exit code. After a second signal it returns at once and leaves everything as it is.
func (r *Runner) Run(ctx context.Context, signals <-chan os.Signal) int {
	startCtx, cancelStart := context.WithCancel(ctx)
	defer cancelStart()
	started := make(chan error, 1)
	go func() { started <- r.start(startCtx) }()

	code, waiting := ExitOK, true
	for waiting {
		select {
		case err := <-started:
			started = nil
			if err != nil {
				r.log.Error("start failed", "err", err)
				code, waiting = codeOf(err), false
			}
		case <-signals:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case err := <-r.fatal:
			r.log.Error("component failed", "err", err)
			code, waiting = ExitFailure, false
		}
	}
	cancelStart()

	stopped := make(chan bool, 1)
	go func() {
		if started != nil {
			<-started //nolint:errcheck // The loop above has taken the error, or the stop makes it of no account.
		}
		stopped <- r.stop()
	}()
	select {
	case <-signals:
		r.log.Error("second signal, stopping at once")
		return ExitSecondSignal
	case inTime := <-stopped:
		if !inTime && code == ExitOK {
			code = ExitFailure
		}
		return code
	}
}

func (r *Runner) start(ctx context.Context) error {
	for _, s := range r.steps {
		if ctx.Err() != nil {
			return nil
		}
		began := r.clock.Now()
		if err := protect(ctx, s.run); err != nil {
			if ctx.Err() != nil {
				// The start was interrupted, which is no failure of the step.
				return nil
			}
			return fmt.Errorf("start step %s: %w", s.name, err)
		}
		r.log.Info("start step done", "step", s.name, "duration_ms", r.clock.Now().Sub(began).Milliseconds())
	}
	if ctx.Err() == nil {
		r.log.Info("ready", "role", r.config.Role, "detail", r.ready)
		Notify("READY=1")
	}
	return nil
}

// stop reports whether everything ended within the total.
func (r *Runner) stop() bool {
	Notify("STOPPING=1")
	r.mu.Lock()
	r.stopping = true
	unready, public := r.unready, r.public
	r.mu.Unlock()
	for _, fn := range unready {
		fn()
	}
	total, cancel := context.WithTimeout(context.Background(), r.config.TotalTimeout)
	defer cancel()
	if public {
		r.pause(total, r.config.DrainDelay)
	}
	inTime := true
	for phase := PhaseHTTP; phase <= PhaseEmbedded; phase++ {
		base := total
		if phase > PhaseStores {
			base = context.Background()
		}
		for _, s := range r.takeStops(phase) {
			if !r.runStop(base, s) {
				inTime = false
			}
		}
	}
	if total.Err() != nil {
		r.log.Error("stop took longer than shutdown.total_timeout")
		return false
	}
	return inTime
}

func (r *Runner) pause(ctx context.Context, d time.Duration) {
	timer := r.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

func (r *Runner) takeStops(phase Phase) []stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []stop
	for _, s := range r.stops {
		if s.phase == phase {
			out = append(out, s)
		}
	}
	slices.Reverse(out)
	return out
}

func (r *Runner) runStop(base context.Context, s stop) bool {
	ctx, cancel := base, context.CancelFunc(func() {})
	if s.budget > 0 {
		ctx, cancel = context.WithTimeout(base, s.budget)
	}
	defer cancel()
	began := r.clock.Now()
	done := make(chan error, 1)
	go func() { done <- protect(ctx, s.run) }()
	select {
	case err := <-done:
		if err != nil {
			r.log.Error("stop step failed", "step", s.name, "err", err)
			return !errors.Is(err, context.DeadlineExceeded)
		}
		r.log.Info("stop step done", "step", s.name, "duration_ms", r.clock.Now().Sub(began).Milliseconds())
		return true
	case <-ctx.Done():
		// The step gets a moment to notice; a context-aware one ends right now.
		select {
		case <-done: //nolint:errcheck // It is too late for its error.
		case <-time.After(50 * time.Millisecond):
		}
		r.log.Error("stop step overran its budget", "step", s.name)
		return false
	}
}

type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return e.err.Error() }
func (e exitError) Unwrap() error { return e.err }

// Exit gives an error of a start step an exit code of its own.
func Exit(code int, err error) error { return exitError{code, err} }

func codeOf(err error) int {
	var e exitError
	if errors.As(err, &e) {
		return e.code
	}
	return ExitFailure
}
