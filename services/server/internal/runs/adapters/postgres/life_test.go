// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// move puts the world into another thread with other members, so that the next life begins
// from nothing.
func (w *world) move() {
	w.thread, w.person, w.agent = ids.New(), ids.New(), ids.New()
	w.levels[w.person] = authorize.LevelTrigger
	w.addAgent(w.agent)
	now := w.clock.Now()
	w.changeAgent(w.agent, func(a *agents.Agent) { a.LastHeartbeatAt = &now })
	w.events, w.ephemeral, w.outcomes, w.messages = nil, nil, map[ids.ID][]messaging.TriggerOutcome{}, map[ids.ID]messaging.Message{}
}

// life is what one agent, one person and the jobs do to the runs of a thread.
type life struct {
	*world
	token string
}

// run is one of the runs of the thread, as drawn; ok is false when there is none.
func (l *life) run(t *rapid.T) (ids.ID, bool) {
	list, _, err := l.service.List(l.asPerson(), l.thread, ids.ID{}, 50)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return ids.ID{}, false
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(t, "run")].ID, true
}

func (l *life) agentContext() context.Context {
	who := actor.Actor{ID: l.agent, Kind: actor.KindAgent, TokenID: ids.New()}
	if acting, err := l.service.VerifyInvocation(l.t.Context(), l.agent, l.token); err == nil {
		who.ActingFor = &acting
	}
	return actor.With(l.t.Context(), who)
}

func (l *life) inUnit(fn func(ctx context.Context) error) error {
	return l.units.Do(l.asPerson(), fn)
}

func (l *life) step(t *rapid.T, what string) error {
	run, any := l.run(t)
	system := l.t.Context()
	switch what {
	case "order":
		m := l.message(l.person, "please")
		return l.inUnit(func(ctx context.Context) error { return l.service.OnMessagePosted(ctx, l.posted(m, l.agent)) })
	case "time":
		l.clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 31, 400, 90000}).Draw(t, "seconds")) * time.Second)
		return nil
	case "disable":
		return l.inUnit(func(ctx context.Context) error {
			return l.service.OnAgentDisabled(ctx, agents.AgentDisabled{AgentID: l.agent})
		})
	case "rights":
		l.setLevel(l.person, rapid.SampledFrom([]authorize.Level{authorize.LevelWrite, authorize.LevelTrigger}).Draw(t, "level"))
		return l.inUnit(func(ctx context.Context) error {
			return l.service.OnAccessChanged(ctx, authorize.AccessChanged{Principals: []authorize.PrincipalChange{
				{PrincipalID: l.person, Changed: []authorize.TargetAccess{{Kind: "channel", ID: l.channel}}},
			}})
		})
	case "stalls":
		return l.service.CheckStalls(system)
	case "delete":
		return l.delete(t)
	}
	if !any {
		return nil
	}
	switch what {
	case "deliver":
		return l.fetch(run)
	case "start":
		_, err := l.service.Start(l.agentContext(), run, app.Start{})
		return err
	case "write":
		base := l.version(run) - int64(rapid.IntRange(0, 1).Draw(t, "behind"))
		_, err := l.service.Update(l.agentContext(), run, app.Update{BaseVersion: base, Append: []domain.Append{{Target: "output", Text: "a"}}})
		return err
	case "finish":
		state := rapid.SampledFrom([]domain.State{domain.Completed, domain.Failed, domain.Cancelled}).Draw(t, "state")
		in := app.Finish{State: state}
		if rapid.Bool().Draw(t, "answer") {
			in.Output = &app.Answer{Content: "Done.", ClientMsgID: ids.New()}
		}
		_, err := l.service.Finish(l.agentContext(), run, in)
		return err
	case "stop":
		_, err := l.service.Cancel(l.asPerson(), run, "")
		return err
	case "cancel job":
		return l.service.TimeOutCancel(system, run)
	default:
		return l.service.ExpireQueued(system, run)
	}
}

func (l *life) fetch(run ids.ID) error {
	p, err := l.service.Prepare(l.asAgent(l.agent), l.agent, "agent.invocation", ids.New(), l.stored("agent.invocation", run))
	if err != nil || p.Refused {
		return err
	}
	var d delivered
	err = json.Unmarshal(p.Payload, &d)
	l.token = d.Token
	return err
}

