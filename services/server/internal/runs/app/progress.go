// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/runs"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// Start is the input of Service.Start; nil members are absent.
type Start struct{ Model, Title *string }

// Started is a run that has just been taken up, with what waits for it.
type Started struct {
	Document
	Followups []Followup
}

// Document is a run with its steps.
type Document struct {
	Run   domain.Run
	Steps []domain.Step
}

const (
	maxModel    = 128
	maxTitle    = 200
	shownSteps  = 200
	recentSteps = 50
)

// Start lets the agent take a run up. Of two workers one wins; the other learns that it was
// started, and when.
func (s *Service) Start(ctx context.Context, id ids.ID, in Start) (Started, error) {
	var out Started
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		out = Started{}
		found, err := s.own(ctx, authorize.ActionRunStart, id)
		if err != nil {
			return err
		}
		if err := needToken(ctx, id); err != nil {
			return err
		}
		r, err := s.lock(ctx, found, true)
		if err != nil {
			return err
		}
		previous := r.State
		if err := s.take(&r, in, txn.Current(ctx)); err != nil {
			return err
		}
		if err := s.mayStart(ctx, r); err != nil {
			return err
		}
		if err := s.record(ctx, r, previous); err != nil {
			return err
		}
		out.Run = r
		if r.FollowupsPending > 0 {
			out.Followups, err = s.d.Followups.Open(ctx, id)
		}
		return err
	})
	return out, err
}

func (*Service) take(r *domain.Run, in Start, unit txn.Unit) error {
	err := r.Start(unit.Now())
	switch {
	case errors.Is(err, domain.ErrEnded):
		return conflict("run_ended", *r)
	case errors.Is(err, domain.ErrAlreadyStarted):
		e := errs.New(errs.CodeAlreadyStarted, "Another worker has taken the run up.").With("state", string(r.State))
		if r.StartedAt != nil {
			e = e.With("started_at", r.StartedAt.UTC())
		}
		return e
	case errors.Is(err, domain.ErrCancelRequested):
		return conflict("cancel_requested", *r)
	case err != nil:
		return err
	}
	if in.Title != nil {
		if utf8.RuneCountInString(*in.Title) > maxTitle || textcheck.Name(*in.Title) != nil {
			return errs.Invalid("/title", "invalid", "One line of at most 200 characters.")
		}
		r.Document.Title = *in.Title
	}
	if in.Model != nil {
		if utf8.RuneCountInString(*in.Model) > maxModel || textcheck.Name(*in.Model) != nil {
			return errs.Invalid("/model", "invalid", "At most 128 characters.")
		}
		r.Document.Model = *in.Model
	}
	return nil
}

// mayStart checks what the agent is configured to: how many runs at once and which models.
func (s *Service) mayStart(ctx context.Context, r domain.Run) error {
	known, err := s.d.Agents.ByID(ctx, []ids.ID{r.AgentID})
	if err != nil {
		return fmt.Errorf("read the agent of the run: %w", err)
	}
	a := known[r.AgentID]
	if m := r.Document.Model; m != "" && len(a.AllowedModels) > 0 && !slices.Contains(a.AllowedModels, m) {
		return errs.Conflict("model_not_allowed", "The agent may not use this model.")
	}
	under, err := s.d.Runs.StartedCount(ctx, r.AgentID)
	if err != nil {
		return fmt.Errorf("count the runs under way: %w", err)
	}
	if under >= a.MaxConcurrent {
		return errs.Conflict("concurrency_limit", "The agent works on as many runs as it may.").With("limit", a.MaxConcurrent)
	}
	return nil
}

// Update is the input of Service.Update.
type Update struct {
	BaseVersion int64
	Patch       domain.Patch
	Append      []domain.Append
	// Consumed are follow-ups that the agent has taken up.
	Consumed []ids.ID
	// Size is that of the whole request in bytes.
	Size int
}

// UpdateResult is what an agent learns from an update.
type UpdateResult struct {
	DocVersion       int64
	State            domain.State
	OutputLength     int
	CancelRequested  bool
	FollowupsPending int
}

// Update applies progress. It costs one small row: no durable event tells of a token.
func (s *Service) Update(ctx context.Context, id ids.ID, in Update) (UpdateResult, error) {
	if in.Size > s.config.PatchBytes {
		return UpdateResult{}, errs.New(errs.CodePayloadTooLarge, "Send the progress in several updates.").With("limit", s.config.PatchBytes)
	}
	var (
		r       domain.Run
		work    domain.Work
		changes domain.Changes
	)
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		var err error
		if r, err = s.d.Runs.Lock(ctx, id); err != nil {
			return fmt.Errorf("lock the run: %w", err)
		}
		if err := s.owns(ctx, authorize.ActionRunUpdate, r); err != nil {
			return err
		}
		if err := needToken(ctx, id); err != nil {
			return err
		}
		switch {
		case !r.State.Active():
			return conflict("run_ended", r)
		case r.State == domain.Queued:
			return conflict("not_started", r)
		}
		if work, changes, err = s.apply(ctx, &r, in.BaseVersion, in.Patch, in.Append); err != nil {
			return err
		}
		taken, err := s.consume(ctx, &r, in.Consumed)
		if err != nil {
			return err
		}
		if err := s.save(ctx, r, work, changes); err != nil || !taken {
			return err
		}
		return s.stateChanged(ctx, r, &r.State)
	}, txn.WithWriteInMaintenance())
	if err != nil {
		return UpdateResult{}, err
	}
	if err := s.tell(ctx, in.BaseVersion, work, changes); err != nil {
		return UpdateResult{}, err
	}
	return UpdateResult{
		DocVersion: r.DocVersion, State: r.State, OutputLength: r.OutputLength, CancelRequested: r.CancelRequestedAt != nil,
		FollowupsPending: r.FollowupsPending,
	}, nil
}

