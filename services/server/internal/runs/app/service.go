// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// Deps are the parts of the use cases.
type Deps struct {
	Config     Config
	Clock      clock.Clock
	Units      txn.UnitOfWork
	Authorizer authorize.Authorizer
	Rights     authorize.Rights
	Audit      auditing.Recorder
	Log        eventlog.Appender
	Publisher  eventlog.EphemeralPublisher
	Instance   instance.Instance
	Keys       instance.Keys
	Structure  chat.Structure
	Threads    chat.Threads
	Messages   messaging.Messages
	Agents     agents.Agents
	People     People
	Jobs       Jobs
	Runs       Repository
	Steps      StepRepository
	Followups  FollowupRepository
	Present    Presenter
}

// Service has the use cases of runs.
type Service struct {
	d      Deps
	config Config
	// instanceID is kept after the first read, as every request of an agent compares it.
	instanceID atomic.Pointer[ids.ID]
}

// New makes the use cases.
func New(d Deps) *Service { return &Service{d: d, config: d.Config} }

func resource(r domain.Run, channel ids.ID) authorize.Resource {
	return authorize.Resource{Kind: authorize.ResourceRun, ID: r.ID, ChannelID: channel, OwnerID: r.AgentID, Related: []ids.ID{r.TriggeredBy}}
}

// own loads a run for one of its agent's own actions. Another agent's run does not exist for
// the caller. The place is the one the run began in, as threads do not leave their channel.
func (s *Service) own(ctx context.Context, action authorize.Action, id ids.ID) (domain.Run, error) {
	r, err := s.d.Runs.ByID(ctx, id)
	if err != nil {
		err = fmt.Errorf("read the run: %w", err)
		if actor.From(ctx).Kind == actor.KindAgent {
			return r, err // An agent is told the same of the run of another, without a further step.
		}
		absent := authorize.Resource{Kind: authorize.ResourceRun, ID: id, ChannelID: id}
		return r, authorize.Absent(ctx, s.d.Authorizer, err, action, absent)
	}
	return r, s.owns(ctx, action, r)
}

func (s *Service) owns(ctx context.Context, action authorize.Action, r domain.Run) error {
	if a := actor.From(ctx); a.Kind == actor.KindAgent && a.ID != r.AgentID {
		return errs.NotFound()
	}
	return s.d.Authorizer.Authorize(ctx, action, resource(r, r.ChannelID))
}

// needToken refuses a request that does not show the invocation token of this very run.
func needToken(ctx context.Context, run ids.ID) error {
	acting := actor.From(ctx).ActingFor
	switch {
	case acting == nil:
		return errs.Forbidden("invocation_token_required")
	case acting.RunID != run:
		return errs.NotFound()
	default:
		return nil
	}
}

// lock takes thread and run in their order. A place that has become read-only lets runs end,
// so tolerant callers go on in one.
func (s *Service) lock(ctx context.Context, r domain.Run, tolerant bool) (domain.Run, error) {
	if _, err := s.d.Threads.Lock(ctx, r.ThreadID); err != nil && (!tolerant || !closed(err)) {
		return r, fmt.Errorf("lock the thread of the run: %w", err)
	}
	locked, err := s.d.Runs.Lock(ctx, r.ID)
	if err != nil {
		return r, fmt.Errorf("lock the run: %w", err)
	}
	return locked, nil
}

// closed reports whether an error says that nothing is written in a place any more. The lock
// is held all the same.
func closed(err error) bool {
	e := errs.As(err)
	return e.Code == errs.CodeChannelReadOnly || e.Code == errs.CodeForbidden && e.Reason == "target_archived"
}

func place(r domain.Run) eventlog.Place {
	return eventlog.Place{SpaceID: r.SpaceID, ChannelID: r.ChannelID, ThreadID: r.ThreadID}
}

// record saves a run and tells about its state.
func (s *Service) record(ctx context.Context, r domain.Run, previous domain.State) error {
	if err := s.d.Runs.Save(ctx, r); err != nil {
		return fmt.Errorf("save the run: %w", err)
	}
	return s.stateChanged(ctx, r, &previous)
}

