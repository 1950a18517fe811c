// SPDX-License-Identifier: Apache-2.0

//go:build perf

// Package load_messages measures writing messages over HTTP: the latency at a steady rate and the rate at which
// writers get through when each sends as soon as it can.
package load_messages

import (
	"context"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/perf/internal/bench"
	"github.com/OWNER/bothy/services/server/perf/internal/load"
	"github.com/OWNER/bothy/services/server/perf/internal/report"
	"github.com/OWNER/bothy/services/server/test/ledger"
	"github.com/OWNER/bothy/services/server/test/system"
)

const (
	rate    = 200
	writers = 16
	warmup  = 5 * time.Second
)

func TestMessages(t *testing.T) {
	b := bench.Up(t, "load_messages", bench.Authors, bench.Channels)
	book := ledger.New()
	span := bench.Span(30 * time.Second)
	b.Report.Load["rate"], b.Report.Load["writers"], b.Report.Load["warmup_s"], b.Report.Load["measured_s"] = rate, writers, warmup.Seconds(), span.Seconds()
	openLoop(t, b, book, span)
	closedLoop(t, b, book, span/2)
	b.Audit(t, book)
	b.Finish(t)
}

func openLoop(t *testing.T, b *bench.Bench, book *ledger.Ledger, span time.Duration) {
	t.Helper()
	authors := b.Callers(writers * 4)
	samples := int64(0)
	figures, enough := bench.Repeat(func(int) (float64, bool) {
		usage := b.Watch()
		r := load.Open{Rate: rate, Warmup: warmup, Measured: span}.Run(t.Context(), func(ctx context.Context, n int, _ time.Time) error {
			return b.Write(ctx, book, authors, n, system.NewID())
		})
		summary := r.Latency.Summary()
		run := report.Run{Name: "open loop", Latency: &summary, Rate: r.Rate(), Counts: bench.Count(r), Late: load.Milliseconds(r.Late.Quantile(.99))}
		usage.Into(&run)
		b.Report.Runs = append(b.Report.Runs, run)
		samples += summary.Count
		if r.Failed+r.Dropped > 0 {
			t.Errorf("%d of %d failed, %d dropped: %v", r.Failed, r.Sent, r.Dropped, r.FirstError)
		}
		return summary.P99, r.Valid()
	})
	b.Report.Judge(report.MessageCreateP99, figures, samples, enough)
}

func closedLoop(t *testing.T, b *bench.Bench, book *ledger.Ledger, span time.Duration) {
	t.Helper()
	authors := b.Callers(writers)
	var figures []float64
	for range bench.Runs() {
		usage := b.Watch()
		r := load.Closed{Writers: writers, Warmup: warmup / 2, Measured: span}.Run(t.Context(), func(ctx context.Context, _, n int) error {
			return b.Write(ctx, book, authors, n, system.NewID())
		})
		summary := r.Latency.Summary()
		run := report.Run{Name: "closed loop", Latency: &summary, Rate: r.Rate(), Counts: bench.Count(r)}
		usage.Into(&run)
		b.Report.Runs = append(b.Report.Runs, run)
		figures = append(figures, r.Rate())
		if r.Failed > 0 {
			t.Errorf("%d failed: %v", r.Failed, r.FirstError)
		}
	}
	b.Report.Judge(report.MessagesClosed, figures, 0, true)
}
