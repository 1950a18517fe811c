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

// story is what the steps share.
type story struct {
	in         *instance
	code       string
	owner, bob *person
	space      *api.Space
	channel    *api.Channel
	thread     string
	grant      *api.GrantCreated
	agent      *api.AgentCreated
	adapter    *process
	message    *api.MessageWritten
}

func (s *story) steps() []step {
	return []step{
		{"the database is made and brought up to date", s.migrate, true},
		{"the first owner gets an enrollment code", s.bootstrap, true},
		{"the server starts", s.in.serve, true},
		{"the owner redeems the code and follows the gateway", s.enrolOwner, true},
		{"a code works once", s.codeIsUsed, false},
		{"a second person joins with a code", s.enrolBob, true},
		{"the owner makes a space and a channel", s.makeChannel, true},
		{"a grant reaches the other while connected", s.giveAccess, true},
		{"a message reaches the other over the gateway", s.talk, true},
		{"a repeated message is one message", s.repeat, false},
		{"the other has it unread, and reads it", s.readStates, false},
		{"an edit reaches the other", s.edit, false},
		{"a change of an old version is refused", s.staleEdit, false},
		{"a deletion reaches the other", s.remove, false},
		{"a side thread is started", s.sideThread, false},
		{"a session is refreshed", s.refresh, false},
		{"a wrong password is refused", s.wrongPassword, false},
		{"an agent is made and answers in the channel", s.makeAgent, true},
		{"the adapter is set up and checks", s.setUpAdapter, true},
		{"the adapter starts and the agent is online", s.startAdapter, true},
		{"a mention starts a run that is watched live and answers", s.mention, false},
		{"a message that mentions nobody starts nothing", s.quiet, false},
		{"a run that fails says so", s.fail, false},
		{"a follow-up reaches the run at work", s.followUp, false},
		{"a sleeping run is cancelled", s.cancel, false},
		{"a killed adapter leaves no run without an end", s.killAdapter, false},
		{"the server restarts and everybody goes on", s.restart, false},
		{"the agent goes on after the restart", s.mentionAgain, false},
		{"a right that is taken away ends access while connected", s.takeAway, false},
		{"a revoked token ends the adapter", s.revoke, false},
		{"a session that is ended closes its connection", s.endSession, false},
		{"the server stops in order", s.stop, false},
	}
}

// close ends whatever is left.
func (s *story) close() {
	for _, p := range []*person{s.owner, s.bob} {
		if p != nil && p.stop != nil {
			p.stop()
		}
	}
	s.adapter.kill()
	if s.in.server != nil {
		const patience = 20 * time.Second
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := s.in.server.stop(ctx); err != nil {
			s.in.server.kill()
		}
	}
}

func (s *story) migrate(ctx context.Context) error {
	_, err := s.in.command(ctx, "migrate", "up", "--bootstrap")
	return err
}

func (s *story) bootstrap(ctx context.Context) (err error) {
	s.code, err = s.in.command(ctx, "setup", "bootstrap-owner", "--handle", "ana", "--display-name", "Ana Lima")
	return err
}

const password = "a long way to tipperary"

func (s *story) enrolOwner(ctx context.Context) (err error) {
	if s.owner, err = enrol(ctx, s.in.url, s.code, password); err != nil {
		return err
	}
	self, err := s.owner.Self(ctx)
	if err != nil {
		return err
	}
	if self.Handle != "ana" || self.Owner == nil || !*self.Owner {
		return fmt.Errorf("the owner is @%s, owner %v", self.Handle, self.Owner)
	}
	return s.owner.online(ctx, 1)
}

func (s *story) codeIsUsed(ctx context.Context) error {
	_, err := enrol(ctx, s.in.url, s.code, password)
	return want(err, api.ErrorCodeUnauthenticated, "login_failed")
}

// want is nil when the error is a problem of the code and, unless that is empty, the reason.
func want(err error, code api.ErrorCode, reason string) error {
	if !bothy.HasCode(err, code) || reason != "" && bothy.Reason(err) != reason {
		return fmt.Errorf("%s %s was expected, got: %w", code, reason, orNone(err))
	}
	return nil
}

var errNone = errors.New("no error")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

