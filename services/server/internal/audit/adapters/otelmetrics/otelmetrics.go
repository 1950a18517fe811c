// SPDX-License-Identifier: Apache-2.0

// Package otelmetrics measures what the module audit does.
package otelmetrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
)

// Metrics implements audit.Metrics.
type Metrics struct {
	breaks, lost, sink otel.Counter
	newest             *atomic.Pointer[time.Time]
}

var _ audit.Metrics = Metrics{}

// New measures into a meter. The age of a checkpoint is told once this process has made one.
func New(m otel.Meter, clk clock.Clock) Metrics {
	out := Metrics{
		breaks: m.Counter("bothy.audit.chain_breaks"), lost: m.Counter("bothy.audit.denials_lost"),
		sink: m.Counter("bothy.audit.sink_failures"), newest: &atomic.Pointer[time.Time]{},
	}
	m.Watch("bothy.audit.checkpoint_age", func(observe otel.Observe) {
		if at := out.newest.Load(); at != nil {
			observe(clk.Now().Sub(*at).Seconds())
		}
	})
	return out
}

// ChainBreaks implements audit.Metrics.
func (m Metrics) ChainBreaks(ctx context.Context, n int) { m.breaks.Add(ctx, int64(n)) }

// DenialsLost implements audit.Metrics.
func (m Metrics) DenialsLost(ctx context.Context, n int) { m.lost.Add(ctx, int64(n)) }

// SinkFailed implements audit.Metrics.
func (m Metrics) SinkFailed(ctx context.Context) { m.sink.Add(ctx, 1) }

// Checkpointed implements audit.Metrics.
func (m Metrics) Checkpointed(_ context.Context, at time.Time) { m.newest.Store(&at) }
