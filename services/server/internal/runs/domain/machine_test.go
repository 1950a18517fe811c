// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

var begin = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func queued() domain.Run {
	return domain.Queue(domain.NewRun{ID: ids.New(), AgentID: ids.New(), TriggeredBy: ids.New(), TriggerKind: domain.TriggerMessage}, begin)
}

func TestEveryEndOfTheTableIsReachedAndNoOther(t *testing.T) {
	states := []domain.State{domain.Queued, domain.Running, domain.WaitingInput, domain.Completed, domain.Failed, domain.Cancelled}
	causes := []domain.Cause{
		domain.ByAgent, domain.ByPerson, domain.ByCancelTimeout, domain.ByExpiry, domain.ByDelivery, domain.ByStallCheck, domain.ByWithdrawal,
		domain.ByAgentDisabled,
	}
	var reasons []string
	for _, e := range domain.Ends() {
		reasons = append(reasons, e.Reasons...)
	}
	for _, from := range states {
		for _, to := range states {
			for _, cause := range causes {
				for _, reason := range reasons {
					want := slices.ContainsFunc(domain.Ends(), func(e domain.End) bool {
						return e.To == to && e.Cause == cause && slices.Contains(e.From, from) && slices.Contains(e.Reasons, reason)
					})
					r := queued()
					r.State = from
					if got := r.End(to, cause, reason, begin) == nil; got != want {
						t.Fatalf("%s to %s by %s with %s: %v, want %v", from, to, cause, reason, got, want)
					}
					if !want && (r.State != from || r.DocVersion != 1) {
						t.Fatalf("%s to %s by %s was refused and has changed the run", from, to, cause)
					}
				}
			}
		}
	}
}

// model is the run as a reader would describe it.
type model struct {
	started, ended, stopping, delivered bool
	ends                                int
}

func TestARunEndsOnceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, m, now := queued(), model{}, begin
		grace, maxAge := 30*time.Second, time.Hour
		version := r.DocVersion
		check := func(what string, allowed bool, err error) {
			if (err == nil) != allowed {
				t.Fatalf("%s: %v, allowed %v in %+v", what, err, allowed, m)
			}
			if err == nil && !r.State.Active() && !m.ended {
				m.ended = true
				m.ends++
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 1800).Draw(t, "seconds")) * time.Second)
			},
			"deliver": func(*rapid.T) { markDelivered(&r, &m, now) },
			"start": func(*rapid.T) {
				allowed := !m.started && !m.ended && !m.stopping
				check("start", allowed, r.Start(now))
				m.started = m.started || allowed
				m.delivered = m.delivered || allowed
			},
			"complete": func(*rapid.T) {
				check("complete", m.started && !m.ended, r.End(domain.Completed, domain.ByAgent, domain.ReasonDone, now))
			},
			"reject": func(*rapid.T) {
				check("reject", !m.ended, r.End(domain.Failed, domain.ByAgent, domain.ReasonAgentRejected, now))
			},
			"cancel": func(*rapid.T) {
				_, err := r.Cancel(ids.New(), "", now)
				wasEnded := m.ended
				check("cancel", !wasEnded, err)
				m.stopping = m.stopping || !wasEnded
			},
			"withdraw": func(*rapid.T) {
				_, err := r.Withdraw(domain.ReasonAccessRevoked, now)
				wasEnded := m.ended
				check("withdraw", !wasEnded, err)
				m.stopping = m.stopping || !wasEnded && m.started
			},
			"cancel timeout": func(*rapid.T) {
				due := m.stopping && !m.ended && !now.Before(r.CancelRequestedAt.Add(grace))
				check("cancel timeout", due, r.TimeOutCancel(grace, now))
			},
			"expiry": func(*rapid.T) {
				due := !m.started && !m.ended && !now.Before(begin.Add(maxAge))
				check("expiry", due, r.Expire(maxAge, now))
			},
			"agent disabled": func(*rapid.T) {
				check("agent disabled", !m.ended, r.End(domain.Cancelled, domain.ByAgentDisabled, domain.ReasonAgentDisabled, now))
			},
			"policy": func(*rapid.T) {
				check("policy", !m.ended, r.End(domain.Failed, domain.ByDelivery, domain.ReasonPolicyDenied, now))
			},
			"": func(t *rapid.T) {
				if m.ends > 1 {
					t.Fatalf("the run ended %d times", m.ends)
				}
				if m.ended == r.State.Active() || (r.EndedAt != nil) != m.ended || (r.EndReason != "") != m.ended {
					t.Fatalf("state %s, ended at %v, reason %q do not fit", r.State, r.EndedAt, r.EndReason)
				}
				if r.DocVersion < version {
					t.Fatalf("the version fell from %d to %d", version, r.DocVersion)
				}
				version = r.DocVersion
			},
		})
	})
}

