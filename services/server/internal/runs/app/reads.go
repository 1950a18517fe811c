// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/runs"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

func (s *Service) document(ctx context.Context, r domain.Run, steps int) (Document, error) {
	list, err := s.d.Steps.Newest(ctx, r.ID, steps)
	if err != nil {
		return Document{}, fmt.Errorf("read the steps of the run: %w", err)
	}
	return Document{Run: r, Steps: list}, nil
}

// Get reads a run with its newest steps.
func (s *Service) Get(ctx context.Context, id ids.ID) (Document, error) {
	r, err := s.d.Runs.ByID(ctx, id)
	missing := errs.Is(err, errs.CodeNotFound)
	if err != nil && !missing {
		return Document{}, fmt.Errorf("read the run: %w", err)
	}
	if missing { // A hidden run has a thread that is looked for.
		r = domain.Run{ID: id, ThreadID: id}
	}
	thread, lost := s.d.Threads.Info(ctx, r.ThreadID)
	if missing {
		absent := authorize.Resource{Kind: authorize.ResourceRun, ID: id, ChannelID: id}
		return Document{}, authorize.Absent(ctx, s.d.Authorizer, fmt.Errorf("read the run: %w", err), authorize.ActionRunRead, absent)
	}
	if lost != nil {
		return Document{}, fmt.Errorf("read the thread of the run: %w", lost)
	}
	if err := s.d.Authorizer.Authorize(ctx, authorize.ActionRunRead, resource(r, thread.ChannelID)); err != nil {
		return Document{}, err
	}
	return s.document(ctx, r, shownSteps)
}

// Running implements runs.RunningRuns.
func (s *Service) Running(ctx context.Context, run ids.ID) (bool, error) {
	r, err := s.d.Runs.ByID(ctx, run)
	if errs.Is(err, errs.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the run: %w", err)
	}
	return r.State == domain.Running, nil
}

// List gives the runs of a thread, newest first and before the given one. next is the place
// behind the last one, zero on the last page.
func (s *Service) List(ctx context.Context, thread, before ids.ID, limit int) (list []domain.Run, next ids.ID, err error) {
	t, err := s.d.Threads.Info(ctx, thread)
	if err != nil {
		absent := authorize.Resource{Kind: authorize.ResourceRun, ChannelID: thread}
		return nil, next, authorize.Absent(ctx, s.d.Authorizer, fmt.Errorf("read the thread: %w", err), authorize.ActionRunRead, absent)
	}
	r := authorize.Resource{Kind: authorize.ResourceRun, ChannelID: t.ChannelID}
	if err := s.d.Authorizer.Authorize(ctx, authorize.ActionRunRead, r); err != nil {
		return nil, next, err
	}
	if list, err = s.d.Runs.ByThread(ctx, thread, before, limit+1); err != nil {
		return nil, next, fmt.Errorf("list the runs of the thread: %w", err)
	}
	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}
	return list, next, nil
}

