// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
)

func setup(t testing.TB, change func(*Config)) (*Limiter, *clocktest.Fake) {
	t.Helper()
	clk := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := Config{MaxTrackedKeys: 1600, SweepInterval: time.Minute, Classes: map[string]*Class{
		"message": {Key: KeyPrincipal, Burst: 3, PerMinute: 60},
	}}
	if change != nil {
		change(&c)
	}
	l, err := New(c, clk)
	if err != nil {
		t.Fatal(err)
	}
	return l, clk
}

func TestABucketGivesItsBurstThenRefills(t *testing.T) {
	l, clk := setup(t, nil)
	for i := range 3 {
		if ok, _ := l.Take("rl.message", "a"); !ok {
			t.Fatalf("request %d of the burst was refused", i)
		}
	}
	ok, wait := l.Take("message", "a")
	if ok || wait != time.Second {
		t.Fatalf("empty bucket: %v, wait %v, want refusal and 1s", ok, wait)
	}
	if ok, _ := l.Take("message", "b"); !ok {
		t.Fatal("another key shares the bucket")
	}
	clk.Advance(999 * time.Millisecond)
	if ok, _ := l.Take("message", "a"); ok {
		t.Fatal("refilled too early")
	}
	clk.Advance(time.Millisecond)
	if ok, _ := l.Take("message", "a"); !ok {
		t.Fatal("not refilled after the announced wait")
	}
}

func TestPeekTakesNothing(t *testing.T) {
	l, _ := setup(t, nil)
	for range 10 {
		if ok, _ := l.Peek("message", "a"); !ok {
			t.Fatal("a look took a token")
		}
	}
	if l.Tracked() != 0 {
		t.Fatal("a look at an unknown key made a bucket")
	}
}

func TestAnUnknownClassAllowsNothing(t *testing.T) {
	l, _ := setup(t, nil)
	if ok, _ := l.Take("mesage", "a"); ok {
		t.Fatal("allowed")
	}
}

func TestTheNumberOfBucketsIsBounded(t *testing.T) {
	l, _ := setup(t, nil)
	for i := range 10_000 {
		l.Take("message", strconv.Itoa(i))
	}
	if n := l.Tracked(); n > 1600 {
		t.Fatalf("%d buckets", n)
	}
}

func TestTheSweepDropsFullBuckets(t *testing.T) {
	l, clk := setup(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	l.Take("message", "a")
	clk.WaitForTimers(1)
	clk.Advance(time.Minute)
	clk.WaitForTimers(1)
	if n := l.Tracked(); n != 0 {
		t.Errorf("%d buckets after the sweep", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Whatever the order of requests and pauses, no window lets more pass than burst plus
// what flowed in.
func TestNoHistoryExceedsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clk := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		burst, perMinute := rapid.IntRange(1, 20).Draw(t, "burst"), rapid.IntRange(1, 600).Draw(t, "per minute")
		l, err := New(Config{MaxTrackedKeys: 1600, SweepInterval: time.Minute, Classes: map[string]*Class{
			"c": {Burst: burst, PerMinute: perMinute},
		}}, clk)
		if err != nil {
			t.Fatal(err)
		}
		passed, elapsed := 0, time.Duration(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "pause") {
				d := time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond
				clk.Advance(d)
				elapsed += d
				if rapid.Bool().Draw(t, "sweep") {
					l.Sweep()
				}
				continue
			}
			if ok, _ := l.Take("c", "k"); ok {
				passed++
			}
		}
		if limit := float64(burst) + elapsed.Minutes()*float64(perMinute) + 1e-6; float64(passed) > limit {
			t.Fatalf("%d passed, at most %f allowed", passed, limit)
		}
	})
}

func TestDefaultsNameEveryClassOnce(t *testing.T) {
	if got := len(DefaultClasses()); got != len(defaults) {
		t.Fatalf("%d classes from %d rows", got, len(defaults))
	}
	c := Defaults()
	c.MaxTrackedKeys = 1000
	if _, err := New(c, clocktest.New(time.Unix(0, 0))); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkTake(b *testing.B) {
	l, _ := setup(b, func(c *Config) { c.Classes["message"] = &Class{Burst: 100000, PerMinute: 100000} })
	b.ReportAllocs()
	for b.Loop() {
		l.Take("rl.message", "0190b6a0-0000-7000-8000-000000000000")
	}
}
