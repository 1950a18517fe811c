// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"sync/atomic"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// outbox counts what of one signal waits for the collector, and what was given up: because the
// queue is full, or because sending failed. The queues of the library drop in silence, so the
// outbox turns away one step earlier and theirs never fill up.
type outbox struct {
	signal  string
	limit   int64
	waiting atomic.Int64
	dropped Counter
}

func (o *outbox) lost(n int) { o.dropped.Add(context.Background(), int64(n), "bothy.signal", o.signal) }

// enter takes a place in the queue; false means that there is none.
func (o *outbox) enter() bool {
	if o.waiting.Add(1) <= o.limit {
		return true
	}
	o.waiting.Add(-1)
	o.lost(1)
	return false
}

// leave gives back the places of a batch that was sent, or could not be.
func (o *outbox) leave(n int, err error) error {
	o.waiting.Add(int64(-n))
	if err != nil {
		o.lost(n)
	}
	return err
}

// spanQueue is the batch processor behind an outbox, spanExport the exporter behind both.
type spanQueue struct {
	sdktrace.SpanProcessor
	out *outbox
}

// OnEnd implements sdktrace.SpanProcessor.
func (q spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() && q.out.enter() {
		q.SpanProcessor.OnEnd(s)
	}
}

type spanExport struct {
	sdktrace.SpanExporter
	out *outbox
}

// ExportSpans implements sdktrace.SpanExporter.
func (e spanExport) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return e.out.leave(len(spans), e.SpanExporter.ExportSpans(ctx, spans))
}

func newSpanQueue(exporter sdktrace.SpanExporter, limit int, dropped Counter) sdktrace.SpanProcessor {
	out := &outbox{signal: "traces", limit: int64(limit), dropped: dropped}
	return spanQueue{sdktrace.NewBatchSpanProcessor(spanExport{exporter, out}, sdktrace.WithMaxQueueSize(limit)), out}
}

// logQueue and logExport are the same for log records.
type logQueue struct {
	sdklog.Processor
	out *outbox
}

// OnEmit implements sdklog.Processor.
func (q logQueue) OnEmit(ctx context.Context, r *sdklog.Record) error {
	if !q.out.enter() {
		return nil
	}
	return q.Processor.OnEmit(ctx, r)
}

type logExport struct {
	sdklog.Exporter
	out *outbox
}

// Export implements sdklog.Exporter.
func (e logExport) Export(ctx context.Context, records []sdklog.Record) error {
	return e.out.leave(len(records), e.Exporter.Export(ctx, records))
}

func newLogQueue(exporter sdklog.Exporter, limit int, dropped Counter) sdklog.Processor {
	out := &outbox{signal: "logs", limit: int64(limit), dropped: dropped}
	return logQueue{sdklog.NewBatchProcessor(logExport{exporter, out}, sdklog.WithMaxQueueSize(limit)), out}
}
