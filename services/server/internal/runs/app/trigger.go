// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// order is a message that may set agents to work.
type order struct {
	message    messaging.Message
	spaceID    ids.ID
	candidates []ids.ID
	// off: the channel sets no agent to work, so whoever is mentioned learns why.
	off bool
	// by is whose right counts; parent is set when an agent orders.
	by       ids.ID
	parent   *domain.Run
	chaining bool
}

// OnMessagePosted decides which agents a new message sets to work, in the transaction of the
// message. A message that concerns no agent costs no statement.
func (s *Service) OnMessagePosted(ctx context.Context, e messaging.MessagePosted) error {
	if e.SuppressTrigger {
		return nil
	}
	switch e.Message.Author.Kind {
	case actor.KindPerson:
		return s.fromPerson(ctx, e)
	case actor.KindAgent:
		return s.fromAgent(ctx, e)
	default:
		return nil
	}
}

func (s *Service) fromPerson(ctx context.Context, e messaging.MessagePosted) error {
	o := order{message: e.Message, spaceID: e.SpaceID, by: e.Message.Author.ID, off: e.TriggerRule == chat.TriggerOff}
	var repliedTo, operator ids.ID
	if !o.off {
		if e.TriggerRule == chat.TriggerAll {
			operator = e.OperatorID
		}
		if !e.Message.ReplyToID.IsZero() {
			target, err := s.d.Messages.Get(ctx, e.Message.ReplyToID)
			if err != nil {
				return fmt.Errorf("read the message that is replied to: %w", err)
			}
			if target.Author.Kind == actor.KindAgent {
				repliedTo = target.Author.ID
			}
		}
	}
	o.candidates = domain.Candidates(e.Mentioned, repliedTo, operator)
	return s.decide(ctx, o)
}

// fromAgent lets an agent set others to work only under the token of a run of its own, so
// that a person stands at the root of everything.
func (s *Service) fromAgent(ctx context.Context, e messaging.MessagePosted) error {
	acting := actor.From(ctx).ActingFor
	if acting == nil || len(e.Mentioned) == 0 {
		return nil
	}
	parent, err := s.d.Runs.ByID(ctx, acting.RunID)
	if err != nil {
		return fmt.Errorf("read the run the agent acts for: %w", err)
	}
	if parent.AgentID != e.Message.Author.ID || !parent.State.Active() {
		return nil
	}
	return s.decide(ctx, order{
		message: e.Message, spaceID: e.SpaceID, by: parent.TriggeredBy, parent: &parent, chaining: e.AgentChaining,
		off: e.TriggerRule == chat.TriggerOff, candidates: domain.Candidates(e.Mentioned, ids.ID{}, ids.ID{}),
	})
}

// OnMessageEdited lets an edit of the author that adds a mention soon after posting count as
// an order, and hands an agent the new text of an order it already works on.
func (s *Service) OnMessageEdited(ctx context.Context, e messaging.MessageEdited) error {
	m := e.Message
	if m.Author.Kind != actor.KindPerson || actor.From(ctx).ID != m.Author.ID {
		return nil
	}
	if m.TriggerState == messaging.TriggerTriggered || m.TriggerState == messaging.TriggerFollowup {
		if err := s.correct(ctx, m); err != nil {
			return err
		}
	}
	if len(e.Added) == 0 || txn.Current(ctx).Now().After(m.CreatedAt.Add(s.config.EditTriggerWindow)) {
		return nil
	}
	channel, err := s.d.Structure.Channel(ctx, m.ChannelID)
	if err != nil {
		return fmt.Errorf("read the channel of the message: %w", err)
	}
	return s.decide(ctx, order{
		message: m, spaceID: e.SpaceID, by: m.Author.ID, off: channel.TriggerRule == chat.TriggerOff,
		candidates: domain.Candidates(e.Added, ids.ID{}, ids.ID{}),
	})
}

