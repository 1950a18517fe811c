// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

const (
	lockoutThreshold = 20
	lockoutWindow    = 24 * time.Hour
)

// Failures counts wrong passwords from devices the account does not know.
type Failures struct {
	Count int
	// Since is the first failure of the window, Last the latest; zero for none.
	Since, Last time.Time
}

// Locked reports whether passwords from unknown devices are refused unseen: after twenty
// failures within a day, until the duration has passed since the last one. Attempts during
// the lock do not prolong it, so nobody can hold an account locked for good.
func (f Failures) Locked(now time.Time, duration time.Duration) bool {
	return f.Count >= lockoutThreshold && now.Before(f.Last.Add(duration))
}

// Failed gives the count after one more failure; a failure a day after the first begins a
// new window.
func (f Failures) Failed(now time.Time) Failures {
	if f.Count == 0 || f.Since.IsZero() || now.Sub(f.Since) >= lockoutWindow {
		return Failures{Count: 1, Since: now, Last: now}
	}
	return Failures{Count: f.Count + 1, Since: f.Since, Last: now}
}

// JustLocked reports whether this failure was the one that closed the account to unknown
// devices, which is audited.
func (f Failures) JustLocked() bool { return f.Count == lockoutThreshold }
