// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
)

// Clock is the clock of the machine with a part that a test moves forward. Timers that come
// due by moving it fire.
type Clock struct {
	mu      sync.Mutex
	ahead   time.Duration
	running map[*timer]struct{}
}

func newClock() *Clock { return &Clock{running: map[*timer]struct{}{}} }

// Now implements clock.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time { return time.Now().UTC().Add(c.ahead) }

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	now := c.now()
	for t := range c.running {
		t.inner.Reset(max(0, t.due.Sub(now)))
	}
}

// NewTimer implements clock.Clock.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	t := &timer{clock: c, inner: time.NewTimer(d)}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.due = c.now().Add(d)
	c.running[t] = struct{}{}
	return t
}

type timer struct {
	clock *Clock
	inner *time.Timer
	due   time.Time
}

// C implements clock.Timer.
func (t *timer) C() <-chan time.Time { return t.inner.C }

// Stop implements clock.Timer.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.running, t)
	return t.inner.Stop()
}

// Reset implements clock.Timer.
func (t *timer) Reset(d time.Duration) {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.due = t.clock.now().Add(d)
	t.clock.running[t] = struct{}{}
	t.inner.Reset(d)
}