func markDelivered(r *domain.Run, m *model, now time.Time) {
	if r.DeliveredAt == nil && r.State.Active() {
		r.DeliveredAt = &now
		m.delivered = true
	}
}

func TestOfTwoStartsOneWins(t *testing.T) {
	r := queued()
	if err := r.Start(begin); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(begin); !errors.Is(err, domain.ErrAlreadyStarted) {
		t.Fatalf("second start: %v", err)
	}
}

func TestARunThatNoAgentHasSeenStopsAtOnce(t *testing.T) {
	r := queued()
	if _, err := r.Cancel(ids.New(), "wrong", begin); err != nil || r.State != domain.Cancelled {
		t.Fatalf("%s, %v", r.State, err)
	}
	r = queued()
	r.DeliveredAt = &begin
	if _, err := r.Cancel(ids.New(), "wrong", begin); err != nil || r.State != domain.Queued || r.CancelRequestedAt == nil {
		t.Fatalf("%s, %v", r.State, err)
	}
}

func TestStallCheck(t *testing.T) {
	times := domain.StallTimes{PresenceTimeout: 90 * time.Second, PersistInterval: 30 * time.Second, InterruptGrace: 2 * time.Minute, StallAfter: 5 * time.Minute}
	now := begin.Add(time.Hour)
	at := func(ago time.Duration) *time.Time { v := now.Add(-ago); return &v }
	for name, c := range map[string]struct {
		activity time.Duration
		health   domain.Health
		state    domain.State
		reason   string
		marked   bool
	}{
		"the agent is there and works":    {time.Minute, domain.Health{LastHeartbeatAt: at(time.Second), Live: true, Reported: true, Holds: true}, domain.Running, "", false},
		"the agent went away":             {time.Minute, domain.Health{LastHeartbeatAt: at(5 * time.Minute)}, domain.Failed, domain.ReasonInterrupted, false},
		"the agent was never heard of":    {time.Minute, domain.Health{}, domain.Failed, domain.ReasonInterrupted, false},
		"the agent has forgotten the run": {4 * time.Minute, domain.Health{LastHeartbeatAt: at(time.Second), Live: true, Reported: true}, domain.Failed, domain.ReasonStale, false},
		"the agent does not say":          {4 * time.Minute, domain.Health{LastHeartbeatAt: at(time.Second), Live: true}, domain.Running, "", false},
		"the report is older than that":   {time.Minute, domain.Health{LastHeartbeatAt: at(time.Second), Live: true, Reported: true}, domain.Running, "", false},
		"nothing was heard for long":      {6 * time.Minute, domain.Health{LastHeartbeatAt: at(time.Second), Live: true}, domain.Running, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := queued()
			if err := r.Start(begin); err != nil {
				t.Fatal(err)
			}
			r.LastActivityAt = now.Add(-c.activity)
			ended, marked := r.CheckStall(c.health, times, now)
			if r.State != c.state || r.EndReason != c.reason || marked != c.marked || ended != (c.state == domain.Failed) {
				t.Errorf("%s %q marked %v", r.State, r.EndReason, marked)
			}
		})
	}
}

func TestALateAnswerIsTakenFromARunThatWasGivenUp(t *testing.T) {
	r := queued()
	if err := r.Start(begin); err != nil {
		t.Fatal(err)
	}
	if err := r.End(domain.Failed, domain.ByStallCheck, domain.ReasonStale, begin); err != nil {
		t.Fatal(err)
	}
	if !r.AcceptsLate(time.Hour, begin.Add(time.Hour)) || r.AcceptsLate(time.Hour, begin.Add(time.Hour+1)) {
		t.Error("the window is wrong")
	}
}
