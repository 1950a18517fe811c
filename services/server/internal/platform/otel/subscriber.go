// SPDX-License-Identifier: Apache-2.0

package otel

import "context"

// WatchSubscriber begins the span of a subscriber's call inside a unit of work. It has the
// form of txn.Watch.
func (t *Telemetry) WatchSubscriber(ctx context.Context, subscriber string) (context.Context, func(err error)) {
	ctx, span := t.Start(ctx, "txn.subscribe "+subscriber)
	return ctx, func(err error) {
		if err != nil {
			span.Set(String("bothy.outcome", "veto"))
		} else {
			span.Set(String("bothy.outcome", "ok"))
		}
		// A veto is a decision and not a failure.
		span.End("")
	}
}
