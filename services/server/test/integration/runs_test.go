// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// team is a person who gives orders and the agent that works on them.
type team struct {
	s      *harness.Server
	caller *harness.Client
	agent  *harness.Client
	place  harness.Place
	// right is the grant that lets the caller give orders.
	right string
	// inbox receives the orders.
	inbox *harness.Socket
}

func newTeam(t *testing.T, s *harness.Server) *team {
	t.Helper()
	w := &team{s: s, caller: s.Person(t, "cara"), agent: s.Agent(t, "aida")}
	w.place = s.Space(t, "write", w.agent)
	w.right = s.Grant(t, w.caller, "trigger", "space", w.place.Space)
	w.inbox = w.agent.Connect(t)
	return w
}

// order has the caller mention the agent and gives the run.
func (w *team) order(t *testing.T, text string) string {
	t.Helper()
	said := w.caller.Say(t, w.place.Thread, "<@"+w.agent.ID+"> "+text)
	read := w.caller.Call(t, "getMessage", said.Str("id")).OK(t)
	if read.Str("triggers.0.outcome") != "triggered" {
		t.Fatalf("the order became %s", read.Body)
	}
	return read.Str("triggers.0.run_id")
}

// invoked waits for the order of a run and gives its token.
func (w *team) invoked(t *testing.T, run string) harness.Invocation {
	t.Helper()
	e := w.inbox.Event(t, "agent.invocation", func(e harness.Event) bool { return e.Str("data.run.id") == run })
	return harness.Invocation(e.Str("data.token"))
}

// started has a run under way.
func (w *team) started(t *testing.T, text string) (run string, token harness.Invocation, version int64) {
	t.Helper()
	run = w.order(t, text)
	token = w.invoked(t, run)
	begun := w.agent.Call(t, "startRun", run, token, harness.Body{"title": "Work"}).OK(t)
	return run, token, begun.Int("run.doc_version")
}

func TestAnAgentWorksOnAnOrder(t *testing.T) {
	s := shared.Use(t)
	w := newTeam(t, s)
	watching := w.caller.Connect(t)
	watching.Do(t, "focus", harness.Body{"thread_ids": []string{w.place.Thread}, "idle": false})
	run, token, version := w.started(t, "tie a bowline")
	watching.Event(t, "run.state_changed", func(e harness.Event) bool { return e.Str("data.run.id") == run && e.Str("data.run.state") == "running" })
	if page := w.agent.Call(t, "getRunContext", run, token).OK(t); len(page.List("messages")) == 0 {
		t.Errorf("an empty context: %s", page.Body)
	}
	updated := w.agent.Call(t, "updateRun", run, token, harness.Body{
		"base_version": version, "patch": harness.Body{"status_line": "Looking for a rope"}, "append": []any{harness.Body{"target": "output", "offset": 0, "text": "First "}},
	}).OK(t)
	watching.Event(t, "run.updated", func(e harness.Event) bool { return e.Str("data.run_id") == run })
	// The same over the gateway.
	answer := w.inbox.Answer(t, w.inbox.Send(t, "run.update", harness.Body{
		"run_id": run, "invocation_token": string(token), "base_version": updated.Int("doc_version"),
		"append": []any{harness.Body{"target": "output", "offset": 6, "text": "a loop."}},
	}))
	if answer.Op != "run.update" || answer.Int("output_length") != 13 {
		t.Fatalf("run.update was answered with %s: %v", answer.Op, answer.D)
	}
	renewed := w.agent.Call(t, "renewRunToken", run).OK(t)
	follow := w.caller.Say(t, w.place.Thread, "<@"+w.agent.ID+"> twice, please")
	order := w.inbox.Event(t, "agent.followup", func(e harness.Event) bool { return e.Str("data.message_id") == follow.Str("id") })
	w.inbox.Do(t, "ack", harness.Body{"seq": order.Seq})
	finished := w.agent.Call(t, "finishRun", run, harness.Invocation(renewed.Str("token")), harness.Body{
		"state": "completed", "output": harness.Body{"content": "Done: a bowline.", "client_msg_id": harness.NewID()},
	}).OK(t)
	if finished.Str("state") != "completed" || finished.Str("output_message_id") == "" {
		t.Errorf("the run: %s", finished.Body)
	}
	watching.Event(t, "message.created", func(e harness.Event) bool { return e.Str("data.message.id") == finished.Str("output_message_id") })
	w.caller.Call(t, "getRun", run).OK(t)
	if list := w.caller.Call(t, "listThreadRuns", w.place.Thread, harness.Query{"limit": "1"}).OK(t); len(list.List("items")) != 1 {
		t.Errorf("runs: %s", list.Body)
	}
}

func TestAnOrderWaitsForTheFirstConnectionOfItsAgent(t *testing.T) {
	s := shared.Use(t)
	w := &team{s: s, caller: s.Person(t, "cleo"), agent: s.Agent(t, "abel")}
	w.place = s.Space(t, "write", w.agent)
	w.right = s.Grant(t, w.caller, "trigger", "space", w.place.Space)
	run := w.order(t, "mend the roof")
	w.inbox = w.agent.Connect(t)
	token := w.invoked(t, run)
	w.agent.Call(t, "startRun", run, token, harness.Body{"title": "Work"}).OK(t)
}

