// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
	"github.com/OWNER/bothy/services/server/internal/platform/ratelimit"
)

// Options is everything a chain works with. Config, Log, Clock, Limiter and Authenticator
// are needed; without one of the others its stage passes every request.
type Options struct {
	Config        Config
	Log           *slog.Logger
	Clock         clock.Clock
	Telemetry     *otel.Telemetry
	Meter         otel.Meter
	Limiter       *ratelimit.Limiter
	Authenticator actor.Authenticator
	// Units and Idempotency together turn on the stage that stores answers.
	Units       txn.UnitOfWork
	Idempotency idempotency.Store
	// Positions gives reads their Sync-Seq.
	Positions flush.Positions
	// SetupComplete tells whether the instance has an owner. It is asked for every request
	// of an operation that is closed before, so its source remembers a yes.
	SetupComplete func() (bool, error)
	// MaintenanceAllows decides for operations whose rule is conditional.
	MaintenanceAllows func(r *http.Request, op Operation) (bool, error)
	// Nonces looks at the nonce of a proof and nothing else of it. It gives a fresh one for the
	// answer when the presented one gets old, and tells when it cannot be accepted any more.
	Nonces func(proof string) (fresh string, needed bool)
	// RateKeys makes the keys of classes whose key only their module knows, by class name
	// without "rl.". An empty key falls back to the client address.
	RateKeys map[string]func(r *http.Request, a actor.Actor) string
	// Pages answers paths outside the API; it sets its own headers.
	Pages http.Handler
	// Observe is told of every answer, for tests that account for what was exercised.
	Observe func(Observation)
	// Unproven is told of every success that was thrown away, so that tests can fail.
	Unproven func(op Operation, checks []authorize.Check)
	// Inspect sees the request and its checks before a success leaves, so that tests can hold
	// the one against the other.
	Inspect func(r *http.Request, op Operation, checks *authorize.CheckLog)
}

// Observation is one answer.
type Observation struct {
	// Operation is empty when no operation was found.
	Operation string
	Method    string
	Status    int
	// Code is the public code of a failure.
	Code     errs.Code
	Duration time.Duration
}

// Chain is the handler of the public listener. Fill it with HandleFunc, then Seal it.
type Chain struct {
	options   Options
	log       *slog.Logger
	mux       *http.ServeMux
	byPattern map[string]*Operation
	handled   map[string]next
	base      http.Header
	duration  otel.Histogram
	sealed    bool
}

// New makes a chain for the operations. It fails when two have one pattern or one names a
// class that the limiter does not know.
func New(o Options, operations []Operation) (*Chain, error) {
	if o.Meter == nil {
		o.Meter = otel.NoMeter{}
	}
	if o.Telemetry == nil {
		o.Telemetry = otel.Off()
	}
	c := &Chain{
		options: o, log: o.Log.With("component", "httpserver"), mux: http.NewServeMux(),
		byPattern: map[string]*Operation{}, handled: map[string]next{}, base: baseHeaders(o.Config),
		duration: o.Meter.Histogram("http.server.request.duration"),
	}
	for _, op := range operations {
		if _, twice := c.byPattern[op.Pattern]; twice {
			return nil, fmt.Errorf("operation %s: pattern %s is taken", op.ID, op.Pattern)
		}
		if _, known := o.Limiter.KeyOf(op.RateLimitClass); !known {
			return nil, fmt.Errorf("operation %s: unknown rate-limit class %q", op.ID, op.RateLimitClass)
		}
		if op.Action == "" && !op.AuthorizedInBand {
			return nil, fmt.Errorf("operation %s: no action", op.ID)
		}
		c.byPattern[op.Pattern] = &op
	}
	return c, nil
}

// stages in their order, outermost first. Steps before the router are in ServeHTTP.
var stages = []stage{
	{"operation", (*Chain).operationStage},
	{"cors", (*Chain).corsStage},
	{"nonce", (*Chain).nonceStage},
	{"authentication", (*Chain).authenticationStage},
	{"ratelimit", (*Chain).ratelimitStage},
	{"maintenance", (*Chain).maintenanceStage},
	{"setup", (*Chain).setupStage},
	{"signed_in", (*Chain).signedInStage},
	{"idempotency", (*Chain).idempotencyStage},
	{"content", (*Chain).contentStage},
	{"if_match", (*Chain).ifMatchStage},
	{"position", (*Chain).positionStage},
	{"check_log", (*Chain).checkLogStage},
}

// inBand are the stages of operations that authenticate on their connection.
var inBand = []string{"operation", "ratelimit"}

// HandleFunc registers the handler of an operation by its pattern. The generated router
// calls it. It panics for a pattern that no operation has: a route without an action must
// not start.
func (c *Chain) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	op, known := c.byPattern[pattern]
	if !known || c.sealed {
		panic("httpserver: no operation for pattern " + pattern)
	}
	rest := next(func(_ *exchange, w http.ResponseWriter, r *http.Request) { handler(w, r) })
	for _, s := range slices.Backward(stages) {
		if op.AuthorizedInBand && !slices.Contains(inBand, s.name) {
			continue
		}
		rest = s.wrap(c, op, rest)
	}
	c.handled[op.ID] = rest
	c.route(pattern, op, rest)
}

func (c *Chain) route(pattern string, op *Operation, run next) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		x.routed, x.op, x.r = true, op, r
		x.span.SetName(op.Pattern)
		run(x, x, r)
	})
}

// Alias serves an operation under a second pattern.
func (c *Chain) Alias(pattern, operationID string) {
	for _, op := range c.byPattern {
		if run := c.handled[operationID]; op.ID == operationID && run != nil {
			c.route(pattern, op, run)
			return
		}
	}
	panic("httpserver: alias for unknown operation " + operationID)
}

