// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// Answer is the message that a run ends with.
type Answer struct {
	Content string
	// ClientMsgID makes a repeated request find the message it has made.
	ClientMsgID ids.ID
}

// Finish is the input of Service.Finish.
type Finish struct {
	State  domain.State
	Reason string
	// BaseVersion is nil without patch and append.
	BaseVersion             *int64
	Patch                   domain.Patch
	HasPatch                bool
	Append                  []domain.Append
	Output                  *Answer
	ErrorCode, ErrorMessage string
	// Usage is the final count of tokens; it needs no version, as counts only replace counts.
	Usage map[string]domain.UsagePatch
}

const (
	maxErrorCode    = 64
	maxErrorMessage = 1000
	cutNote         = "\n\n… (the rest stays in the run)"
)

// Finish ends a run. The answer is written in the transaction of the end, so there is one
// exactly when the run says so.
func (s *Service) Finish(ctx context.Context, id ids.ID, in Finish) (Document, error) {
	if err := s.checkFinish(in); err != nil {
		return Document{}, err
	}
	var (
		work    domain.Work
		changes domain.Changes
		r       domain.Run
	)
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		work, changes = domain.Work{}, domain.Changes{}
		found, err := s.mayFinish(ctx, id, in)
		if err != nil {
			return err
		}
		if r, err = s.lock(ctx, found, in.Output == nil && in.State != domain.Completed); err != nil {
			return err
		}
		if !r.State.Active() {
			return s.afterEnd(ctx, &r, in)
		}
		if r.State == domain.Queued && (in.HasPatch || len(in.Append) > 0) {
			return conflict("not_started", r)
		}
		if in.BaseVersion != nil {
			if work, changes, err = s.apply(ctx, &r, *in.BaseVersion, in.Patch, in.Append); err != nil {
				return err
			}
			if err := s.save(ctx, r, work, changes); err != nil {
				return err
			}
		}
		if r.State.Started() && len(in.Usage) > 0 {
			if _, _, err := s.apply(ctx, &r, r.DocVersion, domain.Patch{Usage: in.Usage}, nil); err != nil {
				return err
			}
		}
		return s.finish(ctx, &r, in)
	}, txn.WithWriteInMaintenance())
	if err != nil {
		return Document{}, err
	}
	if changes.Any() {
		// The patch is of the version before the end, which its own event tells.
		told := r
		told.DocVersion, work.Run = r.AgentDocVersion, &told
		if err := s.tell(ctx, *in.BaseVersion, work, changes); err != nil {
			return Document{}, err
		}
	}
	return s.document(ctx, r, shownSteps)
}

// mayFinish authorizes. A token that was refused or has expired must not keep a run from
// ending, so an end that brings nothing along needs none.
func (s *Service) mayFinish(ctx context.Context, id ids.ID, in Finish) (domain.Run, error) {
	r, err := s.own(ctx, authorize.ActionRunFinish, id)
	if err != nil {
		return r, err
	}
	bare := in.State != domain.Completed && in.Output == nil && !in.HasPatch && len(in.Append) == 0
	if bare && actor.From(ctx).ActingFor == nil {
		return r, nil
	}
	return r, needToken(ctx, id)
}

func (s *Service) checkFinish(in Finish) error {
	var faults errs.Validation
	if (in.HasPatch || len(in.Append) > 0) && in.BaseVersion == nil {
		faults.Add("/base_version", "required", "A patch or append names the version it was made from.")
	}
	if utf8.RuneCountInString(in.ErrorCode) > maxErrorCode || utf8.RuneCountInString(in.ErrorMessage) > maxErrorMessage ||
		textcheck.Body(in.ErrorCode) != nil || textcheck.Body(in.ErrorMessage) != nil {
		faults.Add("/error", "invalid", "A code of at most 64 and a message of at most 1000 characters.")
	}
	if err := faults.Err(); err != nil {
		return err
	}
	if in.Output != nil && len(in.Output.Content) > s.config.MessageBytes {
		return errs.New(errs.CodePayloadTooLarge, "The answer is longer than a message may be.").With("limit", s.config.MessageBytes)
	}
	return nil
}

func (s *Service) finish(ctx context.Context, r *domain.Run, in Finish) error {
	previous := r.State
	reason := in.Reason
	if reason == "" {
		reason = domain.DefaultReason(previous, in.State)
	}
	// The answer comes before the end: what it orders stands under a run that is still active.
	if err := s.answer(ctx, r, in); err != nil {
		return err
	}
	err := r.End(in.State, domain.ByAgent, reason, txn.Current(ctx).Now())
	switch {
	case errors.Is(err, domain.ErrNotStarted):
		return conflict("not_started", *r)
	case errors.Is(err, domain.ErrReason):
		return errs.Invalid("/end_reason", "invalid", fmt.Sprintf("A run that is %s does not end %s with this reason.", previous, in.State))
	case err != nil:
		return err
	}
	r.ErrorCode, r.ErrorMessage = in.ErrorCode, in.ErrorMessage
	if err := s.ended(ctx, *r, previous); err != nil {
		return err
	}
	r.FollowupsPending = 0
	return nil
}

