// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// Update gives a message another content, made from the named version. The same content
// again changes nothing.
func (s *Messages) Update(ctx context.Context, id ids.ID, version int64, content string) (Written, error) {
	who := actor.From(ctx)
	text, err := s.understand(ctx, who.ID, content, func() (ids.ID, error) {
		m, err := s.Messages.Get(ctx, id)
		return m.ChannelID, err
	})
	if err != nil {
		return Written{}, err
	}
	var out Written
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		m, err := s.forChange(ctx, id, authorize.ActionMessageUpdate)
		if err != nil {
			return err
		}
		if err := s.mayEdit(ctx, m, version); err != nil {
			return err
		}
		out = Written{Message: m, Warnings: text.Warnings}
		if m.Content == text.Content {
			return nil
		}
		out.Message, err = s.edit(ctx, m, text, who.ID)
		return err
	})
	return out, err
}

// forChange reads a message, decides, and then holds its thread and its row. What is decided
// does not change meanwhile: author and channel stay, and a move of the thread repeats.
func (s *Messages) forChange(ctx context.Context, id ids.ID, action authorize.Action) (domain.Message, error) {
	m, err := s.Messages.Get(ctx, id)
	if err != nil {
		return m, err
	}
	if err := s.Authorizer.Authorize(ctx, action, authorize.Message(m.ID, m.ChannelID, m.AuthorID)); err != nil {
		return m, err
	}
	_, err = s.Threads.Lock(ctx, m.ThreadID)
	if closed(err) && action == authorize.ActionMessageDelete {
		err = nil // Deleting stays possible where nobody may write; the locks are held.
	}
	if err != nil {
		return m, err
	}
	channel := m.ChannelID
	if m, err = s.locked(ctx, id); err != nil {
		return m, err
	}
	if m.ChannelID != channel {
		return m, txn.ErrRetry
	}
	_, err = s.readPlace(ctx, &m)
	return m, err
}

// closed recognises a place that takes no writing.
func closed(err error) bool {
	return errs.Is(err, errs.CodeChannelReadOnly) || errs.Is(err, errs.CodeForbidden)
}

// locked reads a message while holding its row.
func (s *Messages) locked(ctx context.Context, id ids.ID) (domain.Message, error) {
	if err := s.Messages.Lock(ctx, id); err != nil {
		return domain.Message{}, fmt.Errorf("lock the message: %w", err)
	}
	return s.Messages.Get(ctx, id)
}

func (s *Messages) mayEdit(ctx context.Context, m domain.Message, version int64) error {
	switch {
	case m.Kind == messaging.KindMessage && m.AuthorID != actor.From(ctx).ID:
		// Not even who keeps order in a place puts words into another's mouth.
		return errs.Forbidden("not_author")
	case m.Deleted != nil:
		return errDeleted()
	case m.Kind != messaging.KindMessage:
		return errs.Conflict("system_message", "This message was written by the system and cannot be changed.")
	case m.Version != version:
		return errs.New(errs.CodeVersionConflict, "The message has changed meanwhile. Read it again and repeat the edit.")
	case s.Config.EditWindow > 0 && txn.Current(ctx).Now().After(m.CreatedAt.Add(s.Config.EditWindow)):
		return errs.Forbidden("edit_window")
	default:
		return nil
	}
}

func (s *Messages) edit(ctx context.Context, m domain.Message, text domain.Text, by ids.ID) (domain.Message, error) {
	ever, err := s.Messages.Ever(ctx, m.ID)
	if err != nil {
		return m, fmt.Errorf("read whom the message named: %w", err)
	}
	before := m.Content
	m.Edit(text, txn.Current(ctx).Now())
	if err := s.Messages.Edit(ctx, m, before, by, m.Revision-s.Config.MaxRevisions); err != nil {
		return m, fmt.Errorf("write the edit: %w", err)
	}
	if err := s.Redactor.Supersede(ctx, m.ID); err != nil {
		return m, fmt.Errorf("take the old text out of the log: %w", err)
	}
	added := domain.Added(m.Mentions, ever)
	if err := s.Log.Append(ctx, event(eventUpdated, m, s.Payloads.Updated(m, causeEdit, added))); err != nil {
		return m, err
	}
	remember(ctx, &m)
	err = txn.Publish(ctx, messaging.MessageEdited{Message: port(m), SpaceID: m.SpaceID, Added: domain.Wakes(added)})
	return m, err
}

// Delete takes a message back: its content goes from the rows and from the log, its number
// stays. Deleting again changes nothing.
func (s *Messages) Delete(ctx context.Context, id ids.ID, reason string) error {
	who := actor.From(ctx)
	return s.Units.Do(ctx, func(ctx context.Context) error {
		m, err := s.forChange(ctx, id, authorize.ActionMessageDelete)
		switch {
		case err != nil:
			return err
		case m.Deleted != nil:
			return nil
		case m.Kind == messaging.KindSystem:
			return errs.Conflict("system_message", "This message was written by the system and cannot be deleted.")
		}
		d := domain.Deletion{At: txn.Current(ctx).Now(), By: who.ID, Kind: domain.DeletedByModerator, Reason: reason}
		if m.AuthorID == who.ID {
			d.Kind = domain.DeletedByAuthor
		}
		return s.delete(ctx, m, d)
	})
}

func (s *Messages) delete(ctx context.Context, m domain.Message, d domain.Deletion) error {
	counted := m.Counts()
	info, err := s.Threads.Info(ctx, m.ThreadID)
	if err != nil {
		return err
	}
	last := info.Counters.LastCountableSeq
	if m.Countable() && m.ThreadSeq == last {
		if last, err = s.Messages.CountableBelow(ctx, m.ThreadID, m.ThreadSeq); err != nil {
			return fmt.Errorf("find the message before: %w", err)
		}
	}
	m.Delete(d)
	if err := s.Messages.Delete(ctx, m); err != nil {
		return fmt.Errorf("delete the message: %w", err)
	}
	thread, err := s.Threads.MessageDeleted(ctx, m.ThreadID, counted, last)
	if err != nil {
		return err
	}
	if err := s.Redactor.Redact(ctx, m.ID); err != nil {
		return fmt.Errorf("take the text out of the log: %w", err)
	}
	if err := s.Log.Append(ctx, event(eventDeleted, m, s.Payloads.Deleted(m, thread.Counters))); err != nil {
		return err
	}
	author := messaging.Author{Kind: actor.Kind(m.AuthorKind), ID: m.AuthorID}
	return txn.Publish(ctx, messaging.MessageDeleted{MessageID: m.ID, ThreadID: m.ThreadID, ChannelID: m.ChannelID, Author: author, RunID: m.RunID})
}
