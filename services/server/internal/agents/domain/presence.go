// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// State says whether an agent is there.
type State string

// The states of presence.
const (
	StateUnknown  State = "unknown"
	StateOnline   State = "online"
	StateDegraded State = "degraded"
	StateOffline  State = "offline"
)

// Live reports whether the agent counts as there.
func (s State) Live() bool { return s == StateOnline || s == StateDegraded }

// PresenceTimes are the spans presence is judged by.
type PresenceTimes struct {
	// Timeout after the last report the agent counts as gone.
	Timeout time.Duration
	// PersistInterval is how far the stored time may lag behind.
	PersistInterval time.Duration
}

// Presence is what one process knows of one agent. The zero value has never heard of it.
type Presence struct {
	State      State
	Report     Report
	ReportedAt time.Time
	// Deadline is when the agent counts as gone without a further report; zero while offline.
	Deadline    time.Time
	PersistedAt time.Time
	Dirty       bool
	// ModeSince is when the adapter began to report the payment it reports now.
	ModeSince time.Time

	published     bool
	publishedPair pair
}

type pair struct {
	state State
	mode  string
}

// LoadedPresence is the presence that a stored row tells when the process starts.
func LoadedPresence(stored State, r Report, reportedAt, now time.Time, t PresenceTimes) Presence {
	p := Presence{State: stored, Report: r, ReportedAt: reportedAt, PersistedAt: reportedAt, ModeSince: reportedAt, Deadline: now.Add(t.Timeout)}
	p.published, p.publishedPair = true, pair{stored, r.BillingMode}
	if reportedAt.Before(now.Add(-t.Timeout - t.PersistInterval)) {
		p.Deadline = now
	}
	return p
}

// Fed is what must follow a report.
type Fed struct {
	// Publish: the pair of state and payment differs from what was last published, or this
	// process has taken the agent over.
	Publish bool
	// Persist: the row must be written at once instead of with the next round.
	Persist bool
}

// Feed takes a report that arrived at the given time. storedAt is the newest report in the
// row when it was read, zero when it was not.
func (p *Presence) Feed(r Report, at, storedAt time.Time, t PresenceTimes) Fed {
	takeover := !p.published || !p.State.Live() || storedAt.After(p.ReportedAt)
	if p.ModeSince.IsZero() || !p.State.Live() || p.Report.BillingMode != r.BillingMode {
		p.ModeSince = at
	}
	p.State, p.Report, p.ReportedAt, p.Deadline, p.Dirty = r.State, r, at, at.Add(t.Timeout), true
	next := pair{r.State, r.BillingMode}
	fed := Fed{Publish: takeover || next != p.publishedPair, Persist: takeover}
	p.published, p.publishedPair = true, next
	return fed
}

// Adopt takes over a report that another process stored: the agent is there, and that
// process will say so again.
func (p *Presence) Adopt(stored State, r Report, reportedAt time.Time, t PresenceTimes) {
	if p.Report.BillingMode != r.BillingMode {
		p.ModeSince = reportedAt
	}
	p.State, p.Report, p.ReportedAt, p.PersistedAt, p.Dirty = stored, r, reportedAt, reportedAt, false
	p.Deadline = reportedAt.Add(t.Timeout + t.PersistInterval)
	p.publishedPair = pair{stored, r.BillingMode}
}

// Due reports whether the agent counts as gone at the time; the deadline itself counts.
func (p *Presence) Due(now time.Time) bool { return p.State.Live() && !now.Before(p.Deadline) }

// GoOffline marks the agent as gone and reports whether that is news.
func (p *Presence) GoOffline() (publish bool) {
	if !p.State.Live() {
		return false
	}
	p.State, p.Deadline, p.Dirty = StateOffline, time.Time{}, true
	next := pair{StateOffline, p.Report.BillingMode}
	publish = next != p.publishedPair
	p.publishedPair = next
	return publish
}

// PersistDue reports whether the row is behind by at least the interval.
func (p *Presence) PersistDue(now time.Time, t PresenceTimes) bool {
	return p.Dirty && !now.Before(p.PersistedAt.Add(t.PersistInterval))
}