// answer writes the message of the run: the given one, or what was streamed by a run that
// completes.
func (s *Service) answer(ctx context.Context, r *domain.Run, in Finish) error {
	var content string
	client := r.ID
	switch {
	case in.Output != nil:
		content, client = in.Output.Content, in.Output.ClientMsgID
	case in.State == domain.Completed && r.State.Started():
		content = s.fit(r.Output)
	}
	if strings.TrimSpace(content) == "" || r.State == domain.Queued {
		return nil
	}
	m, err := s.d.Messages.Create(ctx, messaging.NewMessage{
		ThreadID: r.ThreadID, Author: messaging.Author{Kind: actor.KindAgent, ID: r.AgentID}, Content: content,
		ReplyToID: r.TriggerMessageID, RunID: r.ID, ClientMsgID: client,
	})
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	r.OutputMessageID = m.ID
	return nil
}

// fit cuts streamed text to the size of a message, at the end of a line where there is one.
func (s *Service) fit(text string) string {
	limit := s.config.MessageBytes
	if len(text) <= limit {
		return text
	}
	text = text[:max(limit-len(cutNote), 0)]
	if i := strings.LastIndexByte(text, '\n'); i > 0 {
		text = text[:i]
	}
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + cutNote
}

// afterEnd answers a request about a run that has ended: a repeat of the request that ended
// it gets the run, an answer that comes late is still taken, everything else conflicts.
func (s *Service) afterEnd(ctx context.Context, r *domain.Run, in Finish) error {
	now := txn.Current(ctx).Now()
	if in.Output != nil && !r.OutputMessageID.IsZero() {
		m, err := s.d.Messages.Get(ctx, r.OutputMessageID)
		if err != nil && !errs.Is(err, errs.CodeNotFound) {
			return fmt.Errorf("read the answer of the run: %w", err)
		}
		if err == nil && m.ClientMsgID == in.Output.ClientMsgID {
			return nil
		}
	}
	if in.Output == nil || in.BaseVersion != nil || !r.AcceptsLate(s.config.LateFinishWindow, now) {
		return conflict("run_ended", *r)
	}
	under, err := s.d.Runs.ActiveByThread(ctx, r.ThreadID)
	if err != nil {
		return fmt.Errorf("read the runs of the thread: %w", err)
	}
	for _, other := range under {
		if other.AgentID == r.AgentID {
			return conflict("run_ended", *r)
		}
	}
	known, err := s.d.Agents.ByID(ctx, []ids.ID{r.AgentID})
	if err != nil {
		return fmt.Errorf("read the agent of the run: %w", err)
	}
	reason, err := s.mayOrder(ctx, known[r.AgentID], r.TriggeredBy, r.ChannelID, r.Chain)
	if err != nil {
		return err
	}
	if reason != "" {
		return conflict("run_ended", *r)
	}
	if err := s.answer(ctx, r, in); err != nil {
		return err
	}
	r.DocVersion++
	return s.record(ctx, *r, r.State)
}

// Cancel asks a run to stop. Repeating it, and asking for a run that has ended, gives the run.
func (s *Service) Cancel(ctx context.Context, id ids.ID, reason string) (Document, error) {
	if utf8.RuneCountInString(reason) > maxTitle || reason != "" && textcheck.Body(reason) != nil {
		return Document{}, errs.Invalid("/reason", "invalid", "At most 200 characters.")
	}
	found, err := s.d.Runs.ByID(ctx, id)
	if err != nil {
		return Document{}, fmt.Errorf("read the run: %w", err)
	}
	var r domain.Run
	err = s.d.Units.Do(ctx, func(ctx context.Context) error {
		thread, err := s.d.Threads.Info(ctx, found.ThreadID)
		if err != nil {
			return fmt.Errorf("read the thread of the run: %w", err)
		}
		res := resource(found, thread.ChannelID)
		if err := s.callers(ctx, found, &res); err != nil {
			return err
		}
		if err := s.d.Authorizer.Authorize(ctx, authorize.ActionRunCancel, res); err != nil {
			return err
		}
		if r, err = s.lock(ctx, found, true); err != nil {
			return err
		}
		previous := r.State
		again, err := r.Cancel(actor.From(ctx).ID, reason, txn.Current(ctx).Now())
		if errors.Is(err, domain.ErrEnded) || err == nil && again {
			return nil
		}
		if err != nil {
			return err
		}
		err = s.d.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionRunCancel), ResourceKind: "run", ResourceID: r.ID, SpaceID: r.SpaceID, ChannelID: r.ChannelID,
		})
		if err != nil {
			return fmt.Errorf("audit the request: %w", err)
		}
		if r.State.Active() {
			return s.requested(ctx, r)
		}
		return s.ended(ctx, r, previous)
	}, txn.WithWriteInMaintenance())
	if err != nil {
		return Document{}, err
	}
	return s.document(ctx, r, shownSteps)
}

// callers lets an agent stop what a run of its own has begun: its right comes from the
// parent, so the parent's agent has a say.
func (s *Service) callers(ctx context.Context, r domain.Run, res *authorize.Resource) error {
	a := actor.From(ctx)
	if a.Kind != actor.KindAgent || r.ParentRunID.IsZero() {
		return nil
	}
	parent, err := s.d.Runs.ByID(ctx, r.ParentRunID)
	if err != nil {
		return fmt.Errorf("read the parent of the run: %w", err)
	}
	res.Related = append(res.Related, parent.AgentID)
	return nil
}
