// SPDX-License-Identifier: Apache-2.0

// Package otel sets up logs, traces and metrics.
//
// Everything leaves over OTLP and only when the operator named a collector; without one the
// calls cost next to nothing. Telemetry never blocks and never fails a request: queues are
// bounded, what does not fit is dropped. It never carries content, names, addresses or
// tokens; what may be an attribute is decided by the callers and kept to IDs and codes.
package otel

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	otelapi "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Config says where telemetry goes and how much of it.
type Config struct {
	Endpoint       string        `key:"telemetry.otlp_endpoint" type:"url" doc:"Base address of an OpenTelemetry collector; empty turns telemetry off."`
	HeadersRef     string        `key:"telemetry.otlp_headers_ref" type:"ref" doc:"Reference to headers for the collector, one \"Name: value\" per line."`
	CAFile         string        `key:"telemetry.otlp_ca_file" type:"path" doc:"Certificates that the collector's certificate is checked against."`
	SampleRatio    float64       `key:"telemetry.trace_sample_ratio" default:"0.1" min:"0" max:"1" doc:"Part of the traces that is recorded, decided at their root."`
	MetricInterval time.Duration `key:"telemetry.metric_interval" default:"15s" min:"5s" max:"5m" doc:"How often figures are sent to the collector."`
	QueueMax       int           `key:"telemetry.queue_max" default:"2048" min:"128" max:"65536" doc:"Spans and log records that wait at most; more are dropped."`
	ExportLogs     bool          `key:"telemetry.export_logs" default:"false" doc:"Send the log records to the collector as well."`
	Environment    string
	Role, Version  string
}

// Telemetry is the running set-up. The zero value and nil are off.
type Telemetry struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	logs     *sdklog.LoggerProvider
	metrics  *sdkmetric.MeterProvider
	meter    *meter
	headers  *headers
	enabled  bool
}

// Off is telemetry without a collector.
func Off() *Telemetry { return &Telemetry{tracer: noop.NewTracerProvider().Tracer("")} }

// Setup starts the exporters. It does not contact the collector: one that is away costs
// telemetry and nothing else.
func Setup(ctx context.Context, c Config) (*Telemetry, error) {
	if c.Endpoint == "" {
		return Off(), nil
	}
	tlsConfig, err := tlsFor(c.CAFile)
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(c.Endpoint, "/")
	if _, err := url.Parse(base); err != nil {
		return nil, errors.New("telemetry.otlp_endpoint is no URL")
	}
	client, headers := newClient(tlsConfig)
	res := c.resource()
	t := &Telemetry{enabled: true, headers: headers}
	if err := t.exportMetrics(ctx, c, base, client, res); err != nil {
		return nil, err
	}
	dropped := t.Meter().Counter("bothy.telemetry.dropped")
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(base+"/v1/traces"), otlptracehttp.WithHTTPClient(client), otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return nil, fmt.Errorf("set up trace export: %w", err)
	}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(newSpanQueue(exporter, c.QueueMax, dropped)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(c.SampleRatio))),
		sdktrace.WithResource(res),
	)
	t.tracer = t.provider.Tracer("bothy")
	if c.ExportLogs {
		if err := t.exportLogs(ctx, c, base, client, res, dropped); err != nil {
			return nil, err
		}
	}
	return t, nil
}

const exportTimeout = 5 * time.Second

func (t *Telemetry) exportLogs(ctx context.Context, c Config, base string, client *http.Client, res *resource.Resource, dropped Counter) error {
	exporter, err := otlploghttp.New(ctx,
		otlploghttp.WithEndpointURL(base+"/v1/logs"), otlploghttp.WithHTTPClient(client), otlploghttp.WithTimeout(exportTimeout))
	if err != nil {
		return fmt.Errorf("set up log export: %w", err)
	}
	t.logs = sdklog.NewLoggerProvider(sdklog.WithProcessor(newLogQueue(exporter, c.QueueMax, dropped)), sdklog.WithResource(res))
	return nil
}

