// SPDX-License-Identifier: Apache-2.0

// Package clocktest has the clock of tests. Only test files import it.
package clocktest

import (
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
)

// Fake is a clock that stands still until Advance moves it. It is safe for concurrent use.
type Fake struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*fakeTimer]struct{}
	waiter *sync.Cond
}

// New makes a clock that shows start.
func New(start time.Time) *Fake {
	f := &Fake{now: start.UTC(), timers: map[*fakeTimer]struct{}{}}
	f.waiter = sync.NewCond(&f.mu)
	return f
}

// Now implements clock.Clock.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// NewTimer implements clock.Clock.
func (f *Fake) NewTimer(d time.Duration) clock.Timer {
	t := &fakeTimer{clock: f, ch: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// Advance moves the clock by d and fires every timer that has become due.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	for t := range f.timers {
		if !t.due.After(f.now) {
			f.fire(t)
		}
	}
}

// WaitForTimers blocks until at least n timers are pending, so that a test advances the
// clock only when the code under test has come to its wait.
func (f *Fake) WaitForTimers(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.timers) < n {
		f.waiter.Wait()
	}
}

// fire is called with the lock held.
func (f *Fake) fire(t *fakeTimer) {
	delete(f.timers, t)
	select {
	case t.ch <- f.now:
	default:
	}
}

type fakeTimer struct {
	clock *Fake
	ch    chan time.Time
	due   time.Time
}

func (t *fakeTimer) C() <-chan time.Time { return t.ch }

func (t *fakeTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, pending := t.clock.timers[t]
	delete(t.clock.timers, t)
	return pending
}

func (t *fakeTimer) Reset(d time.Duration) {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	select {
	case <-t.ch:
	default:
	}
	t.due = t.clock.now.Add(d)
	if d <= 0 {
		t.clock.fire(t)
		return
	}
	t.clock.timers[t] = struct{}{}
	t.clock.waiter.Broadcast()
}
