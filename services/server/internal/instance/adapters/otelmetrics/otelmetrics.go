// SPDX-License-Identifier: Apache-2.0

// Package otelmetrics measures what the module instance does.
package otelmetrics

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
)

// Metrics implements app.Metrics.
type Metrics struct {
	failures, violations otel.Counter
	age                  otel.Gauge
}

var _ app.Metrics = Metrics{}

// New measures into a meter.
func New(m otel.Meter) Metrics {
	return Metrics{
		failures: m.Counter("bothy.signing_key.rotation_failures"), violations: m.Counter("bothy.csp.violations"),
		age: m.Gauge("bothy.signing_key.age"),
	}
}

// RotationFailed implements app.Metrics.
func (m Metrics) RotationFailed(ctx context.Context, purpose string) {
	m.failures.Add(ctx, 1, "bothy.purpose", purpose)
}

// KeyAge implements app.Metrics.
func (m Metrics) KeyAge(ctx context.Context, purpose string, age time.Duration) {
	m.age.Set(ctx, age.Seconds(), "bothy.purpose", purpose)
}

// PolicyViolation implements app.Metrics.
func (m Metrics) PolicyViolation(ctx context.Context, directive string) {
	m.violations.Add(ctx, 1, "bothy.directive", directive)
}
