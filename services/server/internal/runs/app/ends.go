// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// ended settles what waited for a run that has just ended, and tells about the end.
func (s *Service) ended(ctx context.Context, r domain.Run, previous domain.State) error {
	open, err := s.d.Followups.Open(ctx, r.ID)
	if err != nil {
		return fmt.Errorf("read what waits for the run: %w", err)
	}
	r.FollowupsPending = 0
	if err := s.record(ctx, r, previous); err != nil {
		return err
	}
	if err := s.family(ctx, r); err != nil {
		return err
	}
	switch {
	case len(open) == 0:
		return nil
	case r.State == domain.Cancelled:
		// Stop means stop: nobody is told that an order was refused which she took back herself.
		told := r.EndReason != domain.ReasonRequested && r.EndReason != domain.ReasonCancelTimeout
		return s.drop(ctx, r, open, r.EndReason, told)
	default:
		return s.carry(ctx, r, open)
	}
}

// family stops what the run has begun, and hands its answer to the run that has begun it.
func (s *Service) family(ctx context.Context, r domain.Run) error {
	children, err := s.d.Runs.ActiveChildren(ctx, r.ID)
	if err != nil {
		return fmt.Errorf("read what the run has begun: %w", err)
	}
	if err := s.withdrawAll(ctx, children, domain.ReasonParentCancelled); err != nil {
		return err
	}
	if r.ParentRunID.IsZero() || r.OutputMessageID.IsZero() {
		return nil
	}
	answer, err := s.d.Messages.Get(ctx, r.OutputMessageID)
	if err != nil {
		return fmt.Errorf("read the answer of the run: %w", err)
	}
	parent, err := s.d.Runs.Lock(ctx, r.ParentRunID)
	if err != nil {
		return fmt.Errorf("lock the parent of the run: %w", err)
	}
	if !parent.State.Active() || parent.CancelRequestedAt != nil {
		return nil
	}
	f := Followup{AuthorID: r.AgentID, MessageID: answer.ID, Position: answer.ThreadSeq, Mode: domain.ModeQueue}
	return s.attach(ctx, parent, f)
}

func (s *Service) drop(ctx context.Context, r domain.Run, list []Followup, reason string, told bool) error {
	for _, f := range list {
		f.State = FollowupDropped
		if err := s.d.Followups.Save(ctx, f); err != nil {
			return fmt.Errorf("drop a follow-up: %w", err)
		}
		if !told {
			continue
		}
		if err := s.deny(ctx, f.MessageID, r.AgentID, r.ID, reason); err != nil {
			return err
		}
	}
	return nil
}

// deny notes on a message that it does not set the agent to work after all.
func (s *Service) deny(ctx context.Context, message, agent, run ids.ID, reason string) error {
	return s.amend(ctx, message, []messaging.TriggerOutcome{{AgentID: agent, Outcome: domain.OutcomeDenied, Reason: reason, RunID: run}})
}

// carry lets the oldest order that nobody took up begin the next run, with the others behind it.
func (s *Service) carry(ctx context.Context, r domain.Run, open []Followup) error {
	authors := []ids.ID{r.AgentID}
	for _, f := range open {
		authors = append(authors, f.AuthorID)
	}
	known, err := s.d.Agents.ByID(ctx, authors)
	if err != nil {
		return fmt.Errorf("read the agents of the run: %w", err)
	}
	// What other agents said to this run begins nothing: only people do.
	open, said := split(open, func(f Followup) bool { _, agent := known[f.AuthorID]; return !agent })
	if err := s.drop(ctx, r, said, "", false); err != nil {
		return err
	}
	if len(open) == 0 {
		return nil
	}
	channel, err := s.d.Structure.Channel(ctx, r.ChannelID)
	if err != nil {
		return fmt.Errorf("read the channel of the run: %w", err)
	}
	if channel.Archived || channel.ReadOnly {
		return s.drop(ctx, r, open, domain.ReasonChannelReadOnly, false)
	}
	for len(open) > 0 {
		first, rest := open[0], open[1:]
		reason, err := s.mayOrder(ctx, known[r.AgentID], first.AuthorID, r.ChannelID, r.Chain)
		if err != nil {
			return err
		}
		if reason != "" {
			if err := s.drop(ctx, r, open[:1], reason, true); err != nil {
				return err
			}
			open = rest
			continue
		}
		next, err := s.create(ctx, domain.NewRun{
			AgentID: r.AgentID, ThreadID: r.ThreadID, ChannelID: r.ChannelID, SpaceID: r.SpaceID, TriggerKind: domain.TriggerFollowup,
			TriggerMessageID: first.MessageID, TriggeredBy: first.AuthorID, BillingMode: known[r.AgentID].BillingMode, FollowupMode: domain.ModeQueue,
		}, rest)
		if err != nil {
			return err
		}
		for _, f := range open {
			f.State, f.CarriedRunID = FollowupCarried, next.ID
			if err := s.d.Followups.Save(ctx, f); err != nil {
				return fmt.Errorf("mark a follow-up as carried over: %w", err)
			}
		}
		return s.amend(ctx, first.MessageID, []messaging.TriggerOutcome{{AgentID: r.AgentID, Outcome: domain.OutcomeTriggered, RunID: next.ID}})
	}
	return nil
}

func split[T any](list []T, keep func(T) bool) (kept, rest []T) {
	for _, one := range list {
		if keep(one) {
			kept = append(kept, one)
		} else {
			rest = append(rest, one)
		}
	}
	return kept, rest
}

