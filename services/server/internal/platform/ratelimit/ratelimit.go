// SPDX-License-Identifier: Apache-2.0

// Package ratelimit has the token buckets that keep one caller from taking what belongs to
// all. There is one bucket per class and key, in the memory of the process: several
// processes allow several times the numbers, which is the price for no shared state.
//
// The number of buckets is bounded. When it is reached, the buckets used longest ago go
// first; a full bucket carries no information, so a sweep drops those at no cost. A caller
// that outruns the bound gains at most a fresh burst and never makes the memory grow.
package ratelimit

import (
	"container/list"
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
)

// Config are the limits of the operator.
type Config struct {
	MaxTrackedKeys int           `key:"ratelimit.max_tracked_keys" default:"100000" min:"1000" max:"10000000" doc:"Buckets kept in memory at most; beyond it those used longest ago are forgotten."`
	SweepInterval  time.Duration `key:"ratelimit.sweep_interval" default:"1m" min:"10s" max:"1h" doc:"How often buckets that have filled up again are dropped."`
	// Classes holds every class, filled by DefaultClasses before it is bound.
	Classes map[string]*Class `prefix:"ratelimit.class"`
}

// Defaults is a Config with the classes filled in, ready to be bound.
func Defaults() Config { return Config{Classes: DefaultClasses()} }

// Limiter decides whether a request may pass. It is safe for concurrent use.
type Limiter struct {
	clock   clock.Clock
	classes map[string]*rate
	sweep   time.Duration
	seed    maphash.Seed
	shards  [shardCount]shard
}

// shardCount spreads the lock; 16 keeps contention away on the machines Bothy runs on.
const shardCount = 16

type rate struct {
	key       KeyKind
	burst     float64
	perSecond float64
}

type shard struct {
	mu      sync.Mutex
	max     int
	buckets map[bucketKey]*list.Element
	// recent has the bucket used last in front.
	recent *list.List
}

type bucketKey struct{ class, key string }

type bucket struct {
	key    bucketKey
	rate   *rate
	tokens float64
	at     time.Time
}

// New makes a limiter. It fails for a class without positive numbers.
func New(c Config, clk clock.Clock) (*Limiter, error) {
	l := &Limiter{clock: clk, classes: map[string]*rate{}, sweep: c.SweepInterval, seed: maphash.MakeSeed()}
	for name, class := range c.Classes {
		if class.Burst < 1 || class.PerMinute < 1 {
			return nil, fmt.Errorf("rate-limit class %s: burst and per_minute must be at least 1", name)
		}
		l.classes[name] = &rate{key: class.Key, burst: float64(class.Burst), perSecond: float64(class.PerMinute) / 60}
	}
	if c.MaxTrackedKeys < shardCount {
		return nil, fmt.Errorf("max_tracked_keys must be at least %d", shardCount)
	}
	for i := range l.shards {
		l.shards[i] = shard{max: c.MaxTrackedKeys / shardCount, buckets: map[bucketKey]*list.Element{}, recent: list.New()}
	}
	return l, nil
}

// Name removes the prefix "rl." that the catalogue of operations writes.
func Name(class string) string { return strings.TrimPrefix(class, "rl.") }

// KeyOf tells what a bucket of the class belongs to; ok is false for an unknown class.
func (l *Limiter) KeyOf(class string) (kind KeyKind, ok bool) {
	r, ok := l.classes[Name(class)]
	if !ok {
		return "", false
	}
	return r.key, true
}

// Take takes one token. When the bucket is empty it takes none and tells how long until
// there is one. An unknown class allows nothing: it is a wiring fault that a start check
// finds, and letting it pass would remove the limit silently.
func (l *Limiter) Take(class, key string) (ok bool, retryAfter time.Duration) {
	return l.use(class, key, 1)
}

// Peek is Take without taking: it tells whether the bucket has a token.
func (l *Limiter) Peek(class, key string) (ok bool, retryAfter time.Duration) {
	return l.use(class, key, 0)
}

func (l *Limiter) use(class, key string, take float64) (bool, time.Duration) {
	name := Name(class)
	r, known := l.classes[name]
	if !known {
		return false, time.Minute
	}
	k := bucketKey{name, key}
	s := &l.shards[maphash.Comparable(l.seed, k)%shardCount]
	now := l.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	element, found := s.buckets[k]
	if !found {
		if take == 0 {
			return true, 0
		}
		s.add(&bucket{key: k, rate: r, tokens: r.burst - take, at: now})
		return true, 0
	}
	s.recent.MoveToFront(element)
	b := element.Value.(*bucket)
	b.fill(now)
	if b.tokens < 1 {
		return false, b.wait()
	}
	b.tokens -= take
	return true, 0
}

// fill adds what has flowed in since the last use. A clock that goes back adds nothing.
func (b *bucket) fill(now time.Time) {
	if elapsed := now.Sub(b.at); elapsed > 0 {
		b.tokens = min(b.rate.burst, b.tokens+elapsed.Seconds()*b.rate.perSecond)
	}
	b.at = now
}

func (b *bucket) wait() time.Duration {
	return time.Duration((1 - b.tokens) / b.rate.perSecond * float64(time.Second))
}

func (s *shard) add(b *bucket) {
	if len(s.buckets) >= s.max {
		s.drop(s.recent.Back())
	}
	s.buckets[b.key] = s.recent.PushFront(b)
}

func (s *shard) drop(e *list.Element) {
	delete(s.buckets, e.Value.(*bucket).key)
	s.recent.Remove(e)
}

// Tracked is the number of buckets in memory.
func (l *Limiter) Tracked() int {
	n := 0
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.buckets)
		s.mu.Unlock()
	}
	return n
}

// Sweep drops every bucket that has filled up again.
func (l *Limiter) Sweep() {
	now := l.clock.Now()
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for _, e := range s.buckets {
			b := e.Value.(*bucket)
			b.fill(now)
			if b.tokens >= b.rate.burst {
				s.drop(e)
			}
		}
		s.mu.Unlock()
	}
}

// Run sweeps until the context ends. The lifecycle owns the goroutine it runs in.
func (l *Limiter) Run(ctx context.Context) error {
	timer := l.clock.NewTimer(l.sweep)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
			l.Sweep()
			timer.Reset(l.sweep)
		}
	}
}