func (s *story) enrolBob(ctx context.Context) error {
	yes := true
	user, err := s.owner.CreateUser(ctx, api.CreateUserRequest{Handle: "bob", DisplayName: "Bob Ray", IssueCode: &yes})
	if err != nil {
		return err
	}
	if user.Enrollment == nil {
		return errors.New("no code in the answer")
	}
	code, err := s.owner.IssueEnrollmentCode(ctx, user.ID)
	if err != nil {
		return fmt.Errorf("issue another code: %w", err)
	}
	if _, err := enrol(ctx, s.in.url, user.Enrollment.Code, password); err == nil {
		return errors.New("the replaced code still works")
	}
	if s.bob, err = enrol(ctx, s.in.url, code.Code, password); err != nil {
		return err
	}
	if s.bob.id != user.ID {
		return fmt.Errorf("the code is of %s instead of %s", s.bob.id, user.ID)
	}
	return s.bob.online(ctx, 1)
}

func (s *story) makeChannel(ctx context.Context) (err error) {
	if s.space, err = s.owner.CreateSpace(ctx, api.CreateSpaceRequest{Name: "Workshop"}); err != nil {
		return err
	}
	s.channel, err = s.owner.CreateChannel(ctx, s.space.ID, api.CreateChannelRequest{Kind: api.CreateChannelRequestKindText, Name: "general"})
	if err != nil {
		return err
	}
	if s.channel.MainThreadID == nil {
		return errors.New("the channel has no main thread")
	}
	s.thread = *s.channel.MainThreadID
	if _, err := s.bob.Channel(ctx, s.channel.ID); !bothy.HasCode(err, api.ErrorCodeNotFound) {
		return fmt.Errorf("bob, who has no right, gets: %w", orNone(err))
	}
	return nil
}

