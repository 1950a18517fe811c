// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/runs"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// Prepare implements runs.Delivery. Types without a prepared form go out as stored.
func (s *Service) Prepare(ctx context.Context, agent ids.ID, eventType string, eventID ids.ID, stored json.RawMessage) (runs.Prepared, error) {
	switch eventType {
	case "agent.invocation":
		return s.prepareInvocation(ctx, agent, eventID, stored)
	case "agent.followup":
		return s.prepareFollowup(ctx, agent, eventID, stored)
	default:
		return runs.Prepared{Payload: stored}, nil
	}
}

var refused = runs.Prepared{Refused: true}

// verdict is what the checks at the moment of delivery say against an order.
type verdict struct {
	// to is the state the run ends in; empty when nothing is against it.
	to domain.State
	// reason is the reason of the end, detail the code that people see beside it.
	reason, detail string
}

func (s *Service) prepareInvocation(ctx context.Context, agent, eventID ids.ID, stored json.RawMessage) (runs.Prepared, error) {
	var ref invocationRef
	if err := json.Unmarshal(stored, &ref); err != nil {
		return refused, fmt.Errorf("decode a stored invocation: %w", err)
	}
	r, err := s.d.Runs.ByID(ctx, ref.RunID)
	switch {
	case errs.Is(err, errs.CodeNotFound):
		return refused, nil
	case err != nil:
		return refused, fmt.Errorf("read the run of an invocation: %w", err)
	case !r.State.Active(), r.AgentID != agent:
		return refused, nil
	}
	i, a, against, err := s.judge(ctx, r)
	if err != nil {
		return refused, err
	}
	if against.to != "" {
		return refused, s.refuse(ctx, r, against)
	}
	i.Redelivery = r.DeliveredAt != nil
	if i.Run, err = s.delivered(ctx, r.ID); err != nil || !i.Run.State.Active() {
		return refused, err
	}
	if i.Followups, err = s.orders(ctx, r.ID); err != nil {
		return refused, err
	}
	if i.Token, err = s.sign(ctx, i.Run, a, eventID); err != nil {
		return refused, err
	}
	payload, err := json.Marshal(s.d.Present.Invocation(i))
	if err != nil {
		return refused, fmt.Errorf("encode an invocation: %w", err)
	}
	return runs.Prepared{Payload: payload}, nil
}

// judge reads what an order consists of and checks it under the rights of this moment.
func (s *Service) judge(ctx context.Context, r domain.Run) (i Invocation, a agents.Agent, v verdict, err error) {
	known, err := s.d.Agents.ByID(ctx, []ids.ID{r.AgentID})
	if err != nil {
		return i, a, v, fmt.Errorf("read the agent of the run: %w", err)
	}
	a = known[r.AgentID]
	if i.Thread, err = s.d.Threads.Info(ctx, r.ThreadID); err != nil {
		return i, a, v, fmt.Errorf("read the thread of the run: %w", err)
	}
	if i.Channel, err = s.d.Structure.Channel(ctx, i.Thread.ChannelID); err != nil {
		return i, a, v, fmt.Errorf("read the channel of the run: %w", err)
	}
	age := a.MaxTriggerAge
	if age == 0 {
		age = s.config.QueuedMaxAge
	}
	if r.State == domain.Queued && r.DeliveredAt == nil && s.d.Clock.Now().After(r.QueuedAt.Add(age)) {
		return i, a, verdict{domain.Failed, domain.ReasonExpired, domain.ReasonExpired}, nil
	}
	reason, err := s.mayOrder(ctx, a, r.TriggeredBy, i.Channel.ID, r.Chain)
	switch {
	case err != nil:
		return i, a, v, err
	case reason != "":
		return i, a, verdict{domain.Failed, domain.ReasonPolicyDenied, reason}, nil
	case i.Channel.Archived || i.Channel.ReadOnly:
		return i, a, verdict{domain.Failed, domain.ReasonPolicyDenied, domain.ReasonChannelReadOnly}, nil
	}
	if !r.TriggerMessageID.IsZero() {
		m, err := s.d.Messages.Get(ctx, r.TriggerMessageID)
		if err != nil && !errs.Is(err, errs.CodeNotFound) {
			return i, a, v, fmt.Errorf("read the message of the run: %w", err)
		}
		if err != nil || m.Deleted {
			return i, a, verdict{domain.Cancelled, domain.ReasonMessageDeleted, ""}, nil
		}
		i.Message = &OrderMessage{Message: m, Trust: domain.TrustOrder}
	}
	if backendMismatch(a) {
		return i, a, verdict{domain.Failed, domain.ReasonPolicyDenied, domain.DeniedBackendMismatch}, nil
	}
	return i, a, v, nil
}