// correct sends the new text of an order to the agents that have received the old one.
func (s *Service) correct(ctx context.Context, m messaging.Message) error {
	begun, err := s.d.Runs.ByMessage(ctx, m.ID)
	if err != nil {
		return fmt.Errorf("read the runs of the message: %w", err)
	}
	for _, r := range begun {
		if r.DeliveredAt == nil || !r.State.Active() {
			continue
		}
		if err := s.toAgent(ctx, r, "agent.followup", followupRef{RunID: r.ID, MessageID: m.ID, Correction: true}); err != nil {
			return err
		}
	}
	list, err := s.d.Followups.ByMessage(ctx, m.ID)
	if err != nil {
		return fmt.Errorf("read the follow-ups of the message: %w", err)
	}
	for _, f := range list {
		if f.DeliveredAt == nil || f.State == FollowupDropped || f.State == FollowupCarried {
			continue
		}
		r, err := s.d.Runs.ByID(ctx, f.RunID)
		if err != nil {
			return fmt.Errorf("read the run of a follow-up: %w", err)
		}
		if !r.State.Active() {
			continue
		}
		ref := followupRef{RunID: r.ID, FollowupID: &f.ID, MessageID: m.ID, Correction: true}
		if err := s.toAgent(ctx, r, "agent.followup", ref); err != nil {
			return err
		}
	}
	return nil
}

// decide judges the candidates in their order and notes on the message what became of it.
func (s *Service) decide(ctx context.Context, o order) error {
	if len(o.candidates) == 0 {
		return nil
	}
	known, err := s.d.Agents.ByID(ctx, o.candidates)
	if err != nil {
		return fmt.Errorf("read the agents that are named: %w", err)
	}
	list := slices.DeleteFunc(slices.Clone(o.candidates), func(id ids.ID) bool { _, is := known[id]; return !is })
	if len(list) == 0 {
		return nil
	}
	outcomes, news, err := s.outcomes(ctx, o, list, known)
	if err != nil || !news {
		return err
	}
	if o.message.TriggerState == "" || o.message.TriggerState == messaging.TriggerNone {
		return s.note(ctx, o.message.ID, outcomes)
	}
	return s.amend(ctx, o.message.ID, outcomes)
}

// note writes down what became of a message for every agent it concerns.
func (s *Service) note(ctx context.Context, message ids.ID, outcomes []messaging.TriggerOutcome) error {
	words := make([]string, len(outcomes))
	for i, out := range outcomes {
		words[i] = out.Outcome
	}
	err := s.d.Messages.SetTriggerState(ctx, message, domain.Overall(words), outcomes)
	if err != nil && !errs.Is(err, errs.CodeMessageDeleted) && !errs.Is(err, errs.CodeNotFound) {
		return fmt.Errorf("note what became of the message: %w", err)
	}
	return nil
}

// amend writes outcomes down beside those of the other agents that the message has set to
// work before.
func (s *Service) amend(ctx context.Context, message ids.ID, outcomes []messaging.TriggerOutcome) error {
	known := func(agent ids.ID) bool {
		return slices.ContainsFunc(outcomes, func(o messaging.TriggerOutcome) bool { return o.AgentID == agent })
	}
	begun, err := s.d.Runs.ByMessage(ctx, message)
	if err != nil {
		return fmt.Errorf("read the runs of the message: %w", err)
	}
	for _, r := range begun {
		if known(r.AgentID) {
			continue
		}
		out := messaging.TriggerOutcome{AgentID: r.AgentID, Outcome: domain.OutcomeTriggered, RunID: r.ID}
		if r.EndReason == domain.ReasonPolicyDenied || r.EndReason == domain.ReasonExpired {
			out.Outcome, out.Reason = domain.OutcomeDenied, r.ErrorCode
		}
		outcomes = append(outcomes, out)
	}
	followed, err := s.d.Followups.ByMessage(ctx, message)
	if err != nil {
		return fmt.Errorf("read the follow-ups of the message: %w", err)
	}
	for _, f := range followed {
		r, err := s.d.Runs.ByID(ctx, f.RunID)
		if err != nil {
			return fmt.Errorf("read the run of a follow-up: %w", err)
		}
		if !known(r.AgentID) && f.State != FollowupDropped && f.State != FollowupCarried {
			outcomes = append(outcomes, messaging.TriggerOutcome{AgentID: r.AgentID, Outcome: domain.OutcomeFollowup, RunID: r.ID})
		}
	}
	return s.note(ctx, message, outcomes)
}