func (l *life) delete(t *rapid.T) error {
	var written []messaging.Message
	for _, m := range l.messages {
		if m.Author.ID == l.person && !m.Deleted {
			written = append(written, m)
		}
	}
	if len(written) == 0 {
		return nil
	}
	slices.SortFunc(written, func(a, b messaging.Message) int { return int(a.ThreadSeq - b.ThreadSeq) })
	m := written[rapid.IntRange(0, len(written)-1).Draw(t, "message")]
	m.Deleted = true
	l.messages[m.ID] = m
	return l.inUnit(func(ctx context.Context) error {
		return l.service.OnMessageDeleted(ctx, messaging.MessageDeleted{MessageID: m.ID, ThreadID: l.thread, ChannelID: l.channel, Author: m.Author})
	})
}

type told struct {
	Run struct {
		ID       ids.ID  `json:"id"`
		State    string  `json:"state"`
		EndedAt  *string `json:"ended_at"`
		Reason   *string `json:"end_reason"`
		AnswerID *ids.ID `json:"output_message_id"`
	} `json:"run"`
	Previous *string `json:"previous_state"`
}

// check holds the thread to what must be true at any time.
func (l *life) check(t *rapid.T) {
	if n := l.db.Count(l.t, "SELECT count(*) FROM runs WHERE thread_id = $1 AND state IN ('queued', 'running', 'waiting_input')", l.thread); n > 1 {
		t.Fatalf("%d active runs", n)
	}
	if n := l.db.Count(l.t, `SELECT count(*) FROM run_followups f JOIN runs r ON r.id = f.run_id
		WHERE r.thread_id = $1 AND r.ended_at IS NOT NULL AND f.state IN ('pending', 'delivered')`, l.thread); n > 0 {
		t.Fatalf("%d orders wait for runs that have ended", n)
	}
	if n := l.db.Count(l.t, `SELECT count(*) FROM runs r WHERE thread_id = $1 AND followups_pending <>
		(SELECT count(*) FROM run_followups f WHERE f.run_id = r.id AND f.state IN ('pending', 'delivered'))`, l.thread); n > 0 {
		t.Fatalf("%d runs count their orders wrongly", n)
	}
	ends, answers := map[ids.ID]int{}, map[ids.ID]int{}
	for _, e := range l.events {
		if e.Type == "run.state_changed" {
			l.noteEnd(t, e, ends)
		}
	}
	for _, m := range l.messages {
		if m.Kind == messaging.KindMessage && !m.RunID.IsZero() {
			answers[m.RunID]++
		}
	}
	ended := l.db.Count(l.t, "SELECT count(*) FROM runs WHERE thread_id = $1 AND ended_at IS NOT NULL", l.thread)
	if int(ended) != len(ends) {
		t.Fatalf("%d runs have ended, %d ends were told", ended, len(ends))
	}
	for run, n := range answers {
		if n > 1 {
			t.Fatalf("run %s has %d answers", run, n)
		}
	}
}

func (l *life) noteEnd(t *rapid.T, e eventlog.Event, ends map[ids.ID]int) {
	raw, err := json.Marshal(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	var p told
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	final := !domain.State(p.Run.State).Active()
	if final != (p.Run.EndedAt != nil) || final != (p.Run.Reason != nil) {
		t.Fatalf("told %s", raw)
	}
	if final && p.Previous != nil && domain.State(*p.Previous).Active() {
		if ends[p.Run.ID]++; ends[p.Run.ID] > 1 {
			t.Fatalf("run %s was told to end twice", p.Run.ID)
		}
	}
}

func TestTheRunsOfAThreadWhateverHappens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	steps := []string{
		"order", "order", "deliver", "deliver", "start", "start", "write", "finish", "stop", "cancel job", "expiry job", "time", "stalls",
		"rights", "delete", "disable",
	}
	rapid.Check(t, func(t *rapid.T) {
		w.move()
		l := life{world: w}
		for range rapid.IntRange(4, 16).Draw(t, "steps") {
			what := rapid.SampledFrom(steps).Draw(t, "step")
			err := l.step(t, what)
			var public *errs.Error
			if err != nil && (!errors.As(err, &public) || public.Kind() == errs.KindInternal || public.Kind() == errs.KindUnavailable) {
				t.Fatalf("%s: %v", what, err)
			}
			l.check(t)
		}
	})
}
