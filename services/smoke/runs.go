// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/gateway"
)

func (s *story) makeAgent(ctx context.Context) (err error) {
	s.agent, err = s.owner.CreateAgent(ctx, api.CreateAgentRequest{
		Handle: "scout", DisplayName: "Scout", BillingMode: api.BillingModeLocal, ToolClass: api.ToolClassChat, Token: &api.AgentTokenInput{Name: "smoke"},
	})
	if err != nil {
		return err
	}
	if s.agent.Token == nil || s.agent.Token.Secret == "" {
		return errors.New("no token in the answer")
	}
	if _, err = s.grantOn(ctx, s.agent.PrincipalID, api.LevelWrite); err != nil {
		return err
	}
	channel, err := s.owner.Channel(ctx, s.channel.ID)
	if err != nil {
		return err
	}
	_, err = s.owner.SetChannelOperator(ctx, s.channel.ID, api.SetChannelOperatorRequest{Mode: api.OperatorModeOwn, AgentID: &s.agent.PrincipalID}, bothy.IfMatch(channel.Version))
	if err != nil {
		return err
	}
	behavior, err := s.owner.ChannelBehavior(ctx, s.channel.ID)
	if err != nil {
		return err
	}
	rule := api.TriggerRuleMention
	_, err = s.owner.UpdateChannelBehavior(ctx, s.channel.ID, api.UpdateChannelBehaviorRequest{TriggerRule: &rule}, bothy.IfMatch(behavior.Version))
	return err
}

func (s *story) agentConfig() string { return s.in.path("agent", "agent.yaml") }

func (s *story) setUpAdapter(ctx context.Context) error {
	const file = 0o600
	token := s.in.path("agent", "token")
	if err := os.WriteFile(token, []byte(s.agent.Token.Secret+"\n"), file); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--config", s.agentConfig(), "--url", s.in.url, "--token-file", token, "--driver", "echo"},
		{"check", "--config", s.agentConfig()},
	} {
		p, err := s.in.start("adapter-"+args[0], os.Environ(), s.in.adapter, args...)
		if err != nil {
			return err
		}
		if code, err := p.wait(ctx); err != nil || code != 0 {
			p.kill()
			return fmt.Errorf("bothy-agent %s: exit code %d, %w", args[0], code, orNone(err))
		}
	}
	return nil
}

func (s *story) startAdapter(ctx context.Context) (err error) {
	if s.adapter, err = s.in.start("adapter", os.Environ(), s.in.adapter, "run", "--config", s.agentConfig()); err != nil {
		return err
	}
	_, err = await(ctx, s.owner, gateway.AgentPresenceChanged, func(d *api.AgentPresenceChangedData) bool {
		return d.AgentID == s.agent.PrincipalID && d.State == api.PresenceStateOnline
	})
	if err != nil {
		return err
	}
	agent, err := s.owner.Agent(ctx, s.agent.PrincipalID)
	if err != nil {
		return err
	}
	if agent.Runtime == nil || agent.Runtime.PresenceState != api.PresenceStateOnline || agent.Runtime.ReportedBillingMode == nil || len(agent.Runtime.Warnings) > 0 {
		return fmt.Errorf("runtime %+v", agent.Runtime)
	}
	return nil
}

// order mentions the agent in a message of the person and gives the run that came of it.
func (s *story) order(ctx context.Context, p *person, text string) (runID string, m *api.MessageWritten, err error) {
	m, err = p.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "<@" + s.agent.PrincipalID + "> " + text})
	if err != nil {
		return "", nil, err
	}
	if m.TriggerState != api.TriggerStateTriggered || len(m.Triggers) != 1 || m.Triggers[0].RunID == nil {
		return "", nil, fmt.Errorf("the message is %s, triggers %s", m.TriggerState, triggers(m))
	}
	return *m.Triggers[0].RunID, m, nil
}

