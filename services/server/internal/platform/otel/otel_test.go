// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
)

func TestALogLineCarriesTheRequest(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger(LogConfig{Level: "info", Format: "auto"}, &out, false).With("component", "x")
	ctx := reqmeta.With(context.Background(), reqmeta.Meta{CorrelationID: "c-1"})
	log.InfoContext(ctx, "done", "status", 200)
	log.DebugContext(ctx, "hidden")
	line := out.String()
	for _, want := range []string{`"level":"info"`, `"msg":"done"`, `"component":"x"`, `"correlation_id":"c-1"`, `Z"`} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is missing in %s", want, line)
		}
	}
	if strings.Contains(line, "hidden") {
		t.Error("a record below the level was written")
	}
}

func TestRepeatedWarningsFold(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	log := slog.New(newHandler(LogConfig{Format: "text"}, &out, false, func() time.Time { return now }))
	for range 100 {
		log.Warn("collector away")
	}
	if n := strings.Count(out.String(), "collector away"); n != foldAfter {
		t.Errorf("%d lines", n)
	}
	now = now.Add(time.Minute)
	log.Warn("collector away")
	if !strings.Contains(out.String(), "repeated=90") {
		t.Errorf("the left out are not counted: %s", out.String())
	}
}

func TestWithoutACollectorNothingIsRecorded(t *testing.T) {
	tel, err := Setup(context.Background(), Config{})
	if err != nil || tel.Enabled() {
		t.Fatalf("%v %v", tel.Enabled(), err)
	}
	ctx, span := tel.Start(context.Background(), "work")
	span.Set(String("a", "b"))
	span.End("x")
	_, _, a := tel.StartServer(ctx, "GET", http.Header{}, false)
	_, _, b := tel.StartServer(ctx, "GET", http.Header{}, false)
	if a == b || a == [16]byte{} {
		t.Error("requests share a correlation ID")
	}
	if err := tel.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

func TestOnlyATrustedCallerContinuesItsTrace(t *testing.T) {
	header := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	for _, c := range []struct {
		name string
		tel  func(t *testing.T) *Telemetry
	}{
		{"off", func(*testing.T) *Telemetry { return Off() }},
		{"on", func(t *testing.T) *Telemetry {
			tel, err := Setup(context.Background(), Config{Endpoint: "http://127.0.0.1:1", SampleRatio: 0, QueueMax: 128, MetricInterval: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			return tel
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tel := c.tel(t)
			_, trusted, id := tel.StartServer(context.Background(), "GET", header, true)
			trusted.End("")
			if id[0] != 0x0a || id[15] != 0x9c {
				t.Errorf("trusted: %x", id)
			}
			_, foreign, id := tel.StartServer(context.Background(), "GET", header, false)
			foreign.End("")
			if id[0] == 0x0a && id[15] == 0x9c {
				t.Error("an outsider chose the trace ID")
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			_ = tel.Shutdown(ctx)
		})
	}
}

func TestSpansAndLogsReachTheCollector(t *testing.T) {
	var traces, logs atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "v" {
			t.Error("header is missing")
		}
		switch r.URL.Path {
		case "/v1/traces":
			traces.Add(1)
		case "/v1/logs":
			logs.Add(1)
		}
	}))
	defer collector.Close()
	tel, err := Setup(context.Background(), Config{Endpoint: collector.URL, SampleRatio: 1, QueueMax: 128, MetricInterval: time.Hour, ExportLogs: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := tel.UseHeaders("X-Key: v\n"); err != nil {
		t.Fatal(err)
	}
	ctx, span := tel.Start(context.Background(), "work")
	var out bytes.Buffer
	tel.WithExport(LogConfig{Level: "info", Format: "json"}, &out, false).InfoContext(ctx, "done")
	span.End("")
	if err := tel.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if traces.Load() == 0 || logs.Load() == 0 || !strings.Contains(out.String(), `"trace_id"`) {
		t.Errorf("traces %d, logs %d, line %s", traces.Load(), logs.Load(), out.String())
	}
}

// TestFiguresReachTheCollector looks for the names and values in what arrives: texts stand in the
// binary form as they are.
func TestFiguresReachTheCollector(t *testing.T) {
	var mu sync.Mutex
	var got []byte
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/metrics" {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("X-Key") != "v" {
			t.Errorf("%v, key %q", err, r.Header.Get("X-Key"))
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, body...)
	}))
	defer collector.Close()
	ctx := context.Background()
	tel, err := Setup(ctx, Config{Endpoint: collector.URL, QueueMax: 128, MetricInterval: time.Hour, Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	if err := tel.UseHeaders("X-Key: v\n"); err != nil {
		t.Fatal(err)
	}
	m := tel.Meter()
	m.Counter("bothy.panics").Add(ctx, 1, "bothy.component", "jobs", "bothy.secret", "hush")
	m.Histogram("http.server.request.duration").Record(ctx, 0.02, "http.route", "/api/v1/threads/{thread_id}", "http.request.method", "Ana Berger")
	m.Gauge("bothy.signing_key.age").Set(ctx, 5, "bothy.purpose", "access")
	m.Watch("bothy.process.ready", func(observe Observe) { observe(1) })
	m.Counter("no.such.name").Add(ctx, 1)
	m.Gauge("bothy.panics").Set(ctx, 1)
	if err := tel.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{
		"bothy.panics", "jobs", "http.server.request.duration", "/api/v1/threads/{thread_id}", "other", "bothy.signing_key.age", "access",
		"bothy.process.ready", "bothy-server", "bothy.telemetry.rejected_values",
	} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s did not arrive", want)
		}
	}
	for _, never := range []string{"hush", "Ana", "no.such.name"} {
		if bytes.Contains(got, []byte(never)) {
			t.Errorf("%s arrived", never)
		}
	}
}

func TestACollectorThatIsAwayDelaysNothing(t *testing.T) {
	ctx := context.Background()
	tel, err := Setup(ctx, Config{Endpoint: "http://127.0.0.1:1", QueueMax: 128, MetricInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 1000 {
		tel.Meter().Counter("bothy.panics").Add(ctx, 1, "bothy.component", "jobs")
	}
	if d := time.Since(began); d > time.Second {
		t.Errorf("counting took %s", d)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = tel.Shutdown(ctx)
}

func TestMemoryMeterSums(t *testing.T) {
	var m MemoryMeter
	m.Counter("a").Add(context.Background(), 2, "reason", "x")
	m.Counter("a").Add(context.Background(), 1)
	NoMeter{}.Counter("a").Add(context.Background(), 1)
	if m.Sum("a") != 3 {
		t.Error(m.Sum("a"))
	}
}
