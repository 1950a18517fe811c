// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"
)

// Metrics counts what an operator must hear of.
type Metrics interface {
	// RotationFailed counts rotations of a purpose that could not be done.
	RotationFailed(ctx context.Context, purpose string)
	// KeyAge notes how long the active key of a purpose has been signing.
	KeyAge(ctx context.Context, purpose string, age time.Duration)
	// PolicyViolation counts what browsers reported, by the directive that stopped it.
	PolicyViolation(ctx context.Context, directive string)
}

// noMetrics counts nothing, for commands and tests.
type noMetrics struct{}

func (noMetrics) RotationFailed(context.Context, string) {}

func (noMetrics) KeyAge(context.Context, string, time.Duration) {}

func (noMetrics) PolicyViolation(context.Context, string) {}