func triggers(m *api.MessageWritten) string {
	var out []string
	for _, t := range m.Triggers {
		reason := ""
		if t.Reason != nil {
			reason = " " + *t.Reason
		}
		out = append(out, string(t.Outcome)+reason)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// state waits until the run is in the state, as the person's gateway tells.
func (s *story) state(ctx context.Context, p *person, runID string, state api.RunState) (*api.RunSummary, error) {
	changed, err := await(ctx, p, gateway.RunStateChanged, func(d *api.RunStateChangedData) bool { return d.Run.ID == runID && d.Run.State == state })
	if err == nil {
		return &changed.Run, nil
	}
	run, getErr := p.Run(ctx, runID)
	if getErr != nil {
		return nil, fmt.Errorf("run not %s: %w", state, errors.Join(err, getErr))
	}
	return nil, fmt.Errorf("run is %s instead of %s (end reason %s, error %s %s): %w", run.State, state, text(run.EndReason), text(run.ErrorCode), text(run.ErrorMessage), err)
}

func text(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

func (s *story) mention(ctx context.Context) error {
	if err := s.bob.link.Focus(ctx, api.FocusTarget{ThreadIds: []string{s.thread}, ChannelID: &s.channel.ID}); err != nil {
		return err
	}
	words := "please say these fourteen words back to me so that they can be watched"
	runID, m, err := s.order(ctx, s.bob, words)
	if err != nil {
		return err
	}
	if _, err := s.state(ctx, s.bob, runID, api.RunStateRunning); err != nil {
		return err
	}
	live := func(d *api.RunUpdatedData) bool { return d.RunID == runID && (len(d.Patches) > 0 || d.Snapshot != nil) }
	if _, err := await(ctx, s.bob, gateway.RunUpdated, live); err != nil {
		return err
	}
	done, err := s.state(ctx, s.bob, runID, api.RunStateCompleted)
	if err != nil {
		return err
	}
	if done.OutputMessageID == nil {
		return errors.New("the run has no answer")
	}
	answer, err := await(ctx, s.bob, gateway.MessageCreated, func(d *api.MessageCreatedData) bool { return d.Message.ID == *done.OutputMessageID })
	if err != nil {
		return err
	}
	got := answer.Message
	switch {
	case got.Content != words:
		return fmt.Errorf("the answer is %q", got.Content)
	case got.Author.Kind != api.AuthorKindAgent || got.Author.ID == nil || *got.Author.ID != s.agent.PrincipalID:
		return fmt.Errorf("the answer is of %+v", got.Author)
	case got.ReplyTo == nil || got.RunID == nil || *got.RunID != runID:
		return fmt.Errorf("the answer replies to %+v, run %s", got.ReplyTo, text(got.RunID))
	}
	return s.oneRun(ctx, m.ID)
}

// oneRun makes sure that a message has one run.
func (s *story) oneRun(ctx context.Context, messageID string) error {
	runs, err := s.owner.ListThreadRuns(ctx, s.thread, bothy.Page{})
	if err != nil {
		return err
	}
	n := 0
	for _, r := range runs.Items {
		if r.TriggerMessageID != nil && *r.TriggerMessageID == messageID {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("the message has %d runs", n)
	}
	return nil
}

func (s *story) quiet(ctx context.Context) error {
	m, err := s.bob.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "Nice."})
	if err != nil {
		return err
	}
	if m.TriggerState != api.TriggerStateNone || len(m.Triggers) != 0 {
		return fmt.Errorf("the message is %s, triggers %s", m.TriggerState, triggers(m))
	}
	return nil
}

func (s *story) fail(ctx context.Context) error {
	runID, _, err := s.order(ctx, s.owner, "please fail now")
	if err != nil {
		return err
	}
	run, err := s.state(ctx, s.owner, runID, api.RunStateFailed)
	if err != nil {
		return err
	}
	full, err := s.owner.Run(ctx, runID)
	if err != nil {
		return err
	}
	if text(run.ErrorCode) != "agent_error" || full.Output.Text != "please fail" || run.OutputMessageID != nil {
		return fmt.Errorf("error %s, output %q, answer %s", text(run.ErrorCode), full.Output.Text, text(run.OutputMessageID))
	}
	return nil
}

func (s *story) followUp(ctx context.Context) error {
	runID, _, err := s.order(ctx, s.bob, "sleep 3")
	if err != nil {
		return err
	}
	if err := s.outputOf(ctx, runID, "sleep 3"); err != nil {
		return err
	}
	m, err := s.bob.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "<@" + s.agent.PrincipalID + "> and this"})
	if err != nil {
		return err
	}
	if m.TriggerState != api.TriggerStateFollowup {
		return fmt.Errorf("the message is %s, triggers %s", m.TriggerState, triggers(m))
	}
	if _, err := s.state(ctx, s.bob, runID, api.RunStateCompleted); err != nil {
		return err
	}
	run, err := s.bob.Run(ctx, runID)
	if err != nil {
		return err
	}
	if run.Output.Text != "sleep 3\n\nand this" || run.Followups.Pending != 0 {
		return fmt.Errorf("output %q, %d follow-ups pending", run.Output.Text, run.Followups.Pending)
	}
	return nil
}