func (s *story) giveAccess(ctx context.Context) (err error) {
	if s.grant, err = s.grantOn(ctx, s.bob.id, api.LevelTrigger, api.CapabilityThreadsCreate); err != nil {
		return err
	}
	_, err = await(ctx, s.bob, gateway.AccessChanged, func(d *api.AccessChangedData) bool {
		for _, g := range d.Gained {
			if g.Target.ID != nil && *g.Target.ID == s.channel.ID {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	part, err := s.bob.SnapshotOf(ctx, "", "channel:"+s.channel.ID)
	if err != nil {
		return err
	}
	for _, c := range part.Sections.Channels {
		if c.Channel.ID == s.channel.ID && c.Access.Level != nil && *c.Access.Level == api.LevelTrigger {
			return nil
		}
	}
	return fmt.Errorf("the snapshot of the channel has %d channels, none of them with the right", len(part.Sections.Channels))
}

func (s *story) grantOn(ctx context.Context, principal string, level api.Level, capabilities ...api.Capability) (*api.GrantCreated, error) {
	return s.owner.CreateGrant(ctx, api.CreateGrantRequest{
		Subject: api.SubjectInput{Kind: api.SubjectKindPrincipal, ID: principal},
		Target:  api.TargetInput{Kind: api.TargetKindChannel, ID: &s.channel.ID}, Level: level, Capabilities: capabilities,
	})
}

func (s *story) talk(ctx context.Context) (err error) {
	if s.message, err = s.owner.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "Good morning, **Bob**."}); err != nil {
		return err
	}
	created, err := await(ctx, s.bob, gateway.MessageCreated, func(d *api.MessageCreatedData) bool { return d.Message.ID == s.message.ID })
	if err != nil {
		return err
	}
	if created.Message.Content != "Good morning, **Bob**." || created.Message.ThreadSeq != s.message.ThreadSeq {
		return fmt.Errorf("it arrived as %q, number %d", created.Message.Content, created.Message.ThreadSeq)
	}
	page, err := s.bob.ListMessages(ctx, s.thread, bothy.MessageRange{})
	if err != nil {
		return err
	}
	if n := len(page.Items); n == 0 || page.Items[n-1].ID != s.message.ID {
		return fmt.Errorf("it is not the newest of %d messages", n)
	}
	return nil
}

func (s *story) repeat(ctx context.Context) error {
	in := api.CreateMessageRequest{ClientMsgID: bothy.NewID(), Content: "once"}
	first, err := s.owner.CreateMessage(ctx, s.thread, in)
	if err != nil {
		return err
	}
	second, err := s.owner.CreateMessage(ctx, s.thread, in)
	if err != nil {
		return err
	}
	if first.ID != second.ID || first.ThreadSeq != second.ThreadSeq {
		return fmt.Errorf("it is %s and %s", first.ID, second.ID)
	}
	in.Content = "twice"
	if _, err = s.owner.CreateMessage(ctx, s.thread, in); want(err, api.ErrorCodeIdempotencyKeyReuse, "") != nil {
		return fmt.Errorf("another text under the same ID: %w", orNone(err))
	}
	fits := func(d *api.MessageCreatedData) bool { return d.Message.ID == first.ID }
	if _, err := await(ctx, s.bob, gateway.MessageCreated, fits); err != nil {
		return err
	}
	if n := seen(s.bob, gateway.MessageCreated, fits); n != 1 {
		return fmt.Errorf("it arrived %d times", n)
	}
	return nil
}

func (s *story) readStates(ctx context.Context) error {
	snapshot, err := s.bob.Snapshot(ctx, "")
	if err != nil {
		return err
	}
	unread := -1
	for _, r := range snapshot.Sections.ReadStates {
		if r.ThreadID == s.thread {
			unread = r.UnreadCount
		}
	}
	if unread != 2 {
		return fmt.Errorf("%d unread in the snapshot instead of 2", unread)
	}
	page, err := s.bob.ListMessages(ctx, s.thread, bothy.MessageRange{Limit: 1})
	if err != nil {
		return err
	}
	last := page.Counters.LastThreadSeq
	state, err := s.bob.UpdateReadState(ctx, s.thread, api.UpdateReadStateRequest{LastReadThreadSeq: last})
	if err != nil {
		return err
	}
	if state.UnreadCount != 0 || state.LastReadThreadSeq != last {
		return fmt.Errorf("%d unread after reading up to %d of %d", state.UnreadCount, state.LastReadThreadSeq, last)
	}
	if state, err = s.bob.MarkThreadUnread(ctx, s.thread, last); err != nil {
		return err
	}
	if state.UnreadCount != 1 {
		return fmt.Errorf("%d unread after marking the last", state.UnreadCount)
	}
	_, err = await(ctx, s.bob, gateway.ReadStateUpdated, func(d *api.ReadStateUpdatedData) bool {
		for _, r := range d.ReadStates {
			if r.ThreadID == s.thread && r.ManuallyUnreadFrom != nil && *r.ManuallyUnreadFrom == last {
				return true
			}
		}
		return false
	})
	return err
}

func (s *story) edit(ctx context.Context) error {
	text := "Good morning, Bob!"
	edited, err := s.owner.UpdateMessage(ctx, s.message.ID, api.UpdateMessageRequest{Content: &text}, bothy.IfMatch(s.message.Version))
	if err != nil {
		return err
	}
	if edited.EditedAt == nil || edited.Version <= s.message.Version {
		return fmt.Errorf("version %d, edited at %v", edited.Version, edited.EditedAt)
	}
	_, err = await(ctx, s.bob, gateway.MessageUpdated, func(d *api.MessageUpdatedData) bool {
		return d.Message.ID == s.message.ID && d.Message.Content == text
	})
	return err
}

func (s *story) staleEdit(ctx context.Context) error {
	text := "late"
	_, err := s.owner.UpdateMessage(ctx, s.message.ID, api.UpdateMessageRequest{Content: &text}, bothy.IfMatch(s.message.Version))
	if err := want(err, api.ErrorCodeVersionConflict, ""); err != nil {
		return err
	}
	_, err = s.owner.UpdateMessage(ctx, s.message.ID, api.UpdateMessageRequest{Content: &text})
	if err := want(err, api.ErrorCodePreconditionRequired, ""); err != nil {
		return err
	}
	_, err = s.bob.UpdateMessage(ctx, s.message.ID, api.UpdateMessageRequest{Content: &text}, bothy.IfMatch(s.message.Version+1))
	return want(err, api.ErrorCodeForbidden, "")
}

func (s *story) remove(ctx context.Context) error {
	if err := s.owner.DeleteMessage(ctx, s.message.ID, ""); err != nil {
		return err
	}
	gone, err := await(ctx, s.bob, gateway.MessageDeleted, func(d *api.MessageDeletedData) bool { return d.Message.ID == s.message.ID })
	if err != nil {
		return err
	}
	if gone.Message.Content != "" || gone.Message.Deleted == nil {
		return errors.New("the event still has the text")
	}
	return nil
}

func (s *story) sideThread(ctx context.Context) error {
	parent, err := s.owner.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "A question apart."})
	if err != nil {
		return err
	}
	side, err := s.bob.CreateThread(ctx, s.channel.ID, api.CreateThreadRequest{ParentMessageID: &parent.ID, Message: api.CreateMessageRequest{Content: "An answer apart."}})
	if err != nil {
		return err
	}
	if _, err := await(ctx, s.owner, gateway.ThreadCreated, func(d *api.Thread) bool { return d.ID == side.Thread.ID }); err != nil {
		return err
	}
	_, err = await(ctx, s.owner, gateway.MessageCreated, func(d *api.MessageCreatedData) bool { return d.Message.ThreadID == side.Thread.ID })
	return err
}