// backendMismatch reports whether the adapter found something that would spend a person's
// plan for others, or a runtime that may touch more than was agreed.
func backendMismatch(a agents.Agent) bool {
	if a.Presence != "online" && a.Presence != "degraded" {
		return false
	}
	foreignPlan := a.ReportedBillingMode == agents.BillingPersonal && a.BillingMode != agents.BillingPersonal
	return foreignPlan || a.ReportedToolClass != "" && toolRank(a.ReportedToolClass) > toolRank(a.ToolClass)
}

// delivered notes the first delivery of a run and of everything that waits for it.
func (s *Service) delivered(ctx context.Context, id ids.ID) (r domain.Run, err error) {
	err = s.d.Units.Do(actor.With(ctx, actor.System()), func(ctx context.Context) error {
		if r, err = s.d.Runs.Lock(ctx, id); err != nil {
			return fmt.Errorf("lock the run: %w", err)
		}
		if !r.State.Active() {
			return nil
		}
		now := txn.Current(ctx).Now()
		if r.DeliveredAt == nil {
			r.DeliveredAt = &now
			if err := s.d.Runs.Save(ctx, r); err != nil {
				return fmt.Errorf("note the delivery: %w", err)
			}
		}
		if r.FollowupsPending == 0 {
			return nil
		}
		open, err := s.d.Followups.Open(ctx, id)
		if err != nil {
			return fmt.Errorf("read what waits for the run: %w", err)
		}
		for _, f := range open {
			if f.State != FollowupPending {
				continue
			}
			f.State, f.DeliveredAt = FollowupDelivered, &now
			if err := s.d.Followups.Save(ctx, f); err != nil {
				return fmt.Errorf("note the delivery of a follow-up: %w", err)
			}
		}
		return nil
	})
	return r, err
}

// orders reads the follow-ups that wait for a run with their messages.
func (s *Service) orders(ctx context.Context, run ids.ID) ([]OrderFollowup, error) {
	open, err := s.d.Followups.Open(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("read what waits for the run: %w", err)
	}
	out := make([]OrderFollowup, 0, len(open))
	for _, f := range open {
		m, err := s.d.Messages.Get(ctx, f.MessageID)
		if errs.Is(err, errs.CodeNotFound) || err == nil && m.Deleted {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the message of a follow-up: %w", err)
		}
		trust := domain.TrustOrder
		if m.Author.Kind == actor.KindAgent {
			trust = domain.TrustAgent
		}
		out = append(out, OrderFollowup{Followup: f, Message: OrderMessage{Message: m, Trust: trust}})
	}
	return out, nil
}

// refuse ends a run that must not be delivered, visibly.
func (s *Service) refuse(ctx context.Context, found domain.Run, v verdict) error {
	err := s.d.Units.Do(actor.With(ctx, actor.System()), func(ctx context.Context) error {
		r, err := s.lock(ctx, found, true)
		if err != nil {
			return err
		}
		previous := r.State
		if err := r.End(v.to, domain.ByDelivery, v.reason, txn.Current(ctx).Now()); err != nil {
			return nil //nolint:nilerr // It has ended meanwhile, so there is nothing to refuse.
		}
		r.ErrorCode = v.detail
		if err := s.ended(ctx, r, previous); err != nil {
			return err
		}
		if v.detail == "" || r.TriggerMessageID.IsZero() {
			return nil
		}
		return s.deny(ctx, r.TriggerMessageID, r.AgentID, r.ID, v.detail)
	})
	if err != nil {
		return fmt.Errorf("refuse the delivery of run %s: %w", found.ID, err)
	}
	if v.reason == domain.ReasonPolicyDenied {
		s.d.Audit.Denied(actor.With(ctx, actor.System()), auditing.Entry{
			Action: string(authorize.ActionAgentInvoke), Reason: v.detail, ResourceKind: "run", ResourceID: found.ID,
			SpaceID: found.SpaceID, ChannelID: found.ChannelID,
		})
	}
	return nil
}