func (s *story) cancel(ctx context.Context) error {
	runID, _, err := s.order(ctx, s.owner, "sleep 600")
	if err != nil {
		return err
	}
	if _, err := s.state(ctx, s.owner, runID, api.RunStateRunning); err != nil {
		return err
	}
	reason := "not needed any more"
	for range 2 { // a repeat answers the run
		if _, err := s.bob.CancelRun(ctx, runID, api.CancelRunRequest{Reason: &reason}); err != nil {
			return err
		}
	}
	run, err := s.state(ctx, s.owner, runID, api.RunStateCancelled)
	if err != nil {
		return err
	}
	if text(run.EndReason) != "requested" || run.CancelRequestedBy == nil || *run.CancelRequestedBy != s.bob.id {
		return fmt.Errorf("end reason %s, requested by %s", text(run.EndReason), text(run.CancelRequestedBy))
	}
	return nil
}

func (s *story) killAdapter(ctx context.Context) error {
	runID, _, err := s.order(ctx, s.owner, "half sleep 600")
	if err != nil {
		return err
	}
	if err := s.outputOf(ctx, runID, "half"); err != nil {
		return err
	}
	s.adapter.kill()
	if s.adapter, err = s.in.start("adapter", os.Environ(), s.in.adapter, "run", "--config", s.agentConfig()); err != nil {
		return err
	}
	if _, err := s.state(ctx, s.owner, runID, api.RunStateFailed); err != nil {
		return err
	}
	run, err := s.owner.Run(ctx, runID)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(run.Output.Text, "half") || run.OutputMessageID != nil {
		return fmt.Errorf("output %q, answer %s", run.Output.Text, text(run.OutputMessageID))
	}
	return nil
}

// outputOf waits until the run has written at least the text.
func (s *story) outputOf(ctx context.Context, runID, head string) error {
	const pause = 50 * time.Millisecond
	for {
		run, err := s.owner.Run(ctx, runID)
		if err != nil {
			return err
		}
		if strings.HasPrefix(run.Output.Text, head) {
			return nil
		}
		if err := bothy.Sleep(ctx, pause); err != nil {
			return fmt.Errorf("output is %q: %w", run.Output.Text, err)
		}
	}
}

func (s *story) restart(ctx context.Context) error {
	before := [2]int{s.owner.connections(), s.bob.connections()}
	if code, err := s.in.server.stop(ctx); err != nil || code != 0 {
		return fmt.Errorf("the server ended with %d, %w", code, orNone(err))
	}
	if err := s.in.serve(ctx); err != nil {
		return err
	}
	m, err := s.owner.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "Still here?"})
	if err != nil {
		return err
	}
	for i, p := range []*person{s.owner, s.bob} {
		fits := func(d *api.MessageCreatedData) bool { return d.Message.ID == m.ID }
		if _, err := await(ctx, p, gateway.MessageCreated, fits); err != nil {
			return err
		}
		if err := p.online(ctx, before[i]+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) mentionAgain(ctx context.Context) error {
	runID, _, err := s.order(ctx, s.owner, "hello again")
	if err != nil {
		return err
	}
	_, err = s.state(ctx, s.owner, runID, api.RunStateCompleted)
	return err
}
