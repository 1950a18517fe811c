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

// Meter gives counters by name. Asking twice for a name gives the same counter.
type Meter interface {
	Counter(name string) Counter
}

// NoMeter counts nothing.
type NoMeter struct{}

// Counter implements Meter.
func (NoMeter) Counter(string) Counter { return noCounter{} }

type noCounter struct{}

func (noCounter) Add(context.Context, int64, ...string) {}

// MemoryMeter keeps sums in memory, for tests and for the process's own figures. A sum is
// kept per counter, without its attributes. The zero value is ready for use.
type MemoryMeter struct {
	mu   sync.Mutex
	sums map[string]int64
}

// Counter implements Meter.
func (m *MemoryMeter) Counter(name string) Counter { return memoryCounter{m, name} }

// Sum gives the sum of a counter.
func (m *MemoryMeter) Sum(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sums[name]
}

type memoryCounter struct {
	meter *MemoryMeter
	name  string
}

func (c memoryCounter) Add(_ context.Context, n int64, _ ...string) {
	c.meter.mu.Lock()
	defer c.meter.mu.Unlock()
	if c.meter.sums == nil {
		c.meter.sums = map[string]int64{}
	}
	c.meter.sums[c.name] += n
}
