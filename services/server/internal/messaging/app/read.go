// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// PageQuery asks for a part of a thread. At most one of the positions is set; none means the
// newest messages.
type PageQuery struct {
	ThreadID      ids.ID
	Before, After *int64
	// AroundSeq and AroundID lay the page around a number or a message of the thread.
	AroundSeq *int64
	AroundID  ids.ID
	Limit     int
}

// Page is a window of a thread, ascending, deleted messages included.
type Page struct {
	Items               []domain.Message
	HasBefore, HasAfter bool
	Counters            chat.Counters
	Referenced          []domain.Message
}

// Read gives one message; a deleted one is message_deleted.
func (s *Messages) Read(ctx context.Context, id ids.ID) (m domain.Message, err error) {
	err = s.Units.View(ctx, func(ctx context.Context) error {
		if m, err = s.Messages.Get(ctx, id); err != nil {
			return s.absent(ctx, err, id)
		}
		if _, err := s.readPlace(ctx, &m); err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionMessageRead, authorize.Message(m.ID, m.ChannelID, m.AuthorID)); err != nil {
			return err
		}
		if m.Deleted != nil {
			return errDeleted()
		}
		return nil
	})
	return m, err
}

// absent looks for the place of a message that is not there, as it would for a hidden one.
func (s *Messages) absent(ctx context.Context, err error, id ids.ID) error {
	if errs.Is(err, errs.CodeNotFound) {
		if _, lost := s.Places.Place(ctx, id); lost != nil {
			err = lost
		}
	}
	return authorize.Absent(ctx, s.Authorizer, err, authorize.ActionMessageRead, authorize.Message(id, id, ids.ID{}))
}

// List reads a page of a thread.
func (s *Messages) List(ctx context.Context, q PageQuery) (page Page, err error) {
	err = s.Units.View(ctx, func(ctx context.Context) error {
		place, err := s.Places.Place(ctx, q.ThreadID)
		if err != nil {
			return authorize.Absent(ctx, s.Authorizer, err, authorize.ActionMessageRead, authorize.Thread(q.ThreadID, q.ThreadID))
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionMessageRead, authorize.Thread(q.ThreadID, place.Channel.ID)); err != nil {
			return err
		}
		window, err := s.window(ctx, q, place.Thread.Counters.LastThreadSeq)
		if err != nil {
			return err
		}
		page, err = s.page(ctx, place, window)
		return err
	})
	return page, err
}

func (s *Messages) window(ctx context.Context, q PageQuery, last int64) (domain.Window, error) {
	switch {
	case q.Before != nil:
		return domain.Before(*q.Before, q.Limit), nil
	case q.After != nil:
		return domain.After(*q.After, q.Limit), nil
	case q.AroundSeq != nil:
		return domain.Around(*q.AroundSeq, q.Limit), nil
	case !q.AroundID.IsZero():
		thread, seq, err := s.Messages.Place(ctx, q.AroundID)
		if err == nil && thread != q.ThreadID {
			err = errs.NotFound()
		}
		return domain.Around(seq, q.Limit), err
	default:
		return domain.Newest(last, q.Limit), nil
	}
}

func (s *Messages) page(ctx context.Context, place chat.Place, w domain.Window) (Page, error) {
	counters := place.Thread.Counters
	items, err := s.Messages.Window(ctx, place.Thread.ID, w)
	if err != nil {
		return Page{}, fmt.Errorf("read the messages: %w", err)
	}
	page := Page{
		Items: items, Counters: counters,
		HasBefore: w.From > counters.FirstThreadSeq, HasAfter: w.To < counters.LastThreadSeq,
	}
	inside := make(map[ids.ID]bool, len(items))
	for i := range items {
		items[i].SpaceID = place.Channel.SpaceID
		inside[items[i].ID] = true
	}
	var missing []ids.ID
	for _, m := range items {
		if m.ReplyTo != nil && !inside[m.ReplyTo.ID] {
			inside[m.ReplyTo.ID] = true
			missing = append(missing, m.ReplyTo.ID)
		}
	}
	if len(missing) == 0 {
		return page, nil
	}
	if page.Referenced, err = s.Messages.In(ctx, missing); err != nil {
		return Page{}, fmt.Errorf("read answered messages: %w", err)
	}
	for i := range page.Referenced {
		page.Referenced[i].SpaceID = place.Channel.SpaceID
	}
	return page, nil
}
