// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	firstRestartPause = 500 * time.Millisecond
	maxRestartPause   = 10 * time.Second
)

// firstStart starts the server until it answers, within the start timeout. A server whose
// predecessor was killed may find the memory still in use; that is tried again.
func (e *Embedded) firstStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.StartTimeout)
	defer cancel()
	for {
		c, err := e.launch()
		if err != nil {
			return err
		}
		if e.answers(ctx, c) {
			e.mu.Lock()
			e.child = c
			e.mu.Unlock()
			return nil
		}
		if !c.ended() {
			c.stop(e.cfg.StopTimeout)
			return fmt.Errorf("PostgreSQL does not answer within %s:\n%s", e.cfg.StartTimeout, e.tail.text())
		}
		if !e.memoryInUse() {
			return fmt.Errorf("PostgreSQL does not start:\n%s", e.tail.text())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not start within %s:\n%s", e.cfg.StartTimeout, e.tail.text())
		case <-time.After(firstRestartPause):
		}
	}
}

// supervise restarts a server that ends by itself, with growing pauses, until Stop or
// until it ends too often.
func (e *Embedded) supervise() {
	defer close(e.done)
	defer func() { _ = e.lock.Close() }()
	var restarts []time.Time
	pause := firstRestartPause
	for {
		select {
		case <-e.stopping:
			e.child.stop(e.cfg.StopTimeout)
			return
		case <-e.child.exit:
		}
		if e.isStopping() {
			return
		}
		e.log.Error("PostgreSQL has ended; it will be started again", "pause", pause)
		now := time.Now()
		if !e.memoryInUse() {
			restarts = append(within(restarts, now.Add(-e.cfg.RestartWindow)), now)
		}
		if len(restarts) > e.cfg.MaxRestarts {
			e.err = fmt.Errorf("PostgreSQL ended %d times within %s:\n%s", len(restarts), e.cfg.RestartWindow, e.tail.text())
			return
		}
		if len(restarts) <= 1 {
			pause = firstRestartPause
		}
		select {
		case <-e.stopping:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, maxRestartPause)
		if e.cfg.OnRestart != nil {
			e.cfg.OnRestart()
		}
		if err := e.relaunch(); err != nil {
			e.err = err
			return
		}
	}
}

func (e *Embedded) relaunch() error {
	if err := e.folder.writeHBA(e.cfg.Port > 0); err != nil {
		return err
	}
	c, err := e.launch()
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.child = c
	e.mu.Unlock()
	return nil
}

// Ready waits until the server answers again after a restart.
func (e *Embedded) Ready(ctx context.Context) error {
	for {
		e.mu.Lock()
		c := e.child
		e.mu.Unlock()
		if e.answers(ctx, c) {
			return nil
		}
		select {
		case <-e.done:
			return errors.Join(errors.New("PostgreSQL is no longer supervised"), e.err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (e *Embedded) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}

// memoryInUse recognises a start that came while children of a killed server were dying.
func (e *Embedded) memoryInUse() bool {
	text := e.tail.text()
	return strings.Contains(text, "shared memory block") && strings.Contains(text, "still in use")
}

func within(times []time.Time, since time.Time) []time.Time {
	kept := times[:0]
	for _, t := range times {
		if t.After(since) {
			kept = append(kept, t)
		}
	}
	return kept
}