func (s *Service) stateChanged(ctx context.Context, r domain.Run, previous *domain.State) error {
	return s.d.Log.Append(ctx, eventlog.Event{
		Type: "run.state_changed", Place: place(r), Resource: eventlog.Resource{Type: "run", ID: r.ID},
		Payload: s.d.Present.StateChanged(r, previous),
	})
}

// toAgent appends a personal event of the run's agent. Its payload holds IDs alone: text and
// token are added when it is delivered, under the rights of that moment.
func (s *Service) toAgent(ctx context.Context, r domain.Run, eventType string, payload any) error {
	return s.d.Log.Append(ctx, eventlog.Event{
		Type: eventType, Place: place(r), PrincipalID: r.AgentID, Resource: eventlog.Resource{Type: "run", ID: r.ID}, Payload: payload,
	})
}

// invocationRef and followupRef are what the log stores of an order.
type invocationRef struct {
	RunID     ids.ID `json:"run_id"`
	MessageID ids.ID `json:"message_id,omitzero"`
}

type followupRef struct {
	RunID      ids.ID  `json:"run_id"`
	FollowupID *ids.ID `json:"followup_id"`
	MessageID  ids.ID  `json:"message_id"`
	Correction bool    `json:"correction"`
}

// create queues a run: its place in the thread, its row, the order to the agent and the job
// that ends it when nobody takes it up.
func (s *Service) create(ctx context.Context, n domain.NewRun, followups []Followup) (domain.Run, error) {
	n.ID = ids.NewAt(txn.Current(ctx).Now())
	r := domain.Queue(n, txn.Current(ctx).Now())
	r.FollowupsPending = len(followups)
	anchor, err := s.d.Messages.Anchor(ctx, r.ThreadID, r.ID, r.AgentID)
	if err != nil {
		return r, fmt.Errorf("place the run in its thread: %w", err)
	}
	r.AnchorMessageID = anchor.ID
	if err := s.d.Runs.Insert(ctx, r); err != nil {
		return r, fmt.Errorf("insert the run: %w", err)
	}
	for _, f := range followups {
		f.ID, f.RunID, f.State, f.DeliveredAt = ids.NewAt(r.QueuedAt), r.ID, FollowupPending, nil
		if err := s.d.Followups.Insert(ctx, f); err != nil {
			return r, fmt.Errorf("carry a follow-up over: %w", err)
		}
	}
	if err := s.stateChanged(ctx, r, nil); err != nil {
		return r, err
	}
	if err := s.toAgent(ctx, r, "agent.invocation", invocationRef{RunID: r.ID, MessageID: r.TriggerMessageID}); err != nil {
		return r, err
	}
	if err := s.d.Jobs.QueuedExpiry(ctx, r.ID, r.QueuedAt.Add(s.config.QueuedMaxAge)); err != nil {
		return r, fmt.Errorf("put the expiry of the run off: %w", err)
	}
	return r, nil
}

// requested tells about a request to stop: people, the agent, and the job that ends the run
// when the agent does not.
func (s *Service) requested(ctx context.Context, r domain.Run) error {
	if err := s.record(ctx, r, r.State); err != nil {
		return err
	}
	deadline := r.CancelRequestedAt.Add(s.config.CancelGrace)
	if err := s.toAgent(ctx, r, "run.cancel_requested", s.d.Present.CancelRequested(r, deadline)); err != nil {
		return err
	}
	if err := s.d.Jobs.CancelTimeout(ctx, r.ID, deadline); err != nil {
		return fmt.Errorf("put the end of the grace off: %w", err)
	}
	return nil
}

// withdraw applies domain.Run.Withdraw to a run that is locked.
func (s *Service) withdraw(ctx context.Context, r domain.Run, reason string) error {
	previous := r.State
	again, err := r.Withdraw(reason, txn.Current(ctx).Now())
	switch {
	case errors.Is(err, domain.ErrEnded), err == nil && again:
		return nil
	case err != nil:
		return fmt.Errorf("withdraw run %s: %w", r.ID, err)
	case r.State.Active():
		return s.requested(ctx, r)
	default:
		return s.ended(ctx, r, previous)
	}
}

// conflict is the answer to an agent whose action the state of the run does not allow.
func conflict(reason string, r domain.Run) error {
	return errs.Conflict(reason, "The run does not allow this now.").With("state", string(r.State))
}
