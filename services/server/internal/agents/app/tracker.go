// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// TrackerDeps are the parts of a Tracker.
type TrackerDeps struct {
	Config     Config
	Clock      clock.Clock
	Units      txn.UnitOfWork
	Authorizer authorize.Authorizer
	Audit      auditing.Recorder
	Publisher  eventlog.EphemeralPublisher
	Rows       Repository
	Present    Presenter
	Log        *slog.Logger
}

// Tracker knows which agents are there. There is one in each process that hears from
// adapters; it holds the newest report in memory and writes it down in rounds, so a report
// costs no statement as a rule.
type Tracker struct {
	d     TrackerDeps
	times domain.PresenceTimes

	mu     sync.Mutex
	agents map[ids.ID]*domain.Presence
	wake   chan struct{}
}

// NewTracker makes a tracker. Load must run before the first heartbeat, Run beside them.
func NewTracker(d TrackerDeps) *Tracker {
	return &Tracker{
		d: d, times: domain.PresenceTimes{Timeout: d.Config.PresenceTimeout, PersistInterval: d.Config.PersistInterval},
		agents: map[ids.ID]*domain.Presence{}, wake: make(chan struct{}, 1),
	}
}

// Load begins with the agents that were there when the last process wrote.
func (t *Tracker) Load(ctx context.Context) error {
	rows, err := t.d.Rows.Present(ctx)
	if err != nil {
		return fmt.Errorf("read which agents were present: %w", err)
	}
	now := t.d.Clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range rows {
		var at time.Time
		if r.LastHeartbeatAt != nil {
			at = *r.LastHeartbeatAt
		}
		p := domain.LoadedPresence(r.Presence, r.Report, at, now, t.times)
		t.agents[r.ID] = &p
	}
	return nil
}

// Heartbeat implements agents.Presence.
func (t *Tracker) Heartbeat(ctx context.Context, agent ids.ID, report agents.Heartbeat) error {
	if err := t.d.Authorizer.Authorize(ctx, authorize.ActionAgentHeartbeat, Resource(agent)); err != nil {
		return err
	}
	r, err := domain.DecodeReport(report)
	if err != nil {
		return err
	}
	storedAt, err := t.storeReported(ctx, agent, r)
	if err != nil {
		return err
	}
	now := t.d.Clock.Now()
	t.mu.Lock()
	p, ok := t.agents[agent]
	if !ok {
		p = &domain.Presence{}
		t.agents[agent] = p
	}
	fed := p.Feed(r, now, storedAt, t.times)
	t.mu.Unlock()
	if fed.Publish {
		t.publish(ctx, agent, r.State, r.BillingMode)
	}
	if fed.Persist {
		if err := t.persist(ctx, []ids.ID{agent}); err != nil {
			return err
		}
	}
	t.poke()
	return nil
}

// storeReported writes down who pays and what may be touched when the adapter says it
// differently than before. That is audited; everything else of a report is not.
func (t *Tracker) storeReported(ctx context.Context, agent ids.ID, r domain.Report) (storedAt time.Time, err error) {
	t.mu.Lock()
	known, ok := t.agents[agent]
	same := ok && known.Report.SameReported(r)
	t.mu.Unlock()
	if same {
		return time.Time{}, nil
	}
	err = t.d.Units.Do(ctx, func(ctx context.Context) error {
		row, err := t.d.Rows.Lock(ctx, agent)
		if err != nil {
			return fmt.Errorf("lock the agent: %w", err)
		}
		if row.LastHeartbeatAt != nil {
			storedAt = *row.LastHeartbeatAt
		}
		if row.Report.SameReported(r) {
			return nil
		}
		if err := t.d.Rows.SaveReport(ctx, agent, r.State, txn.Current(ctx).Now(), r); err != nil {
			return fmt.Errorf("save the report: %w", err)
		}
		return t.d.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionAgentHeartbeat), ResourceKind: "agent", ResourceID: agent, Details: reportedChange(row.Report, r),
		})
	}, txn.WithWriteInMaintenance())
	return storedAt, err
}

func reportedChange(before, after domain.Report) map[string]any {
	details := map[string]any{}
	for name, value := range map[string]string{
		"billing_mode_before": before.BillingMode, "billing_mode_after": after.BillingMode,
		"tool_class_before": before.ToolClass, "tool_class_after": after.ToolClass,
	} {
		if value != "" {
			details[name] = value
		}
	}
	if after.Evidence != nil {
		details["key_type"], details["method"] = after.Evidence.KeyType, after.Evidence.Method
	}
	return details
}

func (t *Tracker) publish(ctx context.Context, agent ids.ID, state domain.State, mode string) {
	t.d.Publisher.Publish(ctx, eventlog.Ephemeral{
		Type: "agent.presence_changed", Actor: eventlog.Actor{ID: agent, Kind: string(actor.KindAgent)},
		OccurredAt: t.d.Clock.Now(), Payload: t.d.Present.Presence(agent, state, mode),
	})
}

