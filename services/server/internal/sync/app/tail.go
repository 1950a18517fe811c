// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// LogReader reads the stored log.
type LogReader interface {
	// From reads positions from to through, in order, at most limit.
	From(ctx context.Context, from, through int64, limit int) ([]eventlog.Record, error)
	// Visible reads the part of a stretch that can concern a recipient with this scope.
	Visible(ctx context.Context, recipient ids.ID, scope authorize.Scope, from, through int64, limit int) ([]eventlog.Record, error)
	// Personal reads what is addressed to a principal behind after, up to through.
	Personal(ctx context.Context, principal ids.ID, after, through int64, limit int) ([]eventlog.Record, error)
	// Count counts the stored positions of a stretch.
	Count(ctx context.Context, from, through int64) (int64, error)
	// Bounds gives the smallest stored position (1 for an empty log) and the head.
	Bounds(ctx context.Context) (minSeq, head int64, err error)
}

// Waker wakes the tail when something was committed.
type Waker interface {
	// Listen calls wake for every notification and after every connect, until the context
	// ends. It reconnects by itself.
	Listen(ctx context.Context, wake func())
}

// TailConfig is how the log is followed.
type TailConfig struct {
	PollInterval time.Duration `key:"sync.log_poll_interval" default:"1s" min:"100ms" max:"30s" doc:"How often the log is read without having been woken."`
	BatchSize    int           `key:"sync.tail_batch_size" default:"1000" min:"10" max:"10000" doc:"Events read at once."`
}

// ErrDiverged means that the log is not the one this process has read before: positions
// that were seen are gone or mean something else. Only a new start may go on from there.
var ErrDiverged = errors.New("the event log has diverged from what was read before")

// Tail is the one reader of the log in a process: it passes every event, in order and once
// durable, to the rights in memory and then to the followers.
type Tail struct {
	config    TailConfig
	log       LogReader
	barrier   flush.Barrier
	delivery  authorize.Delivery
	followers []sync.Follower
	waker     Waker
	clock     clock.Clock
	logger    *slog.Logger

	local  atomic.Int64
	anchor ids.ID
	ready  atomic.Bool
	wake   chan struct{}
}

// NewTail makes the tail. Run starts it.
func NewTail(config TailConfig, log LogReader, barrier flush.Barrier, delivery authorize.Delivery, waker Waker, clk clock.Clock, logger *slog.Logger) *Tail {
	return &Tail{config: config, log: log, barrier: barrier, delivery: delivery, waker: waker, clock: clk, logger: logger, wake: make(chan struct{}, 1)}
}

// Follow adds a follower; it must be called before Run.
func (t *Tail) Follow(f sync.Follower) { t.followers = append(t.followers, f) }

// LocalHead implements sync.Tail.
func (t *Tail) LocalHead() int64 { return t.local.Load() }

// Ready implements sync.Tail.
func (t *Tail) Ready() bool { return t.ready.Load() }

// ReadPosition implements flush.Positions. What this process has passed on is durable and
// lies at or before what a read that begins now will see.
func (t *Tail) ReadPosition(context.Context) (int64, error) { return t.local.Load(), nil }

// Start sets the tail to the durable head of the log.
func (t *Tail) Start(ctx context.Context) error {
	generation := t.barrier.Generation()
	_, head, err := t.log.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("find the head of the log: %w", err)
	}
	if head > 0 {
		last, err := t.log.From(ctx, head, head, 1)
		if err != nil {
			return fmt.Errorf("read the head of the log: %w", err)
		}
		if len(last) == 1 {
			t.anchor = last[0].EventID
		}
	}
	if err := t.barrier.Wait(ctx, generation); err != nil {
		return fmt.Errorf("wait for the head of the log to be durable: %w", err)
	}
	t.local.Store(head)
	t.ready.Store(true)
	return nil
}

// Wake lets the tail look at the log again. It never waits.
func (t *Tail) Wake() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run follows the log until the context ends. It returns ErrDiverged when the process must
// not go on; a database that is away is waited for.
func (t *Tail) Run(ctx context.Context) error {
	listening := make(chan struct{})
	listenCtx, stop := context.WithCancel(ctx)
	go func() {
		defer close(listening)
		t.waker.Listen(listenCtx, t.Wake)
	}()
	defer func() { stop(); <-listening }()

	timer := t.clock.NewTimer(t.config.PollInterval)
	defer timer.Stop()
	for {
		more, err := t.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrDiverged):
			return err
		case err != nil && t.ready.Swap(false):
			t.logger.WarnContext(ctx, "event log cannot be read", "component", "sync.tail", "error", err)
		case err == nil && !t.ready.Swap(true):
			t.logger.InfoContext(ctx, "event log is read again", "component", "sync.tail")
		}
		if more {
			continue
		}
		timer.Reset(t.config.PollInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-t.wake:
		case <-timer.C():
		}
	}
}

// step reads one batch and passes it on; more is true when there may be another.
func (t *Tail) step(ctx context.Context) (more bool, err error) {
	generation := t.barrier.Generation()
	local := t.local.Load()
	batch, err := t.log.From(ctx, max(local, 1), 1<<62, t.config.BatchSize)
	if err != nil {
		return false, err
	}
	fresh, err := t.follow(ctx, local, batch)
	if err != nil || len(fresh) == 0 {
		return false, err
	}
	if err := t.barrier.Wait(ctx, generation); err != nil {
		return false, fmt.Errorf("wait for %d events to be durable: %w", len(fresh), err)
	}
	for _, e := range fresh {
		t.pass(ctx, e)
	}
	return len(batch) >= t.config.BatchSize, nil
}

// follow checks that a batch continues what was read before. It asks from the last event
// that was passed on: that one must still be there and be the same.
func (t *Tail) follow(ctx context.Context, local int64, batch []eventlog.Record) ([]eventlog.Record, error) {
	if local > 0 && !t.anchor.IsZero() {
		if len(batch) == 0 || batch[0].Seq != local || batch[0].EventID != t.anchor {
			return nil, t.confirmDiverged(ctx, local)
		}
		batch = batch[1:]
	}
	for i, e := range batch {
		if want := local + 1 + int64(i); e.Seq != want {
			return nil, fmt.Errorf("position %d follows %d: %w", e.Seq, want-1, ErrDiverged)
		}
	}
	return batch, nil
}

// confirmDiverged reads the head once more, so that the message says what was found.
func (t *Tail) confirmDiverged(ctx context.Context, local int64) error {
	_, head, err := t.log.Bounds(ctx)
	if err != nil {
		return err
	}
	return fmt.Errorf("position %d is not the event %s any more, head %d: %w", local, t.anchor, head, ErrDiverged)
}

func (t *Tail) pass(ctx context.Context, e eventlog.Record) {
	t.delivery.Observe(ctx, authorize.Observed{
		Seq: e.Seq, Type: e.Type, SpaceID: e.Place.SpaceID, ChannelID: e.Place.ChannelID, ThreadID: e.Place.ThreadID,
		PrincipalID: e.PrincipalID, PermissionVersion: e.PermissionVersion, Payload: e.Payload,
	})
	for _, f := range t.followers {
		f.Deliver(e)
	}
	t.anchor = e.EventID
	t.local.Store(e.Seq)
}