func (s *Service) outcomes(ctx context.Context, o order, list []ids.ID, known map[ids.ID]agents.Agent) (out []messaging.TriggerOutcome, news bool, err error) {
	if o.off {
		for _, id := range list {
			out = append(out, messaging.TriggerOutcome{AgentID: id, Outcome: domain.OutcomeDenied, Reason: domain.DeniedTriggerOff})
		}
		return out, true, nil
	}
	met, err := s.meet(ctx, o, list)
	if err != nil {
		return nil, false, err
	}
	for i, id := range list {
		if standing, ok := met.standing[id]; ok {
			out = append(out, standing)
			continue
		}
		news = true
		outcome := messaging.TriggerOutcome{AgentID: id, Outcome: domain.OutcomeDenied, Reason: domain.DeniedTooManyAgents}
		if i < s.config.MaxAgents {
			if outcome, err = s.one(ctx, o, known[id], met); err != nil {
				return nil, false, err
			}
		}
		out = append(out, outcome)
	}
	return out, news, nil
}

// meeting is what an order meets: runs under way, outcomes of an earlier time, rights.
type meeting struct {
	active   map[ids.ID]domain.Run
	standing map[ids.ID]messaging.TriggerOutcome
	queued   map[ids.ID]int
	mayOrder bool
}

func (s *Service) meet(ctx context.Context, o order, list []ids.ID) (meeting, error) {
	m := meeting{active: map[ids.ID]domain.Run{}, standing: map[ids.ID]messaging.TriggerOutcome{}}
	found, err := s.d.Runs.ForTrigger(ctx, list, o.message.ThreadID, o.message.ID)
	if err != nil {
		return m, fmt.Errorf("read the runs the message meets: %w", err)
	}
	for _, r := range found {
		if r.TriggerMessageID == o.message.ID {
			m.standing[r.AgentID] = messaging.TriggerOutcome{AgentID: r.AgentID, Outcome: domain.OutcomeTriggered, RunID: r.ID}
		}
		if r.State.Active() {
			m.active[r.AgentID] = r
		}
	}
	if len(m.active) > 0 {
		followups, err := s.d.Followups.ByMessage(ctx, o.message.ID)
		if err != nil {
			return m, fmt.Errorf("read the follow-ups of the message: %w", err)
		}
		for agent, r := range m.active {
			if slices.ContainsFunc(followups, func(f Followup) bool { return f.RunID == r.ID }) {
				m.standing[agent] = messaging.TriggerOutcome{AgentID: agent, Outcome: domain.OutcomeFollowup, RunID: r.ID}
			}
		}
	}
	if m.queued, err = s.d.Runs.QueuedCounts(ctx, list); err != nil {
		return m, fmt.Errorf("count what waits for the agents: %w", err)
	}
	standing, err := s.d.Rights.Standing(ctx, o.by, o.message.ChannelID)
	if err != nil {
		return m, fmt.Errorf("read the rights of the author: %w", err)
	}
	m.mayOrder = standing.Orders
	return m, nil
}

func (s *Service) one(ctx context.Context, o order, a agents.Agent, m meeting) (messaging.TriggerOutcome, error) {
	denied := func(reason string) (messaging.TriggerOutcome, error) {
		return messaging.TriggerOutcome{AgentID: a.ID, Outcome: domain.OutcomeDenied, Reason: reason}, nil
	}
	if o.parent != nil {
		reason, err := s.denyChain(ctx, o, a)
		if err != nil || reason != "" {
			out, _ := denied(reason)
			return out, err
		}
	}
	standing, err := s.d.Rights.Standing(ctx, a.ID, o.message.ChannelID)
	if err != nil {
		return messaging.TriggerOutcome{}, fmt.Errorf("read the rights of the agent: %w", err)
	}
	facts := domain.Facts{
		Active: a.Active, CanRead: standing.Reads, MayOrder: m.mayOrder,
		Personal: a.BillingMode == agents.BillingPersonal, Holder: a.HolderID == o.by, MaxQueued: s.config.MaxQueued, Queued: m.queued[a.ID],
	}
	active, under := m.active[a.ID]
	if under {
		facts.Queued = 0 // A follow-up does not make the queue longer.
	}
	if reason := domain.Deny(facts); reason != "" {
		return denied(reason)
	}
	if under {
		return s.followUp(ctx, o, a, active)
	}
	kind := domain.TriggerMessage
	if o.parent != nil {
		kind = domain.TriggerChain
	}
	r, err := s.create(ctx, domain.NewRun{
		AgentID: a.ID, ThreadID: o.message.ThreadID, ChannelID: o.message.ChannelID, SpaceID: o.spaceID, TriggerKind: kind,
		TriggerMessageID: o.message.ID, TriggeredBy: o.by, BillingMode: a.BillingMode, FollowupMode: domain.ModeQueue, Parent: o.parent,
	}, nil)
	return messaging.TriggerOutcome{AgentID: a.ID, Outcome: domain.OutcomeTriggered, RunID: r.ID}, err
}

