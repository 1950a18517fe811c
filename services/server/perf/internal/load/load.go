// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Open describes an open loop.
type Open struct {
	// Rate is how many sends are due in a second.
	Rate int
	// Warmup is not counted; it lets caches fill and connections open.
	Warmup, Measured time.Duration
	// InFlight bounds the sends without an answer; one beyond it is dropped and counts as a failure. Zero means 4000.
	InFlight int
}

// Result is what a run came to.
type Result struct {
	// Latency holds one value per counted success, from when it was due to when the answer was complete.
	Latency Latencies
	// Sent counts what was due in the measured part, Failed and Dropped what did not succeed among it.
	Sent, Failed, Dropped int64
	// Elapsed is the length of the measured part.
	Elapsed time.Duration
	// Late is by how much the generator itself began sends too late.
	Late Latencies
	// FirstError is an example of what went wrong.
	FirstError error
}

// Rate is the successes of a second.
func (r Result) Rate() float64 { return float64(r.Latency.Count()) / r.Elapsed.Seconds() }

const defaultInFlight = 4000

// maxLateness is how late the generator may be before its figures say more about itself than about the server.
const maxLateness = 2 * time.Millisecond

// Valid reports whether the generator kept its own schedule.
func (r Result) Valid() bool { return r.Late.Quantile(0.99) <= maxLateness }

type collector struct {
	mu sync.Mutex
	r  Result
}

func (c *collector) done(counted bool, took time.Duration, err error) {
	if !counted {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.r.Failed++
		if c.r.FirstError == nil {
			c.r.FirstError = err
		}
		return
	}
	c.r.Latency.Add(took)
}

// Run sends on schedule. send gets the number of the send and the time it was due, and runs in a goroutine of its own.
// Run returns when every answer is there.
func (o Open) Run(ctx context.Context, send func(ctx context.Context, n int, due time.Time) error) Result {
	limit := o.InFlight
	if limit == 0 {
		limit = defaultInFlight
	}
	interval := time.Second / time.Duration(o.Rate)
	total := int((o.Warmup + o.Measured) / interval)
	warm := int(o.Warmup / interval)
	c := &collector{}
	var inFlight atomic.Int64
	var wait sync.WaitGroup
	start := time.Now().Add(100 * time.Millisecond)
	for n := range total {
		due := start.Add(time.Duration(n) * interval)
		if !sleepUntil(ctx, due) {
			break
		}
		counted := n >= warm
		if counted {
			c.mu.Lock()
			c.r.Sent++
			c.r.Late.Add(time.Since(due))
			if int(inFlight.Load()) >= limit {
				c.r.Dropped++
			}
			c.mu.Unlock()
		}
		if int(inFlight.Load()) >= limit {
			continue
		}
		inFlight.Add(1)
		wait.Go(func() {
			err := send(ctx, n, due)
			c.done(counted, time.Since(due), err)
			inFlight.Add(-1)
		})
	}
	wait.Wait()
	c.r.Elapsed = o.Measured
	return c.r
}

// spin is how long before the time the generator stops sleeping: timers of the system are late by up to a millisecond
// on a busy machine, and that would be counted against the server.
const spin = 300 * time.Microsecond

func sleepUntil(ctx context.Context, due time.Time) bool {
	if wait := time.Until(due) - spin; wait > 0 {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
	for time.Now().Before(due) {
		runtime.Gosched()
	}
	return ctx.Err() == nil
}

// Closed describes a closed loop.
type Closed struct {
	Writers          int
	Warmup, Measured time.Duration
}

// Run lets every writer send one after the other until the time is over. n is unique over all writers.
func (o Closed) Run(ctx context.Context, send func(ctx context.Context, writer, n int) error) Result {
	c := &collector{}
	var next atomic.Int64
	start := time.Now()
	from, until := start.Add(o.Warmup), start.Add(o.Warmup+o.Measured)
	var wait sync.WaitGroup
	for w := range o.Writers {
		wait.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if began.After(until) {
					return
				}
				err := send(ctx, w, int(next.Add(1)))
				// What ends after the last moment would count for a time that is not measured.
				now := time.Now()
				c.done(began.After(from) && now.Before(until), now.Sub(began), err)
			}
		})
	}
	wait.Wait()
	c.r.Sent = c.r.Latency.Count() + c.r.Failed
	c.r.Elapsed = o.Measured
	return c.r
}
