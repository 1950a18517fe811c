// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/system"
)

// order is what a person asks for and what became of it.
type order struct {
	thread string
	text   string
}

// agentKilled ends an adapter while it works. What it had started ends failed with the text that was there; what it had
// been given and not started, and what came while it was away, runs once after its return.
func agentKilled(t *testing.T, w *world) {
	binary, err := system.BuildAgent(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	agent, err := w.AddAgent(t.Context(), w.team.SpaceID, system.AgentOptions{Handle: "echo", Binary: binary, Pause: "60ms", Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		agent.Kill()
		if t.Failed() {
			t.Logf("end of the log of the adapter:\n%s", agent.Log())
		}
	}()
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	awaitAdapter(t, w, agent)
	var findings []string
	facts := []map[string]any{}
	for round := range plan.agentRounds {
		found, fact := agentRound(t, w, agent, round)
		findings, facts = append(findings, found...), append(facts, fact)
	}
	for _, f := range findings {
		t.Error(f)
	}
	w.report(t, "agent_killed", map[string]any{"rounds": facts}, findings, nil)
}

// awaitAdapter gives small orders until one is answered: then the adapter is connected. The place from which an agent
// hears of orders is made with its first connection.
func awaitAdapter(t *testing.T, w *world, agent *system.Agent) {
	t.Helper()
	const answered = 3 * time.Second
	for try := range int(patience / answered) {
		o := w.order(t, agent, -1-try, "hello", 1)
		if waitFor(answered, func() bool {
			run, err := w.team.People[0].OnlyRun(t.Context(), o.thread)
			return err == nil && run.Final()
		}) {
			return
		}
	}
	t.Fatal("the adapter does not answer")
}

func agentRound(t *testing.T, w *world, agent *system.Agent, round int) (findings []string, facts map[string]any) {
	t.Helper()
	person := w.team.People[0]
	const words = 60
	started := w.order(t, agent, round, "started", words)
	running := awaitRun(t, person, started.thread, func(r system.Run) bool { return r.State == "running" && r.OutputLength > 20 })
	// With one run at a time, the next order waits inside the adapter.
	waiting := w.order(t, agent, round, "waiting", 3)
	awaitRun(t, person, waiting.thread, func(system.Run) bool { return true })
	time.Sleep(100 * time.Millisecond) // for the order to reach the adapter; either way it has not begun
	agent.Kill()
	missed := w.order(t, agent, round, "missed", 3)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	broken := awaitRun(t, person, started.thread, system.Run.Final)
	if broken.State != "failed" {
		findings = append(findings, fmt.Sprintf("round %d: the run that was at work ended %s", round, broken.State))
	}
	if partial := broken.Output.Text; partial == "" || !strings.HasPrefix(started.text, partial) || partial == started.text {
		findings = append(findings, fmt.Sprintf("round %d: the run that was at work has the text %q", round, partial))
	}
	for _, o := range []order{waiting, missed} {
		findings = append(findings, onceAnswered(t, person, agent, o)...)
	}
	return findings, map[string]any{
		"killed_at_length": running.OutputLength, "partial_length": broken.OutputLength, "reason": broken.EndReason, "code": broken.ErrorCode,
	}
}

// order sends a message that sets the agent to work, in a channel of its own.
func (w *world) order(t *testing.T, agent *system.Agent, round int, name string, words int) order {
	t.Helper()
	channel, err := w.AddChannel(t.Context(), w.team.SpaceID, fmt.Sprintf("agent-%d-%s", round, name))
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, words)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", name, i)
	}
	o := order{thread: channel.ThreadID, text: strings.Join(list, " ")}
	if _, err := w.team.People[0].Send(t.Context(), o.thread, system.NewID(), "<@"+agent.ID+"> "+o.text); err != nil {
		t.Fatal(err)
	}
	return o
}

// awaitRun waits until the only run of a thread is as wanted.
func awaitRun(t *testing.T, c *system.Client, thread string, wanted func(system.Run) bool) system.Run {
	t.Helper()
	var run system.Run
	var err error
	if !waitFor(patience, func() bool {
		run, err = c.OnlyRun(t.Context(), thread)
		if err != nil && !system.IsNoRun(err) {
			t.Fatal(err)
		}
		return err == nil && wanted(run)
	}) {
		t.Fatalf("the run does not get there: %+v %v", run, err)
	}
	return run
}

// onceAnswered holds that an order ran once, to its end, and was answered with one message.
func onceAnswered(t *testing.T, c *system.Client, agent *system.Agent, o order) (findings []string) {
	t.Helper()
	run := awaitRun(t, c, o.thread, system.Run.Final)
	if run.State != "completed" || run.Output.Text != o.text {
		findings = append(findings, fmt.Sprintf("the order %q ended %s (%s) with %q", o.text, run.State, run.ErrorCode, run.Output.Text))
	}
	list, err := c.Messages(t.Context(), o.thread)
	if err != nil {
		t.Fatal(err)
	}
	answers := 0
	for _, m := range list {
		if m.Content == o.text {
			answers++
		}
	}
	if answers != 1 {
		findings = append(findings, fmt.Sprintf("the order %q has %d answers", o.text, answers))
	}
	return findings
}
