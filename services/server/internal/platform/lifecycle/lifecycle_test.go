// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bundle struct {
	*Runner
	signals chan os.Signal
	log     *syncBuffer
	mu      sync.Mutex
	order   []string
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func setup(t *testing.T) *bundle {
	t.Helper()
	log := &syncBuffer{}
	b := &bundle{signals: make(chan os.Signal, 2), log: log}
	b.Runner = New(Config{Role: "all", TotalTimeout: 10 * time.Second},
		slog.New(slog.NewTextHandler(log, nil)), clock.System{})
	return b
}

func (b *bundle) note(name string) func(context.Context) error {
	return func(context.Context) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.order = append(b.order, name)
		return nil
	}
}

func (b *bundle) signalWhenUp() {
	b.Step("signal", func(context.Context) error { b.signals <- syscall.SIGTERM; return nil })
}

func TestStepsStartInOrderAndStopByPhase(t *testing.T) {
	b := setup(t)
	b.Step("a", b.note("a"))
	b.Step("b", func(ctx context.Context) error {
		b.OnStop(PhaseStores, "pool", 0, b.note("stop pool"))
		b.OnStop(PhaseHTTP, "http", time.Second, b.note("stop http"))
		b.OnStop(PhaseStores, "later pool", 0, b.note("stop later pool"))
		b.OnUnready(func() { _ = b.note("unready")(ctx) })
		return b.note("b")(ctx)
	})
	b.signalWhenUp()
	if code := b.Run(context.Background(), b.signals); code != ExitOK {
		t.Fatalf("exit %d\n%s", code, b.log)
	}
	want := []string{"a", "b", "unready", "stop http", "stop later pool", "stop pool"}
	if !slices.Equal(b.order, want) {
		t.Errorf("order %v, want %v", b.order, want)
	}
}

func TestAFailedStepStopsWhatIsUp(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"failure", errors.New("x"), ExitFailure},
		{"configuration", Exit(ExitConfig, errors.New("x")), ExitConfig},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t)
			b.Step("a", func(context.Context) error { b.OnStop(PhaseStores, "a", 0, b.note("stop a")); return nil })
			b.Step("bad", func(context.Context) error { return c.err })
			b.Step("never", b.note("never"))
			if code := b.Run(context.Background(), b.signals); code != c.want {
				t.Errorf("exit %d, want %d", code, c.want)
			}
			if !slices.Equal(b.order, []string{"stop a"}) {
				t.Errorf("order %v", b.order)
			}
			if !strings.Contains(b.log.String(), "start step bad") {
				t.Errorf("the log does not name the step: %s", b.log)
			}
		})
	}
}

func TestAComponentThatEndsByItselfEndsTheProcess(t *testing.T) {
	for name, run := range map[string]func(context.Context) error{
		"error":  func(context.Context) error { return errors.New("broken") },
		"return": func(context.Context) error { return nil },
		"panic":  func(context.Context) error { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.Step("tail", func(context.Context) error { b.Go(PhaseTail, "tail", run); return nil })
			if code := b.Run(context.Background(), b.signals); code != ExitFailure {
				t.Errorf("exit %d", code)
			}
		})
	}
}

func TestAComponentIsCancelledInItsPhase(t *testing.T) {
	b := setup(t)
	b.Step("tail", func(context.Context) error {
		b.Go(PhaseTail, "tail", func(ctx context.Context) error {
			<-ctx.Done()
			return b.note("tail ends")(ctx)
		})
		b.OnStop(PhaseHTTP, "http", 0, b.note("http ends"))
		return nil
	})
	b.signalWhenUp()
	if code := b.Run(context.Background(), b.signals); code != ExitOK {
		t.Fatalf("exit %d\n%s", code, b.log)
	}
	if !slices.Equal(b.order, []string{"http ends", "tail ends"}) {
		t.Errorf("order %v", b.order)
	}
}

