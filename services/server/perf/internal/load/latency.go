// SPDX-License-Identifier: Apache-2.0

package load

import (
	"slices"
	"time"
)

// Latencies keeps every value: the runs here have tens of thousands, and an exact tail is worth the memory.
type Latencies struct {
	values []time.Duration
	sorted bool
}

// Add takes a value.
func (l *Latencies) Add(d time.Duration) { l.values, l.sorted = append(l.values, d), false }

// Count is the number of values.
func (l *Latencies) Count() int64 { return int64(len(l.values)) }

// Quantile is the smallest value that the given part of all values does not exceed, and 0 without values.
func (l *Latencies) Quantile(q float64) time.Duration {
	if len(l.values) == 0 {
		return 0
	}
	if !l.sorted {
		slices.Sort(l.values)
		l.sorted = true
	}
	i := int(q*float64(len(l.values))+0.999999) - 1
	return l.values[min(max(i, 0), len(l.values)-1)]
}

// Summary is the form of a report, in milliseconds.
type Summary struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
}

// Summary gives the quantiles.
func (l *Latencies) Summary() Summary {
	ms := func(q float64) float64 { return Milliseconds(l.Quantile(q)) }
	return Summary{Count: l.Count(), P50: ms(.5), P90: ms(.9), P99: ms(.99), P999: ms(.999), Max: ms(1)}
}

// Milliseconds is a duration in milliseconds with three digits behind the point.
func Milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// Median is the middle of values, the mean of the two middle ones for an even number, and 0 without any.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