func (t *Tracker) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run watches the deadlines until the context ends, and then writes down what is unsaved
// without telling anybody: a server that stops is no agent that goes away.
func (t *Tracker) Run(ctx context.Context) {
	timer := t.d.Clock.NewTimer(t.next(t.d.Clock.Now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-timer.C():
			t.Tick(ctx)
		}
		timer.Reset(t.next(t.d.Clock.Now()))
	}
}

// Stop writes down what is unsaved.
func (t *Tracker) Stop(ctx context.Context) error { return t.persist(ctx, t.dirty(nil)) }

// next is the time until something is due.
func (t *Tracker) next(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait := t.times.Timeout
	for _, p := range t.agents {
		if p.State.Live() {
			wait = min(wait, p.Deadline.Sub(now))
		}
		if p.Dirty {
			wait = min(wait, p.PersistedAt.Add(t.times.PersistInterval).Sub(now))
		}
	}
	return max(wait, 0)
}

// Tick does what is due now: it declares agents offline and writes reports down.
func (t *Tracker) Tick(ctx context.Context) {
	now := t.d.Clock.Now()
	gone := t.judge(ctx, now)
	due := t.dirty(func(p *domain.Presence) bool { return p.PersistDue(now, t.times) })
	for _, agent := range gone {
		if !slices.Contains(due, agent) {
			due = append(due, agent)
		}
	}
	if err := t.persist(ctx, due); err != nil && ctx.Err() == nil {
		t.d.Log.WarnContext(ctx, "presence of agents cannot be saved", "component", "agents.tracker", "error", err)
	}
}

// judge declares offline whoever is due and has not reported to another process either.
func (t *Tracker) judge(ctx context.Context, now time.Time) (gone []ids.ID) {
	t.mu.Lock()
	var due []ids.ID
	for id, p := range t.agents {
		if p.Due(now) {
			due = append(due, id)
		}
	}
	t.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	slices.SortFunc(due, ids.ID.Compare)
	// A read that fails keeps the verdict: what was due stays due.
	rows, err := t.d.Rows.ByID(ctx, due)
	if err != nil {
		t.d.Log.WarnContext(ctx, "rows of silent agents cannot be read", "component", "agents.tracker", "error", err)
	}
	for _, id := range due {
		t.mu.Lock()
		p := t.agents[id]
		row, ok := rows[id]
		if ok && row.LastHeartbeatAt != nil && row.LastHeartbeatAt.After(p.ReportedAt) && row.Presence.Live() {
			p.Adopt(row.Presence, row.Report, *row.LastHeartbeatAt, t.times)
		}
		publish := p.Due(now) && p.GoOffline()
		mode := p.Report.BillingMode
		t.mu.Unlock()
		if publish {
			gone = append(gone, id)
			t.publish(ctx, id, domain.StateOffline, mode)
		}
	}
	return gone
}

func (t *Tracker) dirty(want func(*domain.Presence) bool) []ids.ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []ids.ID
	for id, p := range t.agents {
		if p.Dirty && (want == nil || want(p)) {
			out = append(out, id)
		}
	}
	return out
}

// persist writes the named agents in one transaction, in ascending order so that two
// processes cannot block each other.
func (t *Tracker) persist(ctx context.Context, list []ids.ID) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, ids.ID.Compare)
	now := t.d.Clock.Now()
	saved := map[ids.ID]domain.Presence{}
	t.mu.Lock()
	for _, id := range list {
		saved[id] = *t.agents[id]
	}
	t.mu.Unlock()
	err := t.d.Units.Do(actor.With(ctx, actor.System()), func(ctx context.Context) error {
		for _, id := range list {
			p := saved[id]
			if err := t.d.Rows.SaveReport(ctx, id, p.State, p.ReportedAt, p.Report); err != nil {
				return err
			}
		}
		return nil
	}, txn.WithWriteInMaintenance())
	if err != nil {
		return fmt.Errorf("save the presence of agents: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range list {
		p := t.agents[id]
		p.PersistedAt = now
		if was := saved[id]; p.ReportedAt.Equal(was.ReportedAt) && p.State == was.State {
			p.Dirty = false
		}
	}
	return nil
}

// overlay shows a row with what this process has heard since it was written.
func (t *Tracker) overlay(r Record) Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.agents[r.ID]
	if !ok || r.LastHeartbeatAt != nil && r.LastHeartbeatAt.After(p.ReportedAt) {
		return r
	}
	at := p.ReportedAt
	r.Presence, r.Report, r.LastHeartbeatAt = p.State, p.Report, &at
	r.ModeSince = p.ModeSince
	return r
}

// lasts reports whether the payment that is reported has stood beside the configured one long
// enough to warn of it: right after a change of either, the other follows in a moment.
func (t *Tracker) lasts(r Record) bool {
	since := r.ModeSince
	if r.UpdatedAt.After(since) {
		since = r.UpdatedAt
	}
	return t.d.Clock.Now().Sub(since) >= t.d.Config.MismatchAlertAfter
}
