// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestEverySubscriberHasASpanWithItsOutcome(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
	tel := &Telemetry{tracer: provider.Tracer(""), enabled: true}
	for outcome, err := range map[string]error{"ok": nil, "veto": errors.New("not now")} {
		recorder.Reset()
		_, ended := tel.WatchSubscriber(context.Background(), "runs/app.(*Service).OnMessagePosted")
		ended(err)
		spans := recorder.Ended()
		if len(spans) != 1 || spans[0].Name() != "txn.subscribe runs/app.(*Service).OnMessagePosted" {
			t.Fatalf("%d spans", len(spans))
		}
		if attrs := spans[0].Attributes(); len(attrs) != 1 || attrs[0] != String("bothy.outcome", outcome) {
			t.Errorf("attributes %v, want outcome %s", attrs, outcome)
		}
	}
	ctx := context.Background()
	if inner, ended := Off().WatchSubscriber(ctx, "x"); inner != ctx {
		t.Error("without a collector the context changes")
	} else {
		ended(nil)
	}
}
