// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"errors"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Refusals of a transition. A refused transition leaves the run as it was.
var (
	// ErrEnded means that the run has ended.
	ErrEnded = errors.New("the run has ended")
	// ErrAlreadyStarted means that another worker has taken the run up.
	ErrAlreadyStarted = errors.New("the run has been started")
	// ErrNotStarted means that the run waits for its agent.
	ErrNotStarted = errors.New("the run has not been started")
	// ErrCancelRequested means that somebody has asked the run to stop.
	ErrCancelRequested = errors.New("the run is to stop")
	// ErrReason means that the reason does not belong to this end.
	ErrReason = errors.New("the reason does not fit the end")
	// ErrNotDue means that the time for this end has not come.
	ErrNotDue = errors.New("not due")
)

// Cause is who or what moves a run. Together with the present state it decides what is
// allowed; see Ends.
type Cause string

// The causes of an end.
const (
	ByAgent         Cause = "agent"
	ByPerson        Cause = "person"
	ByCancelTimeout Cause = "cancel_timeout"
	ByExpiry        Cause = "queued_expiry"
	ByDelivery      Cause = "delivery"
	ByStallCheck    Cause = "stall_check"
	ByWithdrawal    Cause = "withdrawal"
	ByAgentDisabled Cause = "agent_disabled"
)

// End is one row of the table of ends.
type End struct {
	From    []State
	To      State
	Cause   Cause
	Reasons []string
}

// Ends lists every way a run can end. Nothing else ends one.
func Ends() []End {
	working, active := []State{Running, WaitingInput}, []State{Queued, Running, WaitingInput}
	return []End{
		{working, Completed, ByAgent, []string{ReasonDone, ReasonMaxTokens, ReasonMaxTurns, ReasonRefusal}},
		{working, Failed, ByAgent, []string{ReasonAgentError, ReasonAgentRejected, ReasonTokenRejected}},
		{working, Cancelled, ByAgent, []string{ReasonRequested}},
		{[]State{Queued}, Failed, ByAgent, []string{ReasonAgentRejected, ReasonTokenRejected}},
		{[]State{Queued}, Cancelled, ByAgent, []string{ReasonRequested}},
		{[]State{Queued}, Cancelled, ByPerson, []string{ReasonRequested}},
		{active, Cancelled, ByCancelTimeout, []string{ReasonCancelTimeout}},
		{[]State{Queued}, Failed, ByExpiry, []string{ReasonAgentUnavailable}},
		{active, Failed, ByDelivery, []string{ReasonPolicyDenied, ReasonExpired}},
		{active, Cancelled, ByDelivery, []string{ReasonMessageDeleted}},
		{working, Failed, ByStallCheck, []string{ReasonInterrupted, ReasonStale}},
		{[]State{Queued}, Cancelled, ByWithdrawal, []string{
			ReasonAccessRevoked, ReasonUserDisabled, ReasonChannelReadOnly, ReasonMessageDeleted, ReasonParentCancelled,
		}},
		{active, Cancelled, ByAgentDisabled, []string{ReasonAgentDisabled}},
	}
}

// DefaultReason is the reason of an end by the agent that names none.
func DefaultReason(from, to State) string {
	switch {
	case to == Completed:
		return ReasonDone
	case to == Cancelled:
		return ReasonRequested
	case from == Queued:
		return ReasonAgentRejected
	default:
		return ReasonAgentError
	}
}

// Start lets the agent take the run up (queued to running).
func (r *Run) Start(now time.Time) error {
	switch {
	case !r.State.Active():
		return ErrEnded
	case r.State != Queued:
		return ErrAlreadyStarted
	case r.CancelRequestedAt != nil:
		return ErrCancelRequested
	}
	r.State, r.StartedAt, r.LastActivityAt = Running, &now, now
	if r.DeliveredAt == nil {
		r.DeliveredAt = &now
	}
	r.DocVersion++
	return nil
}

// End ends the run when the table of ends has a row for it.
func (r *Run) End(to State, cause Cause, reason string, now time.Time) error {
	if !r.State.Active() {
		return ErrEnded
	}
	if cause == ByAgent && to == Completed && r.State == Queued {
		return ErrNotStarted
	}
	for _, e := range Ends() {
		if e.To == to && e.Cause == cause && slices.Contains(e.From, r.State) && slices.Contains(e.Reasons, reason) {
			r.State, r.EndReason, r.EndedAt, r.LastActivityAt = to, reason, &now, now
			r.DocVersion++
			return nil
		}
	}
	return ErrReason
}