// mayOrder asks whether a person may have the agent work in a place at this moment: the
// agent, everybody above it in the chain and the person must all be allowed. It gives the
// first reason against.
func (s *Service) mayOrder(ctx context.Context, a agents.Agent, person, channel ids.ID, chain []ids.ID) (string, error) {
	if !a.Active {
		return domain.DeniedAgentDisabled, nil
	}
	for _, id := range append([]ids.ID{a.ID}, chain...) {
		standing, err := s.d.Rights.Standing(ctx, id, channel)
		if err != nil {
			return "", fmt.Errorf("read the rights of an agent: %w", err)
		}
		if !standing.Reads {
			return domain.DeniedAgentCannotRead, nil
		}
	}
	standing, err := s.d.Rights.Standing(ctx, person, channel)
	if err != nil {
		return "", fmt.Errorf("read the rights of the person: %w", err)
	}
	switch {
	case !standing.Orders:
		return domain.DeniedLevelInsufficient, nil
	case a.BillingMode == agents.BillingPersonal && a.HolderID != person:
		return domain.DeniedI1Personal, nil
	default:
		return "", nil
	}
}

// OnMessageDeleted takes back what the message ordered.
func (s *Service) OnMessageDeleted(ctx context.Context, e messaging.MessageDeleted) error {
	begun, err := s.d.Runs.ByMessage(ctx, e.MessageID)
	if err != nil {
		return fmt.Errorf("read the runs of the message: %w", err)
	}
	active, _ := split(begun, func(r domain.Run) bool { return r.State.Active() })
	if err := s.withdrawAll(ctx, active, domain.ReasonMessageDeleted); err != nil {
		return err
	}
	list, err := s.d.Followups.ByMessage(ctx, e.MessageID)
	if err != nil {
		return fmt.Errorf("read the follow-ups of the message: %w", err)
	}
	for _, f := range list {
		if !f.Open() {
			continue
		}
		r, err := s.d.Runs.Lock(ctx, f.RunID)
		if err != nil {
			return fmt.Errorf("lock the run of a follow-up: %w", err)
		}
		if err := s.drop(ctx, r, []Followup{f}, "", false); err != nil {
			return err
		}
		r.FollowupsPending = max(r.FollowupsPending-1, 0)
		r.DocVersion++
		if err := s.record(ctx, r, r.State); err != nil {
			return err
		}
	}
	return nil
}

// withdrawAll locks the runs in the order of their threads and withdraws those still active.
func (s *Service) withdrawAll(ctx context.Context, list []domain.Run, reason string) error {
	for _, found := range list {
		r, err := s.lock(ctx, found, true)
		if err != nil {
			return err
		}
		if err := s.withdraw(ctx, r, reason); err != nil {
			return err
		}
	}
	return nil
}

// OnAgentDisabled ends everything the agent does, at once.
func (s *Service) OnAgentDisabled(ctx context.Context, e agents.AgentDisabled) error {
	active, err := s.d.Runs.ActiveByAgent(ctx, e.AgentID)
	if err != nil {
		return fmt.Errorf("read the runs of the agent: %w", err)
	}
	for _, found := range active {
		r, err := s.lock(ctx, found, true)
		if err != nil {
			return err
		}
		previous := r.State
		if r.End(domain.Cancelled, domain.ByAgentDisabled, domain.ReasonAgentDisabled, txn.Current(ctx).Now()) != nil {
			continue // It has ended meanwhile.
		}
		if err := s.ended(ctx, r, previous); err != nil {
			return err
		}
	}
	return nil
}

// OnChannelArchived stops what agents do in a place that has become read-only.
func (s *Service) OnChannelArchived(ctx context.Context, e chat.ChannelArchived) error {
	if !e.Archived {
		return nil
	}
	const page = 200
	var after ids.ID
	for {
		active, err := s.d.Runs.ActiveByChannels(ctx, []ids.ID{e.ChannelID}, after, page)
		if err != nil {
			return fmt.Errorf("read the runs of the channel: %w", err)
		}
		if err := s.withdrawAll(ctx, active, domain.ReasonChannelReadOnly); err != nil || len(active) < page {
			return err
		}
		after = active[len(active)-1].ID
	}
}

// OnAccessChanged stops the runs whose person may no longer order or whose agent may no
// longer read.
func (s *Service) OnAccessChanged(ctx context.Context, e authorize.AccessChanged) error {
	var affected []ids.ID
	for _, p := range e.Principals {
		if len(p.Lost) > 0 || len(p.Changed) > 0 {
			affected = append(affected, p.PrincipalID)
		}
	}
	if len(affected) == 0 {
		return nil
	}
	active, err := s.d.Runs.ActiveByPrincipals(ctx, affected)
	if err != nil {
		return fmt.Errorf("read the runs of the affected: %w", err)
	}
	reason := domain.ReasonAccessRevoked
	if e.Action == authorize.ActionUserDisable {
		reason = domain.ReasonUserDisabled
	}
	for _, r := range active {
		known, err := s.d.Agents.ByID(ctx, []ids.ID{r.AgentID})
		if err != nil {
			return fmt.Errorf("read the agent of a run: %w", err)
		}
		denied, err := s.mayOrder(ctx, known[r.AgentID], r.TriggeredBy, r.ChannelID, r.Chain)
		if err != nil {
			return err
		}
		if denied == "" {
			continue
		}
		if err := s.withdrawAll(ctx, []domain.Run{r}, reason); err != nil {
			return err
		}
	}
	return nil
}
