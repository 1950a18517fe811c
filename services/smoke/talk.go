// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/gateway"
)

func (s *story) talk(ctx context.Context) (err error) {
	if s.message, err = s.owner.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "Good morning, **Bob**."}); err != nil {
		return err
	}
	created, err := await(ctx, s.bob, gateway.MessageCreated, func(d *api.MessageCreatedData) bool { return d.Message.ID == s.message.ID })
	if err != nil {
		return err
	}
	if created.Message.Content != "Good morning, **Bob**." || created.Message.ThreadSeq != s.message.ThreadSeq {
		return fmt.Errorf("it arrived as %q, number %d", created.Message.Content, created.Message.ThreadSeq)
	}
	page, err := s.bob.ListMessages(ctx, s.thread, bothy.MessageRange{})
	if err != nil {
		return err
	}
	if n := len(page.Items); n == 0 || page.Items[n-1].ID != s.message.ID {
		return fmt.Errorf("it is not the newest of %d messages", n)
	}
	return nil
}

func (s *story) repeat(ctx context.Context) error {
	in := api.CreateMessageRequest{ClientMsgID: bothy.NewID(), Content: "once"}
	first, err := s.owner.CreateMessage(ctx, s.thread, in)
	if err != nil {
		return err
	}
	second, err := s.owner.CreateMessage(ctx, s.thread, in)
	if err != nil {
		return err
	}
	if first.ID != second.ID || first.ThreadSeq != second.ThreadSeq {
		return fmt.Errorf("it is %s and %s", first.ID, second.ID)
	}
	in.Content = "twice"
	if _, err = s.owner.CreateMessage(ctx, s.thread, in); want(err, api.ErrorCodeIdempotencyKeyReuse, "") != nil {
		return fmt.Errorf("another text under the same ID: %w", orNone(err))
	}
	fits := func(d *api.MessageCreatedData) bool { return d.Message.ID == first.ID }
	if _, err := await(ctx, s.bob, gateway.MessageCreated, fits); err != nil {
		return err
	}
	if n := seen(s.bob, gateway.MessageCreated, fits); n != 1 {
		return fmt.Errorf("it arrived %d times", n)
	}
	return nil
}

func (s *story) readStates(ctx context.Context) error {
	snapshot, err := s.bob.Snapshot(ctx, "")
	if err != nil {
		return err
	}
	unread := -1
	for _, r := range snapshot.Sections.ReadStates {
		if r.ThreadID == s.thread {
			unread = r.UnreadCount
		}
	}
	if unread != 2 {
		return fmt.Errorf("%d unread in the snapshot instead of 2", unread)
	}
	page, err := s.bob.ListMessages(ctx, s.thread, bothy.MessageRange{Limit: 1})
	if err != nil {
		return err
	}
	last := page.Counters.LastThreadSeq
	state, err := s.bob.UpdateReadState(ctx, s.thread, api.UpdateReadStateRequest{LastReadThreadSeq: last})
	if err != nil {
		return err
	}
	if state.UnreadCount != 0 || state.LastReadThreadSeq != last {
		return fmt.Errorf("%d unread after reading up to %d of %d", state.UnreadCount, state.LastReadThreadSeq, last)
	}
	if state, err = s.bob.MarkThreadUnread(ctx, s.thread, last); err != nil {
		return err
	}
	if state.UnreadCount != 1 {
		return fmt.Errorf("%d unread after marking the last", state.UnreadCount)
	}
	_, err = await(ctx, s.bob, gateway.ReadStateUpdated, func(d *api.ReadStateUpdatedData) bool {
		for _, r := range d.ReadStates {
			if r.ThreadID == s.thread && r.ManuallyUnreadFrom != nil && *r.ManuallyUnreadFrom == last {
				return true
			}
		}
		return false
	})
	return err
}

func (s *story) edit(ctx context.Context) error {
	text := "Good morning, Bob!"
	edited, err := s.owner.UpdateMessage(ctx, s.message.ID, api.UpdateMessageRequest{Content: &text}, bothy.IfMatch(s.message.Version))
	if err != nil {
		return err
	}
	if edited.EditedAt == nil || edited.Version <= s.message.Version {
		return fmt.Errorf("version %d, edited at %v", edited.Version, edited.EditedAt)
	}
	_, err = await(ctx, s.bob, gateway.MessageUpdated, func(d *api.MessageUpdatedData) bool {
		return d.Message.ID == s.message.ID && d.Message.Content == text
	})
	return err
}

func (s *story) staleEdit(ctx context.Context) error {
	text := "late"
	_, err := s.owner.UpdateMessage(ctx, s.message.ID, api.UpdateMessageRequest{Content: &text}, bothy.IfMatch(s.message.Version))
	if err := want(err, api.ErrorCodeVersionConflict, ""); err != nil {
		return err
	}
	_, err = s.owner.UpdateMessage(ctx, s.message.ID, api.UpdateMessageRequest{Content: &text})
	if err := want(err, api.ErrorCodePreconditionRequired, ""); err != nil {
		return err
	}
	_, err = s.bob.UpdateMessage(ctx, s.message.ID, api.UpdateMessageRequest{Content: &text}, bothy.IfMatch(s.message.Version+1))
	return want(err, api.ErrorCodeForbidden, "")
}

func (s *story) remove(ctx context.Context) error {
	if err := s.owner.DeleteMessage(ctx, s.message.ID, ""); err != nil {
		return err
	}
	gone, err := await(ctx, s.bob, gateway.MessageDeleted, func(d *api.MessageDeletedData) bool { return d.Message.ID == s.message.ID })
	if err != nil {
		return err
	}
	if gone.Message.Content != "" || gone.Message.Deleted == nil {
		return errors.New("the event still has the text")
	}
	return nil
}

func (s *story) sideThread(ctx context.Context) error {
	parent, err := s.owner.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "A question apart."})
	if err != nil {
		return err
	}
	side, err := s.bob.CreateThread(ctx, s.channel.ID, api.CreateThreadRequest{ParentMessageID: &parent.ID, Message: api.CreateMessageRequest{Content: "An answer apart."}})
	if err != nil {
		return err
	}
	if _, err := await(ctx, s.owner, gateway.ThreadCreated, func(d *api.Thread) bool { return d.ID == side.Thread.ID }); err != nil {
		return err
	}
	_, err = await(ctx, s.owner, gateway.MessageCreated, func(d *api.MessageCreatedData) bool { return d.Message.ThreadID == side.Thread.ID })
	return err
}

func (s *story) refresh(ctx context.Context) error {
	before := s.bob.session.State()
	if err := s.bob.session.Refresh(ctx); err != nil {
		return err
	}
	if s.bob.session.State().RefreshToken == before.RefreshToken {
		return errors.New("the refresh token is the same")
	}
	_, err := s.bob.Self(ctx)
	return err
}

func (s *story) wrongPassword(ctx context.Context) error {
	c, err := bothy.New(s.in.url)
	if err != nil {
		return err
	}
	key, err := bothy.NewKey()
	if err != nil {
		return err
	}
	for _, login := range []string{"bob", "nobody"} {
		_, err = c.LoginWithPassword(ctx, key, device, login, "wrong password")
		if err := want(err, api.ErrorCodeUnauthenticated, "login_failed"); err != nil {
			return err
		}
	}
	// A new device of a person waits for approval, unless the instance is set up otherwise.
	session, err := c.LoginWithPassword(ctx, key, device, "bob", password)
	var pending *bothy.PendingError
	if errors.As(err, &pending) {
		return nil
	}
	if err != nil {
		return err
	}
	return session.Logout(ctx)
}
