// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// maxSeries bounds the series of one instrument; what is beyond becomes one series.
const maxSeries = 2000

// valueForm is what an attribute may be: a code, a route, a number. No text that a person wrote
// fits into it.
var valueForm = regexp.MustCompile(`^[A-Za-z0-9_.:/{}-]{0,96}$`)

// otherValue stands for values of another form.
const otherValue = "other"

// exportMetrics pushes figures to the collector at fixed intervals. One that is away loses
// nothing but the figures of that time: counters go on.
func (t *Telemetry) exportMetrics(ctx context.Context, c Config, base string, client *http.Client, res *resource.Resource) error {
	exporter, err := otlpmetrichttp.New(ctx,
		otlpmetrichttp.WithEndpointURL(base+"/v1/metrics"), otlpmetrichttp.WithHTTPClient(client), otlpmetrichttp.WithTimeout(exportTimeout))
	if err != nil {
		return fmt.Errorf("set up metric export: %w", err)
	}
	t.metrics = sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithInterval(c.MetricInterval))),
		sdkmetric.WithResource(res), sdkmetric.WithCardinalityLimit(maxSeries),
	)
	t.meter, err = newMeter(t.metrics.Meter("bothy"))
	return err
}

// Meter is where the process measures; without a collector nothing is measured.
func (t *Telemetry) Meter() Meter {
	if t == nil || t.meter == nil {
		return NoMeter{}
	}
	return t.meter
}

// meter has the instruments of the list, made once.
type meter struct {
	meter    metric.Meter
	rejected *measured
	by       map[string]*measured
}

// measured is one instrument; only the member of its kind is set.
type measured struct {
	instrument
	rejected  *measured
	counter   metric.Int64Counter
	histogram metric.Float64Histogram
	gauge     metric.Float64Gauge
	watch     metric.Float64ObservableGauge
}

func newMeter(m metric.Meter) (*meter, error) {
	out := &meter{meter: m, by: make(map[string]*measured, len(instruments))}
	for _, i := range instruments {
		x := &measured{instrument: i}
		var err error
		switch i.kind {
		case kindCounter:
			x.counter, err = m.Int64Counter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help))
		case kindHistogram:
			bounds := i.bounds
			if len(bounds) == 0 {
				bounds = seconds
			}
			x.histogram, err = m.Float64Histogram(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help), metric.WithExplicitBucketBoundaries(bounds...))
		case kindGauge:
			x.gauge, err = m.Float64Gauge(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help))
		case kindWatch:
			x.watch, err = m.Float64ObservableGauge(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help))
		}
		if err != nil {
			return nil, fmt.Errorf("make the instrument %s: %w", i.name, err)
		}
		out.by[i.name] = x
	}
	out.rejected = out.by["bothy.telemetry.rejected_values"]
	for _, x := range out.by {
		x.rejected = out.rejected
	}
	return out, nil
}

func (m *meter) of(name string, k kind) *measured {
	if x := m.by[name]; x != nil && x.kind == k {
		return x
	}
	return nil
}

// Counter implements Meter.
func (m *meter) Counter(name string) Counter {
	if x := m.of(name, kindCounter); x != nil {
		return x
	}
	return nothing{}
}

// Histogram implements Meter.
func (m *meter) Histogram(name string) Histogram {
	if x := m.of(name, kindHistogram); x != nil {
		return x
	}
	return nothing{}
}

// Gauge implements Meter.
func (m *meter) Gauge(name string) Gauge {
	if x := m.of(name, kindGauge); x != nil {
		return x
	}
	return nothing{}
}

// Watch implements Meter.
func (m *meter) Watch(name string, read func(observe Observe)) {
	x := m.of(name, kindWatch)
	if x == nil {
		return
	}
	// It fails for instruments of another meter alone.
	_, _ = m.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		read(func(value float64, attributes ...string) {
			o.ObserveFloat64(x.watch, value, metric.WithAttributeSet(x.set(ctx, attributes)))
		})
		return nil
	}, x.watch)
}

// Add implements Counter.
func (x *measured) Add(ctx context.Context, n int64, attributes ...string) {
	x.counter.Add(ctx, n, metric.WithAttributeSet(x.set(ctx, attributes)))
}

// Record implements Histogram.
func (x *measured) Record(ctx context.Context, value float64, attributes ...string) {
	x.histogram.Record(ctx, value, metric.WithAttributeSet(x.set(ctx, attributes)))
}

// Set implements Gauge.
func (x *measured) Set(ctx context.Context, value float64, attributes ...string) {
	x.gauge.Record(ctx, value, metric.WithAttributeSet(x.set(ctx, attributes)))
}

// set keeps the attributes of the list, each with a value of an allowed form.
func (x *measured) set(ctx context.Context, pairs []string) attribute.Set {
	kept := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if !slices.Contains(x.attributes, pairs[i]) || pairs[i+1] == "" {
			continue
		}
		value := pairs[i+1]
		if !valueForm.MatchString(value) {
			value = otherValue
			x.rejected.Add(ctx, 1, "bothy.instrument", x.name)
		}
		kept = append(kept, attribute.String(pairs[i], value))
	}
	return attribute.NewSet(kept...)
}