// ActiveInChannels implements runs.Reads.
func (s *Service) ActiveInChannels(ctx context.Context, channels []ids.ID, after ids.ID, limit int) ([]runs.SnapshotItem, error) {
	list, err := s.d.Runs.ActiveByChannels(ctx, channels, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the runs of channels: %w", err)
	}
	out := make([]runs.SnapshotItem, 0, len(list))
	for _, r := range list {
		item, err := snapshotItem(r, s.d.Present.Summary(r))
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// Snapshots implements runs.Reads.
func (s *Service) Snapshots(ctx context.Context, thread ids.ID) ([]runs.SnapshotItem, error) {
	list, err := s.d.Runs.ActiveByThread(ctx, thread)
	if err != nil {
		return nil, fmt.Errorf("read the runs of the thread: %w", err)
	}
	out := make([]runs.SnapshotItem, 0, len(list))
	for _, r := range list {
		item, err := s.snapshot(ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// Snapshot implements runs.Reads.
func (s *Service) Snapshot(ctx context.Context, run ids.ID) (runs.SnapshotItem, error) {
	r, err := s.d.Runs.ByID(ctx, run)
	if err != nil {
		return runs.SnapshotItem{}, fmt.Errorf("read the run: %w", err)
	}
	return s.snapshot(ctx, r)
}

func (s *Service) snapshot(ctx context.Context, r domain.Run) (runs.SnapshotItem, error) {
	d, err := s.document(ctx, r, recentSteps)
	if err != nil {
		return runs.SnapshotItem{}, err
	}
	return snapshotItem(r, s.d.Present.Snapshot(r, d.Steps))
}

func snapshotItem(r domain.Run, payload any) (runs.SnapshotItem, error) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return runs.SnapshotItem{}, fmt.Errorf("encode a run: %w", err)
	}
	return runs.SnapshotItem{ID: r.ID, AgentID: r.AgentID, Place: place(r), Payload: raw}, nil
}

// Context gives an agent what it may know to do its work: the thread up to the order, as far
// as both the agent and the person may read it, each text with the trust its author has.
func (s *Service) Context(ctx context.Context, id ids.ID, before int64, limit int) (RunContext, error) {
	var out RunContext
	r, err := s.own(ctx, authorize.ActionRunContextRead, id)
	if err != nil {
		return out, err
	}
	if err := needToken(ctx, id); err != nil {
		return out, err
	}
	if !r.State.Active() {
		return out, conflict("run_ended", r)
	}
	i, a, against, err := s.judge(ctx, r)
	if err != nil {
		return out, err
	}
	if against.to != "" {
		return out, errs.NotFound()
	}
	out.Channel = i.Channel
	upTo := before - 1
	if before == 0 {
		upTo = 0
		if i.Message != nil {
			upTo = i.Message.ThreadSeq
		}
	}
	limit = min(limit, s.config.ContextMessages)
	if before != 1 {
		list, err := s.d.Messages.Newest(ctx, r.ThreadID, upTo, limit)
		if err != nil {
			return out, fmt.Errorf("read the thread: %w", err)
		}
		if out.Messages, out.Before, err = s.judged(ctx, r, list, a.UntrustedContext == "withhold", i.Message); err != nil {
			return out, err
		}
		if out.Before == 0 && len(list) == limit && list[0].ThreadSeq > 1 {
			out.Before = list[0].ThreadSeq
		}
	}
	return out, s.participants(ctx, r, &out)
}

// judged gives each message its trust and keeps the newest that fit. before is where the
// next page begins when some did not.
func (s *Service) judged(ctx context.Context, r domain.Run, list []messaging.Message, withhold bool, order *OrderMessage) (out []ContextMessage, before int64, err error) {
	judge := domain.Judge{AgentID: r.AgentID, Orders: map[ids.ID]bool{r.TriggerMessageID: true}, MayOrder: map[ids.ID]bool{}}
	people, err := s.d.Rights.WithTrigger(ctx, r.ChannelID)
	if err != nil {
		return nil, 0, fmt.Errorf("read who may give orders: %w", err)
	}
	for _, id := range people {
		judge.MayOrder[id] = true
	}
	open, err := s.d.Followups.Open(ctx, r.ID)
	if err != nil {
		return nil, 0, fmt.Errorf("read what waits for the run: %w", err)
	}
	for _, f := range open {
		judge.Orders[f.MessageID] = true
	}
	size := 0
	for i := len(list) - 1; i >= 0; i-- {
		m := list[i]
		if m.Deleted || m.Kind == "run" {
			continue
		}
		c := ContextMessage{Message: m, Trust: judge.Of(m.ID, m.Author.ID, string(m.Author.Kind))}
		if withhold && c.Trust == domain.TrustUntrusted && (order == nil || order.ReplyToID != m.ID) {
			c.Content, c.PlainText, c.Withheld = "", "", true
		}
		if size += len(c.Content); size > s.config.ContextBytes && len(out) > 0 {
			before = m.ThreadSeq + 1
			break
		}
		out = append(out, c)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, before, nil
}

func (s *Service) participants(ctx context.Context, r domain.Run, out *RunContext) error {
	list := []ids.ID{r.TriggeredBy}
	seen := map[ids.ID]bool{r.TriggeredBy: true}
	for _, m := range out.Messages {
		if !m.Author.ID.IsZero() && !seen[m.Author.ID] {
			seen[m.Author.ID] = true
			list = append(list, m.Author.ID)
		}
	}
	people, err := s.d.People.People(ctx, list)
	if err != nil {
		return fmt.Errorf("read who takes part: %w", err)
	}
	for _, id := range list {
		if p, ok := people[id]; ok {
			out.Participants = append(out.Participants, p)
		}
	}
	out.Language = people[r.TriggeredBy].Locale
	return nil
}
