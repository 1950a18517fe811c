// SPDX-License-Identifier: Apache-2.0

//go:build perf

// Package gateway_fanout measures how long a message takes from the time it is due to be sent to its arrival at every
// socket of those who may read it.
package gateway_fanout

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/perf/internal/bench"
	"github.com/OWNER/bothy/services/server/perf/internal/load"
	"github.com/OWNER/bothy/services/server/perf/internal/report"
	"github.com/OWNER/bothy/services/server/test/ledger"
	"github.com/OWNER/bothy/services/server/test/system"
)

const (
	sockets = 100
	rate    = 50
	warmup  = 5 * time.Second
	// patience is how long a socket may take to hear the last message.
	patience = 10 * time.Second
)

func TestFanout(t *testing.T) {
	b := bench.Up(t, "gateway_fanout", bench.Authors, bench.Channels)
	book := ledger.New()
	span := bench.Span(30 * time.Second)
	b.Report.Load["rate"], b.Report.Load["sockets"], b.Report.Load["warmup_s"], b.Report.Load["measured_s"] = rate, sockets, warmup.Seconds(), span.Seconds()
	b.Report.Load["compression"] = "offered, as browsers do"
	authors := b.Callers(rate)
	samples := int64(0)
	figures, enough := bench.Repeat(func(n int) (float64, bool) {
		run, summary, valid := measure(t, b, book, authors, span, fmt.Sprint("run ", n+1))
		b.Report.Runs = append(b.Report.Runs, run)
		samples += summary.Count
		return summary.P99, valid
	})
	b.Report.Judge(report.FanoutP99, figures, samples, enough)
	b.Audit(t, book)
	b.Finish(t)
}

// ears are the sockets of a run and what they heard.
type ears struct {
	mu sync.Mutex
	// due is when a message was to be sent, by its client ID. Messages of the warm-up are absent.
	due     map[string]time.Time
	latency load.Latencies
	heard   map[string]int
}

var (
	typeMark   = []byte(`"type":"message.created"`)
	clientMark = []byte(`"client_msg_id":"`)
)

const idLength = 36

// take looks into the text of a frame: decoding five thousand of them in a second would measure this process.
func (e *ears) take(text []byte, at time.Time) {
	i := bytes.Index(text, clientMark)
	if i < 0 || !bytes.Contains(text, typeMark) || len(text) < i+len(clientMark)+idLength {
		return
	}
	id := string(text[i+len(clientMark):][:idLength])
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard[id]++
	if due, counted := e.due[id]; counted {
		e.latency.Add(at.Sub(due))
	}
}

func measure(t *testing.T, b *bench.Bench, book *ledger.Ledger, authors []*system.Client, span time.Duration, name string) (report.Run, load.Summary, bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	e := &ears{due: map[string]time.Time{}, heard: map[string]int{}}
	var reading sync.WaitGroup
	// Deferred in this order, so that the readers are asked to end, which closes the sockets, before they are waited for.
	defer reading.Wait()
	defer cancel()
	for n := range sockets {
		s, err := system.Dial(ctx, b.Team.People[n%len(b.Team.People)], system.SocketOptions{Compress: true})
		if err != nil {
			t.Fatalf("socket %d: %v", n, err)
		}
		reading.Go(func() {
			if err := s.ReadRaw(ctx, e.take); err != nil && ctx.Err() == nil {
				t.Errorf("socket %d: %v", n, err)
			}
		})
	}
	usage := b.Watch()
	warm := rate * int(warmup/time.Second)
	r := load.Open{Rate: rate, Warmup: warmup, Measured: span}.Run(ctx, func(ctx context.Context, n int, due time.Time) error {
		id := system.NewID()
		e.mu.Lock()
		if n >= warm {
			e.due[id] = due
		}
		e.heard[id] = 0
		e.mu.Unlock()
		return b.Write(ctx, book, authors, n, id)
	})
	missing := e.wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	summary := e.latency.Summary()
	run := report.Run{Name: name, Latency: &summary, Rate: r.Rate(), Counts: bench.Count(r), Late: load.Milliseconds(r.Late.Quantile(.99))}
	usage.Into(&run)
	if r.Failed+r.Dropped > 0 {
		t.Errorf("%d failed, %d dropped: %v", r.Failed, r.Dropped, r.FirstError)
	}
	if missing > 0 {
		t.Errorf("%d messages did not reach every socket exactly once", missing)
	}
	return run, summary, r.Valid()
}

// wait gives the sockets time to hear everything and counts what did not arrive at each of them exactly once.
func (e *ears) wait() int {
	deadline := time.Now().Add(patience)
	for {
		missing := 0
		e.mu.Lock()
		for _, n := range e.heard {
			if n != sockets {
				missing++
			}
		}
		e.mu.Unlock()
		if missing == 0 || time.Now().After(deadline) {
			return missing
		}
		time.Sleep(10 * time.Millisecond)
	}
}