func (s *Service) prepareFollowup(ctx context.Context, agent, eventID ids.ID, stored json.RawMessage) (runs.Prepared, error) {
	var ref followupRef
	if err := json.Unmarshal(stored, &ref); err != nil {
		return refused, fmt.Errorf("decode a stored follow-up: %w", err)
	}
	r, err := s.d.Runs.ByID(ctx, ref.RunID)
	switch {
	case errs.Is(err, errs.CodeNotFound):
		return refused, nil
	case err != nil:
		return refused, fmt.Errorf("read the run of a follow-up: %w", err)
	case !r.State.Active(), r.AgentID != agent, r.CancelRequestedAt != nil:
		return refused, nil
	}
	m, err := s.d.Messages.Get(ctx, ref.MessageID)
	if err != nil && !errs.Is(err, errs.CodeNotFound) {
		return refused, fmt.Errorf("read the message of a follow-up: %w", err)
	}
	if err != nil || m.Deleted {
		return refused, nil
	}
	known, err := s.d.Agents.ByID(ctx, []ids.ID{agent})
	if err != nil {
		return refused, fmt.Errorf("read the agent of the run: %w", err)
	}
	// What an agent says has no right of its own: the person at the root of the run lends it.
	person, trust := m.Author.ID, domain.TrustOrder
	if m.Author.Kind == actor.KindAgent {
		person, trust = r.TriggeredBy, domain.TrustAgent
	}
	reason, err := s.mayOrder(ctx, known[agent], person, r.ChannelID, r.Chain)
	if err != nil {
		return refused, err
	}
	if ok, err := s.deliverFollowup(ctx, r, ref, reason); err != nil || !ok {
		return refused, err
	}
	token, err := s.sign(ctx, r, known[agent], eventID)
	if err != nil {
		return refused, err
	}
	payload, err := json.Marshal(s.d.Present.Followup(FollowupOrder{
		RunID: r.ID, FollowupID: ids.Deref(ref.FollowupID), Correction: ref.Correction,
		Message: OrderMessage{Message: m, Trust: trust}, Token: token,
	}))
	if err != nil {
		return refused, fmt.Errorf("encode a follow-up: %w", err)
	}
	return runs.Prepared{Payload: payload}, nil
}

// deliverFollowup notes the delivery, or drops the follow-up for the reason. A correction
// leaves no trace.
func (s *Service) deliverFollowup(ctx context.Context, found domain.Run, ref followupRef, reason string) (ok bool, err error) {
	if ref.Correction || ref.FollowupID == nil {
		return reason == "", nil
	}
	err = s.d.Units.Do(actor.With(ctx, actor.System()), func(ctx context.Context) error {
		ok = false
		r, err := s.lock(ctx, found, true)
		if err != nil {
			return err
		}
		f, err := s.d.Followups.ByID(ctx, *ref.FollowupID)
		if err != nil {
			return fmt.Errorf("read the follow-up: %w", err)
		}
		if !f.Open() || !r.State.Active() {
			return nil
		}
		if reason != "" {
			r.FollowupsPending = max(r.FollowupsPending-1, 0)
			r.DocVersion++
			if err := s.drop(ctx, r, []Followup{f}, reason, true); err != nil {
				return err
			}
			return s.record(ctx, r, r.State)
		}
		ok = true
		if f.State == FollowupPending {
			now := txn.Current(ctx).Now()
			f.State, f.DeliveredAt = FollowupDelivered, &now
			return s.d.Followups.Save(ctx, f)
		}
		return nil
	})
	return ok, err
}

// RenewToken gives the agent a fresh token after the checks of a delivery. When they fail,
// the run is asked to stop.
func (s *Service) RenewToken(ctx context.Context, id ids.ID) (Token, error) {
	var (
		r      domain.Run
		a      agents.Agent
		denied bool
	)
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		found, err := s.own(ctx, authorize.ActionRunTokenRenew, id)
		if err != nil {
			return err
		}
		if !found.State.Active() {
			return conflict("run_ended", found)
		}
		var against verdict
		if _, a, against, err = s.judge(ctx, found); err != nil {
			return err
		}
		if denied = against.to != ""; denied {
			return s.revoke(ctx, found)
		}
		if r, err = s.delivered(ctx, id); err == nil && !r.State.Active() {
			err = conflict("run_ended", r)
		}
		return err
	})
	switch {
	case err != nil:
		return Token{}, err
	case denied:
		return Token{}, errs.Forbidden("policy_denied")
	default:
		return s.sign(ctx, r, a, ids.ID{})
	}
}

// revoke asks a run to stop in the name of the server, since it is no wish of the agent.
func (s *Service) revoke(ctx context.Context, found domain.Run) error {
	ctx = actor.With(ctx, actor.System())
	r, err := s.lock(ctx, found, true)
	if err != nil {
		return err
	}
	return s.withdraw(ctx, r, domain.ReasonAccessRevoked)
}