// apply checks the version and applies a patch and appends to a locked run.
func (s *Service) apply(ctx context.Context, r *domain.Run, base int64, p domain.Patch, list []domain.Append) (domain.Work, domain.Changes, error) {
	w := domain.Work{
		Run: r, Now: txn.Current(ctx).Now(),
		Limits: domain.Limits{Output: s.config.OutputBytes, Document: s.config.DocumentBytes, Steps: s.config.MaxSteps},
	}
	if !r.CheckBase(base) {
		return w, domain.Changes{}, versionConflict(*r, "The run has changed; begin from its version.")
	}
	if keys := domain.TouchedSteps(p, list); len(keys) > 0 {
		var err error
		if w.Steps, w.StepCount, err = s.d.Steps.ByKeys(ctx, r.ID, keys); err != nil {
			return w, domain.Changes{}, fmt.Errorf("read the steps: %w", err)
		}
	}
	c, err := w.Apply(p, list)
	var offset *domain.OffsetError
	var size *domain.SizeError
	switch {
	case errors.As(err, &offset):
		return w, c, versionConflict(*r, "The text does not continue where the run ends.").With("target", offset.Target).With("length", offset.Length)
	case errors.As(err, &size):
		return w, c, errs.New(errs.CodePayloadTooLarge, "Put the rest in a file: "+size.What+" is full.")
	default:
		return w, c, err
	}
}

func versionConflict(r domain.Run, message string) *errs.Error {
	return errs.New(errs.CodeVersionConflict, message).With("doc_version", r.DocVersion).With("state", string(r.State)).With("output_length", r.OutputLength)
}

func (s *Service) save(ctx context.Context, r domain.Run, w domain.Work, c domain.Changes) error {
	for _, key := range domain.ChangedSteps(c) {
		if err := s.d.Steps.Save(ctx, r.ID, *w.Steps[key]); err != nil {
			return fmt.Errorf("save a step: %w", err)
		}
	}
	if domain.OutputChanged(c) {
		if err := s.d.Runs.SaveOutput(ctx, r); err != nil {
			return fmt.Errorf("save the output: %w", err)
		}
	}
	if err := s.d.Runs.Save(ctx, r); err != nil {
		return fmt.Errorf("save the run: %w", err)
	}
	return nil
}

// consume marks follow-ups as taken up; ones that are settled already are passed over, so
// that a repeated update is harmless.
func (s *Service) consume(ctx context.Context, r *domain.Run, list []ids.ID) (taken bool, err error) {
	if len(list) == 0 {
		return false, nil
	}
	open, err := s.d.Followups.Open(ctx, r.ID)
	if err != nil {
		return false, fmt.Errorf("read what waits for the run: %w", err)
	}
	now := txn.Current(ctx).Now()
	for _, f := range open {
		if !slices.Contains(list, f.ID) {
			continue
		}
		f.State, f.ConsumedAt = FollowupConsumed, &now
		if err := s.d.Followups.Save(ctx, f); err != nil {
			return false, fmt.Errorf("note that a follow-up was taken up: %w", err)
		}
		r.FollowupsPending = max(r.FollowupsPending-1, 0)
		taken = true
	}
	return taken, nil
}

// tell lets those who look at the thread follow the progress.
func (s *Service) tell(ctx context.Context, base int64, w domain.Work, c domain.Changes) error {
	patch, err := s.d.Present.Patch(w, c)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	out := runs.Patch{Version: w.Run.DocVersion, Patch: patch}
	for _, a := range c.Appended {
		out.Append = append(out.Append, runs.Append{Target: a.Target, Offset: a.Offset, Text: a.Text})
	}
	s.publish(ctx, *w.Run, min(base, w.Run.DocVersion-1), out)
	return nil
}

func (s *Service) publish(ctx context.Context, r domain.Run, base int64, p runs.Patch) {
	who := eventlog.Actor{ID: r.AgentID, Kind: string(actor.KindAgent), ActingFor: r.TriggeredBy}
	s.d.Publisher.Publish(ctx, eventlog.Ephemeral{
		Type: "run.updated", Place: place(r), Actor: who, OccurredAt: s.d.Clock.Now(),
		Payload: runs.Updated{RunID: r.ID, ThreadID: r.ThreadID, BaseVersion: base, Version: p.Version, Patches: []runs.Patch{p}},
	})
}
