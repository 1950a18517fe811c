// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/runs"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// The jobs are safe to run again: each decides on the locked row.

// ExpireQueued ends a run that nobody took up. When it is not due, it puts itself off.
func (s *Service) ExpireQueued(ctx context.Context, id ids.ID) error {
	return s.job(ctx, id, func(ctx context.Context, r domain.Run) error {
		previous := r.State
		err := r.Expire(s.config.QueuedMaxAge, txn.Current(ctx).Now())
		if errors.Is(err, domain.ErrNotDue) {
			return s.d.Jobs.QueuedExpiry(ctx, r.ID, r.QueuedAt.Add(s.config.QueuedMaxAge))
		}
		if err != nil {
			return nil //nolint:nilerr // It was taken up or has ended, so nothing expires.
		}
		r.ErrorCode = domain.ReasonAgentUnavailable
		return s.ended(ctx, r, previous)
	})
}

// TimeOutCancel ends a run whose agent did not stop within the grace.
func (s *Service) TimeOutCancel(ctx context.Context, id ids.ID) error {
	return s.job(ctx, id, func(ctx context.Context, r domain.Run) error {
		previous := r.State
		err := r.TimeOutCancel(s.config.CancelGrace, txn.Current(ctx).Now())
		if errors.Is(err, domain.ErrNotDue) && r.CancelRequestedAt != nil {
			return s.d.Jobs.CancelTimeout(ctx, r.ID, r.CancelRequestedAt.Add(s.config.CancelGrace))
		}
		if err != nil {
			return nil //nolint:nilerr // It has ended or was never asked to stop.
		}
		return s.ended(ctx, r, previous)
	}, txn.WithWriteInMaintenance())
}

func (s *Service) job(ctx context.Context, id ids.ID, fn func(context.Context, domain.Run) error, opts ...txn.Option) error {
	return s.d.Units.Do(actor.With(ctx, actor.System()), func(ctx context.Context) error {
		found, err := s.d.Runs.ByID(ctx, id)
		if errs.Is(err, errs.CodeNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the run: %w", err)
		}
		r, err := s.lock(ctx, found, true)
		if err != nil {
			return err
		}
		return fn(ctx, r)
	}, opts...)
}

// stallBatch bounds one round of the stall check; the longest silent runs come first.
const stallBatch = 500

// CheckStalls looks at every run under way: it ends those whose agent is gone or has
// forgotten them and marks those that have been silent for long.
func (s *Service) CheckStalls(ctx context.Context) error {
	list, err := s.d.Runs.Started(ctx, stallBatch)
	if err != nil {
		return fmt.Errorf("list the runs under way: %w", err)
	}
	var failed []error
	for _, id := range list {
		if err := s.checkStall(ctx, id); err != nil {
			failed = append(failed, fmt.Errorf("check run %s: %w", id, err))
		}
	}
	return errors.Join(failed...)
}

func (s *Service) checkStall(ctx context.Context, id ids.ID) error {
	var marked *domain.Run
	err := s.job(ctx, id, func(ctx context.Context, r domain.Run) error {
		marked = nil
		known, err := s.d.Agents.ByID(ctx, []ids.ID{r.AgentID})
		if err != nil {
			return fmt.Errorf("read the agent of the run: %w", err)
		}
		previous := r.State
		ended, mark := r.CheckStall(health(known[r.AgentID], r.ID), domain.StallTimes{
			PresenceTimeout: s.config.PresenceTimeout, PersistInterval: s.config.PersistInterval,
			InterruptGrace: s.config.InterruptGrace, StallAfter: s.config.StallAfter,
		}, txn.Current(ctx).Now())
		switch {
		case ended:
			return s.ended(ctx, r, previous)
		case mark:
			marked = &r
			return s.d.Runs.Save(ctx, r)
		default:
			return nil
		}
	})
	if err != nil || marked == nil {
		return err
	}
	patch, err := s.d.Present.Marked(*marked)
	if err != nil {
		return fmt.Errorf("encode the mark: %w", err)
	}
	s.publish(ctx, *marked, marked.DocVersion-1, runs.Patch{Version: marked.DocVersion, Patch: patch})
	return nil
}

func health(a agents.Agent, run ids.ID) domain.Health {
	h := domain.Health{LastHeartbeatAt: a.LastHeartbeatAt, Live: a.Presence == "online" || a.Presence == "degraded", Reported: a.ActiveRuns != nil}
	for _, id := range a.ActiveRuns {
		h.Holds = h.Holds || id == run
	}
	return h
}