func (c Config) resource() *resource.Resource {
	return resource.NewSchemaless(
		attribute.String("service.namespace", "bothy"), attribute.String("service.name", "bothy-server"),
		attribute.String("service.version", c.Version), attribute.String("service.instance.id", ids.New().String()),
		attribute.String("deployment.environment.name", c.Environment), attribute.String("bothy.role", c.Role),
	)
}

// Shutdown sends what waits, for as long as ctx allows. Figures go last, with what was dropped.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errTraces, errLogs, errMetrics error
	if t != nil && t.provider != nil {
		errTraces = t.provider.Shutdown(ctx)
	}
	if t != nil && t.logs != nil {
		errLogs = t.logs.Shutdown(ctx)
	}
	if t != nil && t.metrics != nil {
		errMetrics = t.metrics.Shutdown(ctx)
	}
	return errors.Join(errTraces, errLogs, errMetrics)
}

// LogFaults writes down what cannot be sent, folded like every other repetition. Without it the
// libraries write to standard error in a form of their own.
func (t *Telemetry) LogFaults(log *slog.Logger) {
	if t.Enabled() {
		otelapi.SetErrorHandler(otelapi.ErrorHandlerFunc(func(err error) {
			log.Warn("telemetry cannot be sent", "component", "otel", "error", err)
		}))
	}
}

// Enabled reports whether a collector is configured.
func (t *Telemetry) Enabled() bool { return t != nil && t.enabled }

// Span is one piece of work. A nil span does nothing.
type Span struct{ span trace.Span }

// Start begins an internal span; End it.
func (t *Telemetry) Start(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, *Span) {
	if !t.Enabled() {
		return ctx, nil
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, &Span{span}
}

// StartServer begins the span of a request and gives the trace ID, which is random when
// telemetry is off. The caller's own trace is continued only when the caller is trusted:
// anybody else would choose our trace IDs and our sampling, so theirs becomes a link.
func (t *Telemetry) StartServer(ctx context.Context, name string, header http.Header, trusted bool) (context.Context, *Span, [16]byte) {
	if !t.Enabled() {
		return ctx, nil, t.traceID(ctx, header, trusted)
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	if header.Get("Traceparent") != "" {
		remote := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(header))
		if trusted {
			ctx = trace.ContextWithRemoteSpanContext(ctx, trace.SpanContextFromContext(remote))
		} else {
			options = append(options, trace.WithLinks(trace.LinkFromContext(remote)))
		}
	}
	ctx, span := t.tracer.Start(ctx, name, options...)
	return ctx, &Span{span}, span.SpanContext().TraceID()
}

func (t *Telemetry) traceID(ctx context.Context, header http.Header, trusted bool) (id [16]byte) {
	if trusted && header.Get("Traceparent") != "" {
		remote := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header)))
		if remote.IsValid() {
			return remote.TraceID()
		}
	}
	// rand.Read never fails.
	_, _ = rand.Read(id[:])
	return id
}

// Set adds attributes.
func (s *Span) Set(attrs ...attribute.KeyValue) {
	if s != nil {
		s.span.SetAttributes(attrs...)
	}
}

// SetName renames the span, once the route is known.
func (s *Span) SetName(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// End ends the span; a code that is not empty marks it as failed.
func (s *Span) End(errorCode string) {
	if s == nil {
		return
	}
	if errorCode != "" {
		s.span.SetAttributes(attribute.String("error.type", errorCode))
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// String and Int make attributes, so that callers need no library of their own.
func String(key, value string) attribute.KeyValue { return attribute.String(key, value) }

// Int makes an attribute of a number.
func Int(key string, value int) attribute.KeyValue { return attribute.Int(key, value) }

func tlsFor(caFile string) (*tls.Config, error) {
	if caFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, errors.New("telemetry.otlp_ca_file cannot be read")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("telemetry.otlp_ca_file holds no certificate")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

var _ slog.Handler = (*handler)(nil)