func TestARunIsAskedToStop(t *testing.T) {
	s := shared.Use(t)
	w := newTeam(t, s)
	run, token, _ := w.started(t, "count the stars")
	asked := w.caller.Call(t, "cancelRun", run, harness.Body{"reason": "too many"}).OK(t)
	if asked.Str("state") != "running" || asked.Str("cancel_requested_at") == "" {
		t.Errorf("the run: %s", asked.Body)
	}
	w.inbox.Event(t, "run.cancel_requested", func(e harness.Event) bool { return e.Str("data.run_id") == run })
	w.caller.Call(t, "cancelRun", run, harness.Body{}).OK(t)
	ended := w.agent.Call(t, "finishRun", run, token, harness.Body{"state": "cancelled", "end_reason": "requested"}).OK(t)
	if ended.Str("state") != "cancelled" {
		t.Errorf("the run: %s", ended.Body)
	}
}

func TestRunsAreRefused(t *testing.T) {
	s := shared.Use(t)
	w := newTeam(t, s)
	reader, out, rival := s.Person(t, "rea"), s.Person(t, "out"), s.Agent(t, "rival")
	s.Grant(t, reader, "read", "space", w.place.Space)
	s.Grant(t, rival, "write", "space", w.place.Space)
	owner := s.Owner(t)
	owner.Call(t, "updateAgent", w.agent.ID, owner.Call(t, "getAgent", w.agent.ID).Version(t), harness.Body{"max_concurrent_runs": 1}).OK(t)
	run, token, version := w.started(t, "first")
	// A run in another thread, which is not taken up.
	elsewhere := owner.Call(t, "createThread", w.place.Channel, harness.Body{"title": "Elsewhere", "message": harness.Message("<@" + w.agent.ID + "> second")}).OK(t)
	waiting := owner.Call(t, "getMessage", elsewhere.Str("message.id")).OK(t).Str("triggers.0.run_id")
	other := w.invoked(t, waiting)
	start, update := harness.Body{}, harness.Body{"base_version": version, "patch": harness.Body{"status_line": "x"}}
	finish := harness.Body{"state": "completed", "output": harness.Body{"content": "x", "client_msg_id": harness.NewID()}}
	long := func(n int) harness.Body {
		return harness.Body{"base_version": version, "append": []any{harness.Body{"target": "output", "offset": 0, "text": letters(n)}}}
	}
	refuse(t,
		refusal{"bad cursor", w.caller, "listThreadRuns", with(w.place.Thread, harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"hidden", out, "listThreadRuns", with(w.place.Thread), "not_found", ""},
		refusal{"hidden", out, "getRun", with(run), "not_found", ""},
		refusal{"missing", w.caller, "getRun", with(harness.NewID()), "not_found", ""},

		refusal{"no token", w.agent, "getRunContext", with(run), "forbidden", "invocation_token_required"},
		refusal{"token of another run", w.agent, "getRunContext", with(run, other), "not_found", ""},
		refusal{"of another agent", rival, "getRunContext", with(run), "not_found", ""},

		refusal{"twice", w.agent, "startRun", with(run, token, start), "already_started", ""},
		refusal{"no token", w.agent, "startRun", with(waiting, start), "forbidden", "invocation_token_required"},
		refusal{"of another agent", rival, "startRun", with(waiting, start), "not_found", ""},
		refusal{"too many at once", w.agent, "startRun", with(waiting, other, start), "conflict", "concurrency_limit"},

		refusal{"of another agent", rival, "renewRunToken", with(run), "not_found", ""},
		refusal{"missing", w.agent, "renewRunToken", with(harness.NewID()), "not_found", ""},

		refusal{"no token", w.agent, "updateRun", with(run, update), "forbidden", "invocation_token_required"},
		refusal{"of another agent", rival, "updateRun", with(run, update), "not_found", ""},
		refusal{"old version", w.agent, "updateRun", with(run, token, harness.Body{"base_version": version + 9, "patch": harness.Body{"status_line": "x"}}), "version_conflict", ""},
		refusal{"too large", w.agent, "updateRun", with(run, token, long(65_536)), "payload_too_large", ""},
		refusal{"not started", w.agent, "updateRun", with(waiting, other, update), "conflict", "not_started"},

		refusal{"no token", w.agent, "finishRun", with(run, finish), "forbidden", "invocation_token_required"},
		refusal{"of another agent", rival, "finishRun", with(run, finish), "not_found", ""},
		refusal{"old version", w.agent, "finishRun", with(run, token, harness.Body{"state": "completed", "base_version": version + 9, "patch": harness.Body{"status_line": "x"}}), "version_conflict", ""},
		refusal{"too large", w.agent, "finishRun", with(run, token, harness.Body{"state": "completed", "output": harness.Body{"content": letters(70_000), "client_msg_id": harness.NewID()}}), "payload_too_large", ""},
		refusal{"not started", w.agent, "finishRun", with(waiting, other, harness.Body{"state": "completed"}), "conflict", "not_started"},

		refusal{"reader", reader, "cancelRun", with(run, harness.Body{}), "forbidden", ""},
		refusal{"hidden", out, "cancelRun", with(run, harness.Body{}), "not_found", ""},
		refusal{"missing", w.caller, "cancelRun", with(harness.NewID(), harness.Body{}), "not_found", ""},
	)
	w.agent.Call(t, "finishRun", run, token, finish).OK(t)
	refuse(t,
		refusal{"ended", w.agent, "startRun", with(run, token, start), "conflict", "run_ended"},
		refusal{"ended", w.agent, "updateRun", with(run, token, update), "conflict", "run_ended"},
		refusal{"ended", w.agent, "finishRun", with(run, token, harness.Body{"state": "failed", "end_reason": "agent_error"}), "conflict", "run_ended"},
		refusal{"ended", w.agent, "renewRunToken", with(run), "conflict", "run_ended"},
	)
	w.agent.Call(t, "finishRun", waiting, harness.Body{"state": "failed", "end_reason": "agent_rejected"}).Is(t, http.StatusOK)
}

func TestARightTakenAwayReachesTheRun(t *testing.T) {
	s := shared.Use(t)
	w := newTeam(t, s)
	run, _, _ := w.started(t, "sail on")
	s.Owner(t).Call(t, "revokeGrant", w.right).OK(t)
	w.inbox.Event(t, "run.cancel_requested", func(e harness.Event) bool { return e.Str("data.run_id") == run })
	w.agent.Call(t, "renewRunToken", run).Refused(t, "forbidden", "policy_denied")
}

func TestInvocationTokensExpire(t *testing.T) {
	s := harness.Start(t)
	w := newTeam(t, s)
	run, token, version := w.started(t, "wait")
	s.Clock.Advance(16 * minute)
	for op, body := range map[string]harness.Body{
		"startRun":  {},
		"updateRun": {"base_version": version, "patch": harness.Body{"status_line": "x"}},
		"finishRun": {"state": "completed"},
	} {
		w.agent.Call(t, op, run, token, body).Refused(t, "token_expired")
	}
	w.agent.Call(t, "getRunContext", run, token).Refused(t, "token_expired")
	renewed := harness.Invocation(w.agent.Call(t, "renewRunToken", run).OK(t).Str("token"))
	w.agent.Call(t, "finishRun", run, renewed, harness.Body{"state": "completed"}).OK(t)
}

// due lets the waiting jobs of a kind run now.
func due(t *testing.T, s *harness.Server, kind string) {
	t.Helper()
	s.DB.Exec(t, "UPDATE jobs.river_job SET state = 'available', scheduled_at = now() - interval '1 second' WHERE kind = $1 AND state IN ('scheduled', 'available')", kind)
}

func TestJobsEndWhatNobodyEnds(t *testing.T) {
	s := harness.Start(t)
	w := newTeam(t, s)
	s.Owner(t)
	run, _, _ := w.started(t, "never stop")
	w.caller.Call(t, "cancelRun", run, harness.Body{}).OK(t)
	w.inbox.Close()
	queued := w.caller.Say(t, w.place.Thread, "just talk")
	thread := s.Owner(t).Call(t, "createThread", w.place.Channel, harness.Body{"title": "Later", "message": harness.Message("<@" + w.agent.ID + "> later")}).OK(t)
	waiting := s.Owner(t).Call(t, "getMessage", thread.Str("message.id")).OK(t).Str("triggers.0.run_id")
	_ = queued
	s.Clock.Advance(31 * minute / 60)
	due(t, s, "runs.cancel_timeout")
	harness.Eventually(t, "the run is cancelled", func() bool { return s.JobRuns("runs.cancel_timeout") > 0 && w.state(t, run) == "cancelled" })
	s.Clock.Advance(25 * 60 * minute)
	due(t, s, "runs.queued_expiry")
	harness.Eventually(t, "the run expires", func() bool { return w.state(t, waiting) == "failed" })
	for _, kind := range []string{"audit.chain_verify", "authz.expiry_reminder", "authz.expiry_sweep", "identity.auth_cleanup", "runs.stall_check", "sync.idempotency_cleanup", "sync.partition_maintenance"} {
		harness.Eventually(t, kind+" has run", func() bool { return s.JobRuns(kind) > 0 })
	}
}

// state looks at a run without a credential, which may have expired meanwhile.
func (w *team) state(t *testing.T, run string) string {
	t.Helper()
	states := []string{"queued", "running", "waiting_input", "completed", "failed", "cancelled"}
	for _, state := range states {
		if w.s.DB.Count(t, "SELECT count(*) FROM runs WHERE id = $1 AND state = $2", run, state) == 1 {
			return state
		}
	}
	t.Fatalf("run %s has no known state of %s", run, strings.Join(states, ", "))
	return ""
}
