// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

const notifyNormal = "normal"

// Port implements messaging.Messages and messaging.Mentions: what other modules do with
// messages inside their own units of work. It does not authorize.
type Port struct{ uses *Messages }

// NewPort makes the port over the use cases.
func NewPort(m *Messages) Port { return Port{m} }

var (
	_ messaging.Messages = Port{}
	_ messaging.Mentions = Port{}
)

// Get implements messaging.Messages.
func (s Port) Get(ctx context.Context, id ids.ID) (messaging.Message, error) {
	m, err := s.uses.Messages.Get(ctx, id)
	return port(m), err
}

// Newest implements messaging.Messages.
func (s Port) Newest(ctx context.Context, thread ids.ID, upTo int64, limit int) ([]messaging.Message, error) {
	if upTo == 0 {
		info, err := s.uses.Threads.Info(ctx, thread)
		if err != nil {
			return nil, err
		}
		upTo = info.Counters.LastThreadSeq
	}
	found, err := s.uses.Messages.Window(ctx, thread, domain.Newest(upTo, limit))
	if err != nil {
		return nil, fmt.Errorf("read the newest messages: %w", err)
	}
	out := make([]messaging.Message, len(found))
	for i, m := range found {
		out[i] = port(m)
	}
	return out, nil
}

// Create implements messaging.Messages. It hides the use case of that name, which is for
// clients.
func (s Port) Create(ctx context.Context, n messaging.NewMessage) (messaging.Message, error) {
	text, err := s.uses.understand(ctx, n.Author.ID, n.Content, func() (ids.ID, error) {
		place, err := s.uses.Places.Place(ctx, n.ThreadID)
		return place.Channel.ID, err
	})
	if err != nil {
		return messaging.Message{}, err
	}
	var target Target
	if !n.ReplyToID.IsZero() {
		if err := s.uses.Messages.FindReply(ctx, n.ReplyToID, &target); err != nil {
			return messaging.Message{}, fmt.Errorf("look for the answered message: %w", err)
		}
		if _, err := s.uses.Threads.Info(ctx, n.ThreadID); err != nil {
			return messaging.Message{}, err
		}
	}
	reply, err := answered(target, n.ThreadID, n.ReplyToID)
	if err != nil {
		return messaging.Message{}, err
	}
	m, err := s.uses.place(ctx, newMessage{NewMessage: n, kind: messaging.KindMessage, notify: notifyNormal, text: text, reply: reply})
	if err != nil {
		return messaging.Message{}, err
	}
	return port(*m), nil
}

// Anchor implements messaging.Messages.
func (s Port) Anchor(ctx context.Context, thread, run, agent ids.ID) (messaging.Message, error) {
	m, err := s.uses.place(ctx, newMessage{
		NewMessage: messaging.NewMessage{ThreadID: thread, Author: messaging.Author{Kind: actor.KindAgent, ID: agent}, RunID: run},
		kind:       messaging.KindRun, notify: notifyNormal,
	})
	if err != nil {
		return messaging.Message{}, err
	}
	return port(*m), nil
}

// SetTriggerState implements messaging.Messages.
func (s Port) SetTriggerState(ctx context.Context, id ids.ID, state string, outcomes []messaging.TriggerOutcome) error {
	m := remembered(ctx, id)
	if m == nil {
		found, err := s.uses.locked(ctx, id)
		if err != nil {
			return err
		}
		if _, err := s.uses.readPlace(ctx, &found); err != nil {
			return err
		}
		m = &found
	}
	if m.Deleted != nil {
		return errDeleted()
	}
	m.TriggerState, m.Triggers = state, make([]domain.Trigger, len(outcomes))
	for i, o := range outcomes {
		m.Triggers[i] = domain.Trigger(o)
	}
	m.Version++
	if err := s.uses.Messages.SetTrigger(ctx, *m); err != nil {
		return fmt.Errorf("note the trigger state: %w", err)
	}
	return s.uses.Log.Append(ctx, event(eventUpdated, *m, s.uses.Payloads.Updated(*m, causeTrigger, nil)))
}

// UnreadCounts implements messaging.Mentions.
func (s Port) UnreadCounts(ctx context.Context, reader ids.ID, queries []messaging.UnreadQuery, limit int) (map[ids.ID]messaging.Unread, error) {
	if len(queries) == 0 {
		return map[ids.ID]messaging.Unread{}, nil
	}
	out, err := s.uses.Messages.Unread(ctx, reader, queries, limit)
	if err != nil {
		return nil, fmt.Errorf("count what is unread: %w", err)
	}
	return out, nil
}