func (s *story) refresh(ctx context.Context) error {
	before := s.bob.session.State()
	if err := s.bob.session.Refresh(ctx); err != nil {
		return err
	}
	if s.bob.session.State().RefreshToken == before.RefreshToken {
		return errors.New("the refresh token is the same")
	}
	_, err := s.bob.Self(ctx)
	return err
}

func (s *story) wrongPassword(ctx context.Context) error {
	c, err := bothy.New(s.in.url)
	if err != nil {
		return err
	}
	key, err := bothy.NewKey()
	if err != nil {
		return err
	}
	for _, login := range []string{"bob", "nobody"} {
		_, err = c.LoginWithPassword(ctx, key, device, login, "wrong password")
		if err := want(err, api.ErrorCodeUnauthenticated, "login_failed"); err != nil {
			return err
		}
	}
	// A new device of a person waits for approval, unless the instance is set up otherwise.
	session, err := c.LoginWithPassword(ctx, key, device, "bob", password)
	var pending *bothy.PendingError
	if errors.As(err, &pending) {
		return nil
	}
	if err != nil {
		return err
	}
	return session.Logout(ctx)
}

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

func (s *story) takeAway(ctx context.Context) error {
	if err := s.owner.RevokeGrant(ctx, s.grant.ID); err != nil {
		return err
	}
	_, err := await(ctx, s.bob, gateway.AccessChanged, func(d *api.AccessChangedData) bool {
		for _, t := range d.Lost {
			if t.ID != nil && *t.ID == s.channel.ID {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	for what, call := range map[string]func() error{
		"the channel":  func() error { _, err := s.bob.Channel(ctx, s.channel.ID); return err },
		"its messages": func() error { _, err := s.bob.ListMessages(ctx, s.thread, bothy.MessageRange{}); return err },
		"writing": func() error {
			_, err := s.bob.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "x"})
			return err
		},
	} {
		if err := want(call(), api.ErrorCodeNotFound, ""); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	secret, err := s.owner.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "Without Bob."})
	if err != nil {
		return err
	}
	// What bob may still see comes behind it in the log, so by then the message would have come, too.
	user, err := s.owner.CreateSpace(ctx, api.CreateSpaceRequest{Name: "Open"})
	if err != nil {
		return err
	}
	_, err = s.owner.CreateGrant(ctx, api.CreateGrantRequest{
		Subject: api.SubjectInput{Kind: api.SubjectKindPrincipal, ID: s.bob.id}, Target: api.TargetInput{Kind: api.TargetKindSpace, ID: &user.ID}, Level: api.LevelRead,
	})
	if err != nil {
		return err
	}
	_, err = await(ctx, s.bob, gateway.AccessChanged, func(d *api.AccessChangedData) bool {
		for _, g := range d.Gained {
			if g.Target.ID != nil && *g.Target.ID == user.ID {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	if n := seen(s.bob, gateway.MessageCreated, func(d *api.MessageCreatedData) bool { return d.Message.ID == secret.ID }); n != 0 {
		return errors.New("the message reached who may not read it")
	}
	return nil
}

func (s *story) revoke(ctx context.Context) error {
	if err := s.owner.RevokeToken(ctx, s.agent.Token.ID); err != nil {
		return err
	}
	code, err := s.adapter.wait(ctx)
	if err != nil {
		return fmt.Errorf("the adapter: %w", err)
	}
	const refused = 3
	if code != refused {
		return fmt.Errorf("the adapter ended with %d instead of %d", code, refused)
	}
	return nil
}

func (s *story) endSession(ctx context.Context) error {
	if err := s.bob.RevokeSession(ctx, s.bob.session.State().SessionID); err != nil {
		return err
	}
	select {
	case err := <-s.bob.ended:
		if !errors.Is(err, gateway.ErrCredentials) {
			return fmt.Errorf("the gateway ended with: %w", orNone(err))
		}
		return nil
	case <-ctx.Done():
		return errors.New("the connection stays")
	}
}

func (s *story) stop(ctx context.Context) error {
	code, err := s.in.server.stop(ctx)
	if err != nil || code != 0 {
		return fmt.Errorf("exit code %d, %w", code, orNone(err))
	}
	s.in.server = nil
	return nil
}
