// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"sync"
)

// Counter counts events. The attributes come in pairs of key and value from closed lists.
type Counter interface {
	Add(ctx context.Context, n int64, attributes ...string)
}

// Histogram notes values of one kind, such as times in seconds.
type Histogram interface {
	Record(ctx context.Context, value float64, attributes ...string)
}

// Gauge notes the present value of something.
type Gauge interface {
	Set(ctx context.Context, value float64, attributes ...string)
}

// Observe hands over a present value.
type Observe func(value float64, attributes ...string)

// Meter gives instruments by name, as the list of instruments has them. Asking twice for a name
// gives the same one; a name or an attribute that the list lacks measures nothing.
type Meter interface {
	Counter(name string) Counter
	Histogram(name string) Histogram
	Gauge(name string) Gauge
	// Watch calls read whenever figures leave. It must not block.
	Watch(name string, read func(observe Observe))
}

// NoMeter measures nothing.
type NoMeter struct{}

// Counter implements Meter.
func (NoMeter) Counter(string) Counter { return nothing{} }

// Histogram implements Meter.
func (NoMeter) Histogram(string) Histogram { return nothing{} }

// Gauge implements Meter.
func (NoMeter) Gauge(string) Gauge { return nothing{} }

// Watch implements Meter.
func (NoMeter) Watch(string, func(Observe)) {}

type nothing struct{}

func (nothing) Add(context.Context, int64, ...string) {}

func (nothing) Record(context.Context, float64, ...string) {}

func (nothing) Set(context.Context, float64, ...string) {}

// MemoryMeter keeps sums in memory, for tests and for the process's own figures. A sum is
// kept per counter, without its attributes; of other instruments the number of values. The zero
// value is ready for use.
type MemoryMeter struct {
	mu   sync.Mutex
	sums map[string]int64
}

// Counter implements Meter.
func (m *MemoryMeter) Counter(name string) Counter { return memory{m, name} }

// Histogram implements Meter.
func (m *MemoryMeter) Histogram(name string) Histogram { return memory{m, name} }

// Gauge implements Meter.
func (m *MemoryMeter) Gauge(name string) Gauge { return memory{m, name} }

// Watch implements Meter; nothing ever leaves, so nothing is read.
func (m *MemoryMeter) Watch(string, func(Observe)) {}

// Sum gives the sum of a counter.
func (m *MemoryMeter) Sum(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sums[name]
}

type memory struct {
	meter *MemoryMeter
	name  string
}

func (c memory) Add(_ context.Context, n int64, _ ...string) {
	c.meter.mu.Lock()
	defer c.meter.mu.Unlock()
	if c.meter.sums == nil {
		c.meter.sums = map[string]int64{}
	}
	c.meter.sums[c.name] += n
}

func (c memory) Record(ctx context.Context, _ float64, _ ...string) { c.Add(ctx, 1) }

func (c memory) Set(ctx context.Context, _ float64, _ ...string) { c.Add(ctx, 1) }