// Seal ends the registration. It fails when an operation has no handler.
func (c *Chain) Seal() error {
	var missing []string
	for _, op := range c.byPattern {
		if c.handled[op.ID] == nil {
			missing = append(missing, op.ID)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("operations without a handler: %s", strings.Join(missing, ", "))
	}
	c.sealed = true
	return nil
}

// ServeHTTP implements http.Handler.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{chain: c, w: w, start: c.options.Clock.Now()}
	addr, trusted := c.clientIP(r)
	ctx, span, trace := c.options.Telemetry.StartServer(r.Context(), r.Method, r.Header, trusted)
	x.span, x.meta = span, reqmeta.Meta{CorrelationID: correlationID(trace), ClientIP: addr}
	ctx = reqmeta.With(context.WithValue(ctx, exchangeKey{}, x), x.meta)
	r = r.WithContext(ctx)
	x.r = r
	defer c.finish(x)
	h := w.Header()
	for name, values := range c.base {
		h[name] = values
	}
	h["Correlation-Id"] = []string{x.meta.CorrelationID}
	c.mux.ServeHTTP(x, r)
	if !x.routed {
		c.unrouted(x, r)
	}
}

// unrouted answers what the router did not find: pages, preflights, 404 and 405.
func (c *Chain) unrouted(x *exchange, r *http.Request) {
	h := x.Header()
	allow := h.Get("Allow")
	for _, name := range []string{"Content-Type", "Content-Length", "Location", "Allow"} {
		h.Del(name)
	}
	x.routed = true
	isAPI := strings.HasPrefix(r.URL.Path, "/api/")
	switch {
	case x.unroutedStatus == http.StatusMethodNotAllowed && c.preflight(x, r, allow):
	case x.unroutedStatus == http.StatusMethodNotAllowed:
		h.Set("Allow", allow)
		x.fail(x, errs.New(errs.CodeMethodNotAllowed, "This path does not take this method; see the header Allow."))
	case !isAPI && c.options.Pages != nil:
		c.options.Pages.ServeHTTP(x, r)
	default:
		x.fail(x, errs.NotFound())
	}
}

// errPanic stands for a panic, which is logged with its stack where it is caught.
var errPanic = errors.New("panic in a handler")

// finish catches panics and accounts for the answer.
func (c *Chain) finish(x *exchange) {
	p := recover()
	if p != nil && p != http.ErrAbortHandler { //nolint:errorlint // The value of the panic is that very variable.
		c.count("bothy.panics", "bothy.component", "httpserver")
		c.log.ErrorContext(x.r.Context(), "panic in a handler", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		p = http.ErrAbortHandler
		if !x.wrote {
			p = nil
			x.routed, x.discard = true, false
			x.fail(x, errs.Internal(errPanic))
		}
	}
	c.account(x)
	if p != nil {
		panic(http.ErrAbortHandler)
	}
}

// account writes the access line, which has neither query nor content, and ends the span.
func (c *Chain) account(x *exchange) {
	duration := c.options.Clock.Now().Sub(x.start)
	operation := ""
	if x.op != nil {
		operation = x.op.ID
	}
	status := x.status
	if status == 0 {
		status = http.StatusOK
	}
	if c.log.Enabled(x.r.Context(), slog.LevelInfo) {
		attrs := []slog.Attr{
			slog.String("method", method(x.r.Method)), slog.String("operation", operation), slog.Int("status", status),
			slog.Float64("duration_ms", float64(duration.Microseconds())/1000), slog.Int64("bytes", x.size),
		}
		if x.code != "" {
			attrs = append(attrs, slog.String("code", string(x.code)))
		}
		c.log.LogAttrs(x.r.Context(), slog.LevelInfo, "request", attrs...)
	}
	if x.span != nil {
		x.span.Set(otel.String("bothy.operation", operation), otel.Int("http.response.status_code", status))
		x.span.End(string(x.code))
	}
	route := "unmatched"
	if x.op != nil {
		_, route, _ = strings.Cut(x.op.Pattern, " ")
	}
	c.duration.Record(x.r.Context(), duration.Seconds(), "http.request.method", method(x.r.Method), "http.route", route,
		"http.response.status_code", strconv.Itoa(status), "error.type", string(x.code))
	if c.options.Observe != nil {
		c.options.Observe(Observation{operation, x.r.Method, status, x.code, duration})
	}
}

// method keeps words that a client made up out of the log.
func method(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return m
	default:
		return "other"
	}
}

func (c *Chain) count(name string, attributes ...string) {
	c.options.Meter.Counter(name).Add(context.Background(), 1, attributes...)
}

// correlationID writes a trace ID in the form of a UUID.
func correlationID(id [16]byte) string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// baseHeader names what an answer that replaces another one keeps.
var baseHeader = map[string]bool{
	"Correlation-Id": true, "X-Content-Type-Options": true, "Referrer-Policy": true, "Cross-Origin-Resource-Policy": true,
	"Content-Security-Policy": true, "Cache-Control": true, "Strict-Transport-Security": true, "Vary": true,
	"Dpop-Nonce": true, "Access-Control-Allow-Origin": true, "Access-Control-Expose-Headers": true,
}

func baseHeaders(c Config) http.Header {
	h := http.Header{
		"X-Content-Type-Options":       {"nosniff"},
		"Referrer-Policy":              {"no-referrer"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
		"Cache-Control":                {"no-store"},
	}
	if strings.HasPrefix(c.PublicURL, "https://") {
		h["Strict-Transport-Security"] = []string{"max-age=31536000"}
	}
	return h
}
