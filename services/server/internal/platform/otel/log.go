// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/trace"

	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
)

// LogConfig says what the log shows and in which form.
type LogConfig struct {
	Level  string `key:"log.level" default:"info" enum:"debug,info,warn,error" doc:"The least level that is written."`
	Format string `key:"log.format" default:"auto" enum:"auto,json,text" doc:"One JSON object per line, plain text, or text only on a terminal."`
}

// foldAfter is how many equal records a minute may hold before the rest is counted only.
const foldAfter = 10

// NewLogger makes the logger of the process. terminal says whether w is one.
func NewLogger(c LogConfig, w io.Writer, terminal bool) *slog.Logger {
	return slog.New(newHandler(c, w, terminal, time.Now))
}

// WithExport is the logger that also sends its records to the collector, when telemetry
// was set up to export logs.
func (t *Telemetry) WithExport(c LogConfig, w io.Writer, terminal bool) *slog.Logger {
	if t == nil || t.logs == nil {
		return NewLogger(c, w, terminal)
	}
	h := newHandler(c, w, terminal, time.Now)
	h.next = both{h.next, otelslog.NewHandler("bothy", otelslog.WithLoggerProvider(t.logs))}
	return slog.New(h)
}

func newHandler(c LogConfig, w io.Writer, terminal bool, now func() time.Time) *handler {
	options := &slog.HandlerOptions{Level: levelOf(c.Level), ReplaceAttr: shape}
	var next slog.Handler = slog.NewJSONHandler(w, options)
	if c.Format == "text" || c.Format == "auto" && terminal {
		next = slog.NewTextHandler(w, options)
	}
	return &handler{next: next, folds: &folds{seen: map[string]*fold{}, now: now}}
}

func levelOf(name string) slog.Level {
	switch name {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// shape writes times in UTC with milliseconds and levels in lower case.
func shape(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.String(a.Key, a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	case slog.LevelKey:
		return slog.String(a.Key, strings.ToLower(a.Value.String()))
	default:
		return a
	}
}

// handler adds what the context knows of the request and folds repetitions of warnings and
// errors, so that a broken dependency does not fill the disk.
type handler struct {
	next      slog.Handler
	folds     *folds
	component string
}

type folds struct {
	mu   sync.Mutex
	seen map[string]*fold
	now  func() time.Time
}

type fold struct {
	since time.Time
	count int
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.next = h.next.WithAttrs(attrs)
	for _, a := range attrs {
		if a.Key == "component" {
			c.component = a.Value.String()
		}
	}
	return &c
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	c := *h
	c.next = h.next.WithGroup(name)
	return &c
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		pass, repeated := h.folds.admit(h.component + "\x00" + r.Message)
		if !pass {
			return nil
		}
		if repeated > 0 {
			r.AddAttrs(slog.Int("repeated", repeated))
		}
	}
	if id := reqmeta.From(ctx).CorrelationID; id != "" {
		r.AddAttrs(slog.String("correlation_id", id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.next.Handle(ctx, r)
}

// admit counts a record. The first one of the next minute tells how many were left out.
func (f *folds) admit(key string) (pass bool, repeated int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	e := f.seen[key]
	if e == nil || now.Sub(e.since) >= time.Minute {
		if e != nil {
			repeated = max(0, e.count-foldAfter)
		}
		if len(f.seen) >= 1000 {
			clear(f.seen)
		}
		f.seen[key] = &fold{since: now, count: 1}
		return true, repeated
	}
	e.count++
	return e.count <= foldAfter, 0
}

// both hands a record to two handlers.
type both struct{ a, b slog.Handler }

func (h both) Enabled(ctx context.Context, l slog.Level) bool { return h.a.Enabled(ctx, l) }

func (h both) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(h.a.Handle(ctx, r.Clone()), h.b.Handle(ctx, r))
}

func (h both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{h.a.WithAttrs(attrs), h.b.WithAttrs(attrs)}
}

func (h both) WithGroup(name string) slog.Handler {
	return both{h.a.WithGroup(name), h.b.WithGroup(name)}
}
