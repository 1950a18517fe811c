// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// Draft is what a client sends to become a message.
type Draft struct {
	// ClientMsgID makes the send repeatable for ever.
	ClientMsgID     ids.ID
	Content         string
	ReplyToID       ids.ID
	Notify          string
	SuppressTrigger bool
}

func (d Draft) request(place ids.ID) domain.Request {
	return domain.Request{
		PlaceID: place, Content: d.Content, ReplyToID: d.ReplyToID, Notify: d.Notify, SuppressTrigger: d.SuppressTrigger,
	}
}

// message is what is known of the message before it is placed.
func (d Draft) message(who actor.Actor, thread ids.ID, hash []byte, text domain.Text) newMessage {
	n := newMessage{
		NewMessage: messaging.NewMessage{
			ThreadID: thread, Author: messaging.Author{Kind: who.Kind, ID: who.ID}, ClientMsgID: d.ClientMsgID, SuppressTrigger: d.SuppressTrigger,
		},
		kind: messaging.KindMessage, notify: d.Notify, hash: hash, text: text, device: who.DeviceID,
	}
	if who.ActingFor != nil {
		n.RunID = who.ActingFor.RunID
	}
	return n
}

// Create writes a message. Sending the same again, at any time, gives the message as it is
// now; sending something else under the same key is idempotency_key_reuse.
//
// Everything that needs no lock happens before the unit of work, so that the row of a busy
// thread is held for one round trip: the unit looks for the key, the place and the answered
// message together, decides, numbers, and lets the rest travel with the commit.
func (s *Messages) Create(ctx context.Context, thread ids.ID, d Draft) (Written, error) {
	who := actor.From(ctx)
	text, err := s.understand(ctx, who.ID, d.Content, func() (ids.ID, error) {
		place, err := s.Places.Place(ctx, thread)
		return place.Channel.ID, err
	})
	if err != nil {
		return Written{}, err
	}
	hash := d.request(thread).Hash()
	var out Written
	err = s.once(ctx, func(ctx context.Context) error {
		out = Written{}
		sent, reply, place, err := s.lookAround(ctx, who.ID, thread, d)
		if !sent.ID.IsZero() {
			out, err = s.repeat(ctx, sent, hash)
			return err
		}
		if err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionMessageCreate, authorize.Thread(thread, place.Channel.ID)); err != nil {
			return err
		}
		if err := s.withinRun(ctx, who, place); err != nil {
			return err
		}
		n := d.message(who, thread, hash, text)
		if n.reply, err = answered(reply, thread, d.ReplyToID); err != nil {
			return err
		}
		if err := s.slowDown(ctx, who, place.Channel); err != nil {
			return err
		}
		m, err := s.place(ctx, n)
		if err != nil {
			return err
		}
		out = Written{Message: *m, Warnings: text.Warnings}
		return nil
	})
	return out, err
}

// once runs a send again when a twin has used the client key in the meantime; the second run
// finds the twin's message.
func (s *Messages) once(ctx context.Context, fn func(context.Context) error) error {
	err := s.Units.Do(ctx, fn)
	if errors.Is(err, ErrClientKey) {
		err = s.Units.Do(ctx, fn)
	}
	return err
}

// lookAround finds, in one round trip, an earlier send with the key, the answered message, what the
// decision needs, and the place. A failure to find the place does not hide an earlier send.
func (s *Messages) lookAround(ctx context.Context, author, thread ids.ID, d Draft) (sent Sent, reply Target, place chat.Place, err error) {
	if err := s.Messages.FindSent(ctx, author, d.ClientMsgID, &sent); err != nil {
		return sent, reply, place, fmt.Errorf("look for an earlier send: %w", err)
	}
	if !d.ReplyToID.IsZero() {
		if err := s.Messages.FindReply(ctx, d.ReplyToID, &reply); err != nil {
			return sent, reply, place, fmt.Errorf("look for the answered message: %w", err)
		}
	}
	if err := authorize.Prepare(ctx, s.Authorizer); err != nil {
		return sent, reply, place, fmt.Errorf("prepare the decision: %w", err)
	}
	place, err = s.Places.Place(ctx, thread)
	return sent, reply, place, err
}

// repeat answers a send that was done before, if its author may still read the message.
func (s *Messages) repeat(ctx context.Context, sent Sent, hash []byte) (Written, error) {
	m, err := s.Messages.Get(ctx, sent.ID)
	if err != nil {
		return Written{}, err
	}
	if _, err := s.readPlace(ctx, &m); err != nil {
		return Written{}, err
	}
	if err := s.Authorizer.Authorize(ctx, authorize.ActionMessageRead, authorize.Message(m.ID, m.ChannelID, m.AuthorID)); err != nil {
		return Written{}, err
	}
	if len(sent.Hash) > 0 && !bytes.Equal(sent.Hash, hash) {
		return Written{}, errs.New(errs.CodeIdempotencyKeyReuse, "This client_msg_id belongs to another message. Choose a new one.")
	}
	authorize.Prove(ctx)
	return Written{Message: m, Repeated: true}, nil
}

// answered checks that a reply stays in its thread. A deleted message may be answered.
func answered(t Target, thread, id ids.ID) (*domain.Reply, error) {
	if id.IsZero() {
		return nil, nil
	}
	if t.ID.IsZero() || t.ThreadID != thread {
		return nil, errs.Invalid("/reply_to_id", "unknown", "There is no such message in this thread.")
	}
	return &t.Reply, nil
}

// withinRun keeps an agent that works on an order to the thread of its run, and to side
// threads of the same channel that the run has begun: there its answer was asked for.
func (s *Messages) withinRun(ctx context.Context, who actor.Actor, place chat.Place) error {
	order := who.ActingFor
	if order == nil || order.ThreadID == place.Thread.ID {
		return nil
	}
	if place.Channel.ID == order.ChannelID && place.Thread.Kind == chat.ThreadSide && place.Thread.CreatedBy == who.ID {
		first, err := s.Messages.Window(ctx, place.Thread.ID, domain.Window{From: 1, To: 1})
		if err != nil {
			return fmt.Errorf("read how the thread began: %w", err)
		}
		if len(first) == 1 && first[0].RunID == order.RunID {
			return nil
		}
	}
	return errs.Forbidden("acting_for_limited")
}

// slowDown holds people back in channels with slow mode, except those who keep order there.
func (s *Messages) slowDown(ctx context.Context, who actor.Actor, c chat.Channel) error {
	if c.SlowModeSeconds == 0 || who.Kind != actor.KindPerson {
		return nil
	}
	standing, err := s.Rights.Standing(ctx, who.ID, c.ID)
	if err != nil {
		return fmt.Errorf("read the author's rights: %w", err)
	}
	if standing.Moderates {
		return nil
	}
	if err := s.Messages.LockAuthor(ctx, who.ID, c.ID); err != nil {
		return fmt.Errorf("queue up with the author's other devices: %w", err)
	}
	now, pause := txn.Current(ctx).Now(), time.Duration(c.SlowModeSeconds)*time.Second
	last, err := s.Messages.LastOfAuthor(ctx, who.ID, c.ID, now.Add(-pause))
	if err != nil {
		return fmt.Errorf("find the author's last message: %w", err)
	}
	if wait := last.Add(pause).Sub(now); !last.IsZero() && wait > 0 {
		return errs.New(errs.CodeRateLimited, "This channel is in slow mode. Wait a little.").WithReason("slow_mode").WithRetryAfter(wait)
	}
	return nil
}
