// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// flushStatement writes an empty logical message in a transaction of its own. The log is
// flushed in order, so its synchronous commit covers every commit that returned before. It
// is transactional, so a synchronous standby is waited for as well.
const flushStatement = "SELECT pg_logical_emit_message(true, 'bothy.flush', '')"

// idleCheck is the pause between two signs of life of an idle flusher.
const idleCheck = time.Second

var (
	errFlusherDown       = errors.New("the flush connection is down")
	errGenerationChanged = errors.New("the flush connection has been replaced meanwhile")
)

// Flusher gathers waiting commits into groups and makes each group durable with one
// synchronous commit on a connection of its own. It implements flush.Barrier.
//
//	connecting ──connected, generation+1──▶ idle ──ticket──▶ flushing ──ok──▶ idle
//	     ▲                                   │                  │
//	     └──── connection lost: every ticket of the generation fails ◀──┘
type Flusher struct {
	connect    func(ctx context.Context) (flushConn, error)
	timeout    time.Duration
	backoffCap time.Duration
	log        *slog.Logger
	metrics    Metrics

	wake chan struct{}
	done chan struct{}
	stop context.CancelFunc

	flushes atomic.Int64

	mu         sync.Mutex
	generation uint64
	connected  bool
	changed    chan struct{} // closed and replaced when connected or generation change
	next       *flushGroup   // tickets of the following flush; nil without any
}

// flushConn is the flusher's own connection: what it flushes proves that the database has
// not crashed since the connection was made.
type flushConn interface {
	Flush(ctx context.Context) error
	Ping(ctx context.Context) error
	Close(ctx context.Context) error
}

// pgxFlush is the real one.
type pgxFlush struct{ *pgx.Conn }

// Flush implements flushConn.
func (c pgxFlush) Flush(ctx context.Context) error {
	_, err := c.Exec(ctx, flushStatement)
	return err
}

// flushGroup is the set of tickets that one flush resolves.
type flushGroup struct {
	generation uint64
	size       int
	done       chan struct{}
	err        error
}

func newFlusher(connect func(context.Context) (flushConn, error), timeout, backoffCap time.Duration, log *slog.Logger) *Flusher {
	return &Flusher{
		connect: connect, timeout: timeout, backoffCap: backoffCap, log: log, metrics: noMetrics{},
		wake: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}),
	}
}

// start runs the flusher until close. It returns after the first connection is there.
func (f *Flusher) start(ctx context.Context) error {
	conn, err := f.connect(ctx)
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	f.adopt()
	go f.run(run, conn)
	return nil
}

func (f *Flusher) close() {
	if f.stop != nil {
		f.stop()
		<-f.done
	}
}

// Generation implements flush.Barrier.
func (f *Flusher) Generation() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.generation
}

// Flushes counts the flushes so far, for metrics and tests.
func (f *Flusher) Flushes() int64 { return f.flushes.Load() }

// Wait implements flush.Barrier.
func (f *Flusher) Wait(ctx context.Context, generation uint64) error {
	group, err := f.join(generation)
	if err != nil {
		return unavailable(CauseOutcomeUnknown, err)
	}
	timer := time.NewTimer(f.timeout)
	defer timer.Stop()
	select {
	case <-group.done:
		if group.err != nil {
			return unavailable(CauseOutcomeUnknown, group.err)
		}
		return nil
	case <-timer.C:
		return unavailable(CauseOutcomeUnknown, fmt.Errorf("not flushed within %s", f.timeout))
	case <-ctx.Done():
		return unavailable(CauseOutcomeUnknown, ctx.Err())
	}
}

func (f *Flusher) join(generation uint64) (*flushGroup, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.connected:
		return nil, errFlusherDown
	case generation != f.generation:
		return nil, errGenerationChanged
	}
	if f.next == nil {
		f.next = &flushGroup{generation: generation, done: make(chan struct{})}
	}
	f.next.size++
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return f.next, nil
}

// ready waits until the flusher is connected and has just answered on that connection. A
// pool connection is used only after that: nothing then runs after a crash of the database
// under the generation from before it.
func (f *Flusher) ready(ctx context.Context) error {
	for {
		if err := f.up(ctx); err != nil {
			return err
		}
		if err := f.Wait(ctx, f.Generation()); err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// up waits until the flusher is connected.
func (f *Flusher) up(ctx context.Context) error {
	for {
		f.mu.Lock()
		connected, changed := f.connected, f.changed
		f.mu.Unlock()
		if connected {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return unavailable(CauseDependency, errFlusherDown)
		}
	}
}

func (f *Flusher) run(ctx context.Context, conn flushConn) {
	defer close(f.done)
	for {
		err := f.serve(ctx, conn)
		f.lose(err)
		closeFlush(conn)
		if ctx.Err() != nil {
			return
		}
		f.log.Warn("flush connection lost", "error", err)
		if conn = f.reconnect(ctx); conn == nil {
			return
		}
		f.adopt()
	}
}

// serve flushes group after group; one statement is in flight at a time, and what arrives
// meanwhile forms the next group. While nothing arrives it asks for a sign of life, so a
// lost connection is found before a commit depends on it.
func (f *Flusher) serve(ctx context.Context, conn flushConn) error {
	idle := time.NewTicker(idleCheck)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			if err := f.ask(ctx, conn); err != nil {
				return err
			}
			continue
		case <-f.wake:
		}
		group := f.take()
		if group == nil {
			continue
		}
		err := f.flush(ctx, conn)
		group.err = err
		if err == nil {
			f.flushes.Add(1)
			f.metrics.FlushGroup(ctx, group.size)
			close(group.done)
			continue
		}
		// Whoever sees the failure must find the flusher down, not still connected.
		f.lose(err)
		close(group.done)
		return err
	}
}

func (f *Flusher) flush(ctx context.Context, conn flushConn) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	return conn.Flush(ctx)
}

func (f *Flusher) ask(ctx context.Context, conn flushConn) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	return conn.Ping(ctx)
}

func (f *Flusher) take() *flushGroup {
	f.mu.Lock()
	defer f.mu.Unlock()
	group := f.next
	f.next = nil
	return group
}

// adopt declares a new connection: a new generation.
func (f *Flusher) adopt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.generation++
	f.connected = true
	f.announce()
}

// lose fails the waiting tickets: what they wait for can no longer be proved.
func (f *Flusher) lose(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connected = false
	if f.next != nil {
		f.next.err = fmt.Errorf("%w: %w", errFlusherDown, err)
		close(f.next.done)
		f.next = nil
	}
	f.announce()
}

func (f *Flusher) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// reconnect tries until it succeeds or the flusher ends; the first attempt is immediate.
func (f *Flusher) reconnect(ctx context.Context) flushConn {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, f.backoffCap) {
		if conn, err := f.connect(ctx); err == nil {
			return conn
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func closeFlush(conn flushConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// noBarrier serves synchronous commits: a commit that returned is durable already.
type noBarrier struct{}

func (noBarrier) Generation() uint64                 { return 1 }
func (noBarrier) Wait(context.Context, uint64) error { return nil }
