// SPDX-License-Identifier: Apache-2.0

// Package clock is the source of time of everything that decides by it. Production uses
// System; tests use clocktest.Fake, which moves only when told.
package clock

import "time"

// Clock tells the time and makes timers on it.
type Clock interface {
	// Now is the present time. Its location is UTC.
	Now() time.Time
	// NewTimer fires once, d from now; d at or below zero fires at once.
	NewTimer(d time.Duration) Timer
}

// Timer is the part of time.Timer that a replaceable clock can offer.
type Timer interface {
	// C receives the time of firing once. It has room for one value, so firing never blocks.
	C() <-chan time.Time
	// Stop keeps the timer from firing and reports whether it did so in time.
	Stop() bool
	// Reset makes the timer fire d from now; a value of an earlier firing is discarded.
	Reset(d time.Duration)
}

// System is the clock of the machine.
type System struct{}

// Now implements Clock.
func (System) Now() time.Time { return time.Now().UTC() }

// NewTimer implements Clock.
func (System) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ t *time.Timer }

func (s systemTimer) C() <-chan time.Time   { return s.t.C }
func (s systemTimer) Stop() bool            { return s.t.Stop() }
func (s systemTimer) Reset(d time.Duration) { s.t.Reset(d) }
