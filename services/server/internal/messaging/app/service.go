// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// Messages has the use cases of messages.
type Messages struct{ Deps }

// NewMessages makes the use cases.
func NewMessages(d Deps) *Messages { return &Messages{d} }

// The types and causes of events.
const (
	eventCreated = "message.created"
	eventUpdated = "message.updated"
	eventDeleted = "message.deleted"

	causeEdit    = "edit"
	causeTrigger = "trigger"
	causeThread  = "thread"
)

func event(kind string, m domain.Message, payload any) eventlog.Event {
	return eventlog.Event{
		Type: kind, Place: eventlog.Place{SpaceID: m.SpaceID, ChannelID: m.ChannelID, ThreadID: m.ThreadID},
		Resource: eventlog.Resource{Type: "message", ID: m.ID}, Payload: payload,
	}
}

// writtenKey finds a message that the running unit has written or changed. Subscribers change
// it further, and the answer shows what they made of it.
type writtenKey struct{ id ids.ID }

func remember(ctx context.Context, m *domain.Message) {
	txn.Current(ctx).SetValue(writtenKey{m.ID}, m)
}

func remembered(ctx context.Context, id ids.ID) *domain.Message {
	if u := txn.Current(ctx); u != nil {
		if m, ok := u.Value(writtenKey{id}).(*domain.Message); ok {
			return m
		}
	}
	return nil
}

// newMessage is a message about to be placed in a thread.
type newMessage struct {
	messaging.NewMessage
	kind   string
	notify string
	hash   []byte
	text   domain.Text
	reply  *domain.Reply
	device ids.ID
}

// place numbers a message, writes it and tells everybody in the unit. The caller has checked
// what must be checked.
func (s *Messages) place(ctx context.Context, n newMessage) (*domain.Message, error) {
	place, err := s.Places.Place(ctx, n.ThreadID)
	if err != nil {
		return nil, err
	}
	appended, err := s.Threads.AppendToThread(ctx, n.ThreadID, n.kind, n.Author.Kind)
	if err != nil {
		return nil, err
	}
	now := txn.Current(ctx).Now()
	m := &domain.Message{
		ID: ids.NewAt(now), ThreadID: n.ThreadID, ChannelID: appended.Thread.ChannelID, SpaceID: place.Channel.SpaceID, ThreadSeq: appended.ThreadSeq,
		Kind: n.kind, AuthorKind: string(n.Author.Kind), AuthorID: n.Author.ID, Content: n.text.Content, Plain: n.text.Plain,
		HasBits: n.text.HasBits, Links: n.text.Links, Mentions: n.text.Mentions, ReplyTo: n.reply, RunID: n.RunID,
		TriggerState: messaging.TriggerNone, Notify: n.notify, ClientMsgID: n.ClientMsgID, ClientHash: n.hash, Revision: 1, CreatedAt: now, Version: 1,
	}
	if err := s.Messages.Insert(ctx, *m); err != nil {
		return nil, fmt.Errorf("insert the message: %w", err)
	}
	if err := s.Log.Append(ctx, event(eventCreated, *m, s.Payloads.Created(*m, appended.Thread.Counters))); err != nil {
		return nil, err
	}
	remember(ctx, m)
	if n.kind != messaging.KindMessage {
		return m, nil
	}
	return m, txn.Publish(ctx, messaging.MessagePosted{
		Message: port(*m), SpaceID: m.SpaceID, Mentioned: n.text.Wakes(), DeviceID: n.device, SuppressTrigger: n.SuppressTrigger,
		ThreadKind: appended.Thread.Kind, OperatorID: place.Channel.OperatorID, TriggerRule: place.Channel.TriggerRule,
		AgentChaining: place.Channel.AgentChaining,
	})
}

// readPlace finds where a message stands and gives the message its space.
func (s *Messages) readPlace(ctx context.Context, m *domain.Message) (chat.Place, error) {
	place, err := s.Places.Place(ctx, m.ThreadID)
	m.SpaceID = place.Channel.SpaceID
	return place, err
}

func port(m domain.Message) messaging.Message {
	out := messaging.Message{
		ID: m.ID, ThreadID: m.ThreadID, ChannelID: m.ChannelID, ThreadSeq: m.ThreadSeq, Kind: m.Kind,
		Author:  messaging.Author{Kind: actor.Kind(m.AuthorKind), ID: m.AuthorID},
		Content: m.Content, PlainText: m.Plain, RunID: m.RunID, MentionedIDs: domain.Wakes(m.Mentions), Revision: m.Revision,
		CreatedAt: m.CreatedAt, EditedAt: m.EditedAt, Deleted: m.Deleted != nil, TriggerState: m.TriggerState, Version: m.Version, ClientMsgID: m.ClientMsgID,
	}
	if m.ReplyTo != nil {
		out.ReplyToID = m.ReplyTo.ID
	}
	return out
}

// errDeleted answers what needs a message that is there.
func errDeleted() error {
	return errs.New(errs.CodeMessageDeleted, "The message has been deleted.")
}
