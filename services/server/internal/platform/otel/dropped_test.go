// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// stuck is an exporter that holds a batch until it is let go, and then fails or not.
type stuck struct {
	free chan error
	got  atomic.Int64
}

func (s *stuck) wait(ctx context.Context, n int) error {
	select {
	case err, open := <-s.free:
		if !open {
			s.got.Add(int64(n))
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type stuckSpans struct{ *stuck }

func (s stuckSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return s.wait(ctx, len(spans))
}
func (stuckSpans) Shutdown(context.Context) error { return nil }

type stuckLogs struct{ *stuck }

func (s stuckLogs) Export(ctx context.Context, records []sdklog.Record) error {
	return s.wait(ctx, len(records))
}
func (stuckLogs) Shutdown(context.Context) error   { return nil }
func (stuckLogs) ForceFlush(context.Context) error { return nil }

// TestWhatIsDroppedIsCounted fills the queues of a collector that does not answer: what was sent
// and what was dropped is everything there was.
func TestWhatIsDroppedIsCounted(t *testing.T) {
	const limit, sent = 128, 1000
	for name, start := range map[string]func(s *stuck, dropped Counter) (emit func(), stop func(context.Context) error){
		"spans": func(s *stuck, dropped Counter) (func(), func(context.Context) error) {
			p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(newSpanQueue(stuckSpans{s}, limit, dropped)))
			return func() { _, span := p.Tracer("x").Start(context.Background(), "work"); span.End() }, p.Shutdown
		},
		"logs": func(s *stuck, dropped Counter) (func(), func(context.Context) error) {
			p := sdklog.NewLoggerProvider(sdklog.WithProcessor(newLogQueue(stuckLogs{s}, limit, dropped)))
			return func() { p.Logger("x").Emit(context.Background(), log.Record{}) }, p.Shutdown
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, figures := &stuck{free: make(chan error)}, &MemoryMeter{}
			emit, stop := start(s, figures.Counter("dropped"))
			for range sent {
				emit()
			}
			if got := figures.Sum("dropped"); got != sent-limit {
				t.Errorf("%d are dropped while %d may wait of %d", got, limit, sent)
			}
			close(s.free)
			if err := stop(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := figures.Sum("dropped") + s.got.Load(); got != sent || s.got.Load() != limit {
				t.Errorf("%d sent and %d dropped of %d", s.got.Load(), figures.Sum("dropped"), sent)
			}
		})
	}
}

func TestABatchThatCannotBeSentIsCounted(t *testing.T) {
	figures := &MemoryMeter{}
	s := &stuck{free: make(chan error, 1)}
	s.free <- errors.New("away")
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(newSpanQueue(stuckSpans{s}, 128, figures.Counter("dropped"))))
	for range 3 {
		_, span := p.Tracer("x").Start(context.Background(), "work")
		span.End()
	}
	_ = p.Shutdown(context.Background())
	if got := figures.Sum("dropped"); got != 3 {
		t.Errorf("%d are counted", got)
	}
}

// TestRotatedHeadersCountFromTheNextRequest also holds that they never leave for another address.
func TestRotatedHeadersCountFromTheNextRequest(t *testing.T) {
	var last atomic.Value
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirection was followed") }))
	defer elsewhere.Close()
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last.Store(r.Header.Get("X-Key"))
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer collector.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tel, err := Setup(ctx, Config{Endpoint: collector.URL, QueueMax: 128, MetricInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, want string
		refused    bool
	}{{"X-Key: one", "one", false}, {"X-Key: two\n", "two", false}, {"no header", "two", true}, {": three", "two", true}, {"", "", false}} {
		if err := tel.UseHeaders(c.text); err != nil != c.refused {
			t.Errorf("%q: %v", c.text, err)
		}
		_ = tel.metrics.ForceFlush(ctx) // The answer is no success.
		if last.Load() != c.want {
			t.Errorf("after %q the collector got %q", c.text, last.Load())
		}
	}
	_ = tel.Shutdown(ctx)
}