func TestAnOverrunIsNamedAndTheRestStillRuns(t *testing.T) {
	b := setup(t)
	release := make(chan struct{})
	defer close(release)
	b.Step("a", func(context.Context) error {
		b.OnStop(PhaseHTTP, "stubborn", time.Millisecond, func(context.Context) error { <-release; return nil })
		b.OnStop(PhaseStores, "pool", 0, b.note("pool"))
		return nil
	})
	b.signalWhenUp()
	if code := b.Run(context.Background(), b.signals); code != ExitFailure {
		t.Errorf("exit %d", code)
	}
	if !slices.Equal(b.order, []string{"pool"}) || !strings.Contains(b.log.String(), "step=stubborn") {
		t.Errorf("order %v, log %s", b.order, b.log)
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	b := setup(t)
	release, hanging := make(chan struct{}), make(chan struct{})
	b.Step("a", func(context.Context) error {
		b.OnStop(PhaseHTTP, "slow", 0, func(context.Context) error { close(hanging); <-release; return nil })
		return nil
	})
	b.signalWhenUp()
	go func() { <-hanging; b.signals <- syscall.SIGINT }()
	if code := b.Run(context.Background(), b.signals); code != ExitSecondSignal {
		t.Errorf("exit %d", code)
	}
	close(release)
}

func TestASignalDuringTheStartInterruptsIt(t *testing.T) {
	b := setup(t)
	b.Step("slow", func(ctx context.Context) error {
		b.OnStop(PhaseStores, "pool", 0, b.note("pool"))
		b.signals <- syscall.SIGTERM
		<-ctx.Done()
		return ctx.Err()
	})
	b.Step("never", b.note("never"))
	if code := b.Run(context.Background(), b.signals); code != ExitOK {
		t.Errorf("exit %d", code)
	}
	if !slices.Equal(b.order, []string{"pool"}) {
		t.Errorf("order %v", b.order)
	}
}

func TestTheDrainDelayAppliesOnlyBehindAPublicListener(t *testing.T) {
	clk := clocktest.New(time.Unix(0, 0))
	b := setup(t)
	b.clock, b.config.DrainDelay = clk, time.Hour
	b.Step("public", func(context.Context) error { b.Public(); return nil })
	b.signalWhenUp()
	go func() { clk.WaitForTimers(1); clk.Advance(time.Hour) }()
	if code := b.Run(context.Background(), b.signals); code != ExitOK {
		t.Errorf("exit %d", code)
	}
}

func TestWaitForGivesUpAfterItsLimit(t *testing.T) {
	clk := clocktest.New(time.Unix(0, 0))
	done := make(chan error, 1)
	go func() {
		done <- WaitFor(context.Background(), clk, time.Second, "database", func(context.Context) error {
			return errors.New("refused")
		})
	}()
	for _, pause := range []time.Duration{200, 400, 400} {
		clk.WaitForTimers(1)
		clk.Advance(pause * time.Millisecond)
	}
	err := <-done
	if err == nil || !strings.Contains(err.Error(), "database") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v", err)
	}
}

func TestWaitForReturnsOnSuccess(t *testing.T) {
	if err := WaitFor(context.Background(), clock.System{}, time.Second, "x", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestTheServiceManagerIsTold(t *testing.T) {
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	t.Setenv("NOTIFY_SOCKET", path)
	Notify("READY=1")
	buf := make([]byte, 64)
	n, err := l.Read(buf)
	if err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("%q %v", buf[:n], err)
	}
}

func TestBudgetsMustFitTheTotal(t *testing.T) {
	c := Config{DrainDelay: 5, HTTPGrace: 20, JobsSoftTimeout: 20, TelemetryFlushTimeout: 5, TotalTimeout: 50}
	if err := c.CheckBudget(); err != nil {
		t.Errorf("equal sum refused: %v", err)
	}
	c.TotalTimeout = 49
	if c.CheckBudget() == nil {
		t.Error("larger sum accepted")
	}
}