// RequestCancel asks the run to stop. The first request stays; again is true when there was
// one before.
func (r *Run) RequestCancel(by ids.ID, reason string, now time.Time) (again bool, err error) {
	if !r.State.Active() {
		return false, ErrEnded
	}
	if r.CancelRequestedAt != nil {
		return true, nil
	}
	r.CancelRequestedAt, r.CancelRequestedBy, r.CancelReason = &now, by, reason
	r.DocVersion++
	return false, nil
}

// Cancel is the wish of a person: a run that no agent has seen ends at once, any other is
// asked to stop.
func (r *Run) Cancel(by ids.ID, reason string, now time.Time) (again bool, err error) {
	if again, err = r.RequestCancel(by, reason, now); err != nil || again {
		return again, err
	}
	if r.State == Queued && r.DeliveredAt == nil {
		return false, r.End(Cancelled, ByPerson, ReasonRequested, now)
	}
	return false, nil
}

// Withdraw takes the ground from under a run: rights, place or message are gone. A queued
// run ends, any other is asked to stop.
func (r *Run) Withdraw(reason string, now time.Time) (again bool, err error) {
	if r.State == Queued {
		return false, r.End(Cancelled, ByWithdrawal, reason, now)
	}
	return r.RequestCancel(ids.ID{}, reason, now)
}

// TimeOutCancel ends a run whose agent did not stop within the grace.
func (r *Run) TimeOutCancel(grace time.Duration, now time.Time) error {
	if r.State.Active() && (r.CancelRequestedAt == nil || now.Before(r.CancelRequestedAt.Add(grace))) {
		return ErrNotDue
	}
	return r.End(Cancelled, ByCancelTimeout, ReasonCancelTimeout, now)
}

// Expire ends a run that no agent took up in time.
func (r *Run) Expire(maxAge time.Duration, now time.Time) error {
	if r.State == Queued && now.Before(r.QueuedAt.Add(maxAge)) {
		return ErrNotDue
	}
	if r.State.Started() {
		return ErrAlreadyStarted
	}
	return r.End(Failed, ByExpiry, ReasonAgentUnavailable, now)
}

// AcceptsLate reports whether an answer is still taken although the run was given up.
func (r *Run) AcceptsLate(window time.Duration, now time.Time) bool {
	return r.State == Failed && (r.EndReason == ReasonInterrupted || r.EndReason == ReasonStale) &&
		r.OutputMessageID.IsZero() && r.EndedAt != nil && !now.After(r.EndedAt.Add(window))
}

// Health is what the stall check knows of the agent.
type Health struct {
	// LastHeartbeatAt is the stored one, nil when the agent was never heard of.
	LastHeartbeatAt *time.Time
	Live            bool
	// Reported says that the adapter names the runs it works on, Holds that this run is among them.
	Reported, Holds bool
}

// StallTimes are the spans of the stall check.
type StallTimes struct{ PresenceTimeout, PersistInterval, InterruptGrace, StallAfter time.Duration }

// CheckStall ends a run whose agent is gone or has forgotten it. marked means that the run
// goes on but nothing was heard of it for long, which people are told once.
func (r *Run) CheckStall(h Health, t StallTimes, now time.Time) (ended, marked bool) {
	if !r.State.Started() {
		return false, false
	}
	gone := h.LastHeartbeatAt == nil || h.LastHeartbeatAt.Before(now.Add(-t.PresenceTimeout-t.PersistInterval-t.InterruptGrace))
	if gone && r.StartedAt.Before(now.Add(-t.PresenceTimeout-t.PersistInterval-t.InterruptGrace)) {
		return r.End(Failed, ByStallCheck, ReasonInterrupted, now) == nil, false
	}
	if h.Live && h.Reported && !h.Holds && h.LastHeartbeatAt.After(r.LastActivityAt.Add(t.PresenceTimeout)) {
		return r.End(Failed, ByStallCheck, ReasonStale, now) == nil, false
	}
	if r.State == Running && r.StallWarnedAt == nil && r.LastActivityAt.Before(now.Add(-t.StallAfter)) {
		r.StallWarnedAt = &now
		r.DocVersion++
		return false, true
	}
	return false, false
}
