// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/OWNER/bothy/services/server/perf/internal/load"
)

func TestQuantilesAreValuesThatOccurred(t *testing.T) {
	var l load.Latencies
	for i := 100; i >= 1; i-- {
		l.Add(time.Duration(i) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0: 1, .5: 50, .99: 99, .999: 100, 1: 100} {
		if got := l.Quantile(q); got != want*time.Millisecond {
			t.Errorf("quantile %v is %v, want %vms", q, got, int64(want))
		}
	}
	if new(load.Latencies).Quantile(.5) != 0 {
		t.Error("no values have a quantile")
	}
	if load.Median([]float64{3, 1, 2}) != 2 || load.Median([]float64{4, 1, 2, 3}) != 2.5 || load.Median(nil) != 0 {
		t.Error("median")
	}
}

// TestAStallIsFeltByEverySendThatWasDue is what the open loop is for: one slow answer among a hundred must not hide.
func TestAStallIsFeltByEverySendThatWasDue(t *testing.T) {
	gate := make(chan struct{})
	time.AfterFunc(400*time.Millisecond, func() { close(gate) })
	r := load.Open{Rate: 100, Measured: 300 * time.Millisecond}.Run(context.Background(), func(context.Context, int, time.Time) error {
		<-gate
		return nil
	})
	if r.Sent != 30 || r.Latency.Count() != 30 {
		t.Fatalf("sent %d, counted %d", r.Sent, r.Latency.Count())
	}
	if first := r.Latency.Quantile(1); first < 250*time.Millisecond {
		t.Errorf("the first send waited %v", first)
	}
}

func TestFailuresAndDropsAreNotLatencies(t *testing.T) {
	bad := errors.New("refused")
	r := load.Open{Rate: 1000, Measured: 50 * time.Millisecond}.Run(context.Background(), func(_ context.Context, n int, _ time.Time) error {
		if n%2 == 0 {
			return bad
		}
		return nil
	})
	if r.Failed != 25 || r.Latency.Count() != 25 || !errors.Is(r.FirstError, bad) {
		t.Errorf("%d failed, %d counted, %v", r.Failed, r.Latency.Count(), r.FirstError)
	}
	gate := make(chan struct{})
	time.AfterFunc(150*time.Millisecond, func() { close(gate) })
	r = load.Open{Rate: 1000, Measured: 20 * time.Millisecond, InFlight: 5}.Run(context.Background(), func(context.Context, int, time.Time) error {
		<-gate
		return nil
	})
	if r.Dropped != 15 || r.Latency.Count() != 5 {
		t.Errorf("%d dropped, %d counted", r.Dropped, r.Latency.Count())
	}
}

func TestTheClosedLoopCountsWhatEndedInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := load.Closed{Writers: 2, Warmup: 100 * time.Millisecond, Measured: time.Second}.Run(t.Context(), func(context.Context, int, int) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		})
		if n := r.Latency.Count(); n < 190 || n > 200 {
			t.Errorf("%d counted", n)
		}
		if r.Rate() < 190 || r.Rate() > 200 {
			t.Errorf("%v a second", r.Rate())
		}
	})
}

func TestTextsAreTheSameInEveryRun(t *testing.T) {
	a, b := load.NewTexts(7, []string{"p"}), load.NewTexts(7, []string{"p"})
	long, mentions := 0, 0
	for n := range 2000 {
		text := a.Text(n)
		if text != b.Text(n) {
			t.Fatal("two runs differ")
		}
		if len(text) > 800 {
			long++
		}
		if len(text) > 5 && text[:5] == "<@p> " {
			mentions++
		}
	}
	if long < 100 || long > 240 || mentions < 60 || mentions > 150 {
		t.Errorf("%d long, %d mentions", long, mentions)
	}
}