func (s *Service) denyChain(ctx context.Context, o order, target agents.Agent) (string, error) {
	p := o.parent
	children, ofRoot, err := s.d.Runs.ChainCount(ctx, p.ID, p.RootRunID)
	if err != nil {
		return "", fmt.Errorf("count the runs of the chain: %w", err)
	}
	callers, err := s.d.Agents.ByID(ctx, []ids.ID{p.AgentID})
	if err != nil {
		return "", fmt.Errorf("read the agent that orders: %w", err)
	}
	return domain.DenyChain(domain.ChainFacts{
		Allowed: o.chaining, Depth: p.ChainDepth, MaxDepth: s.config.MaxChainDepth, Children: children, MaxChild: s.config.MaxChildren,
		RunsOfRoot: ofRoot, MaxRuns: s.config.MaxChainRuns, Self: target.ID == p.AgentID, InChain: slices.Contains(p.Chain, target.ID),
		TargetRank: toolRank(target.ToolClass), OwnRank: toolRank(callers[p.AgentID].ToolClass), ParentStopsOrStopped: p.CancelRequestedAt != nil,
	}), nil
}

// toolRank orders what runtimes may touch; an unknown word counts as nothing.
func toolRank(class string) int { return slices.Index([]string{"chat", "sandboxed", "host"}, class) }

// followUp hands an order to the run that is under way instead of beginning a second one.
func (s *Service) followUp(ctx context.Context, o order, a agents.Agent, active domain.Run) (messaging.TriggerOutcome, error) {
	out := messaging.TriggerOutcome{AgentID: a.ID, Outcome: domain.OutcomeFollowup, RunID: active.ID}
	r, err := s.d.Runs.Lock(ctx, active.ID)
	if err != nil {
		return out, fmt.Errorf("lock the run: %w", err)
	}
	if r.CancelRequestedAt != nil {
		return messaging.TriggerOutcome{AgentID: a.ID, Outcome: domain.OutcomeDenied, Reason: domain.DeniedStopping, RunID: r.ID}, nil
	}
	f := Followup{AuthorID: o.message.Author.ID, MessageID: o.message.ID, Position: o.message.ThreadSeq, Mode: domain.ModeQueue}
	if a.SteersFollowups && r.State.Started() {
		f.Mode = domain.ModeSteer
	}
	return out, s.attach(ctx, r, f)
}

// attach adds a follow-up to a run that is locked and active.
func (s *Service) attach(ctx context.Context, r domain.Run, f Followup) error {
	now := txn.Current(ctx).Now()
	f.ID, f.RunID, f.State, f.CreatedAt = ids.NewAt(now), r.ID, FollowupPending, now
	if err := s.d.Followups.Insert(ctx, f); err != nil {
		return fmt.Errorf("insert the follow-up: %w", err)
	}
	r.FollowupsPending++
	r.FollowupMode = f.Mode
	r.DocVersion++
	if err := s.record(ctx, r, r.State); err != nil {
		return err
	}
	if r.DeliveredAt == nil {
		return nil // It comes with the order itself.
	}
	return s.toAgent(ctx, r, "agent.followup", followupRef{RunID: r.ID, FollowupID: &f.ID, MessageID: f.MessageID})
}
