// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// NewThread describes a thread that begins with a message.
type NewThread struct {
	ChannelID ids.ID
	// ParentID is the message a side thread begins at; zero for a free one or a post.
	ParentID ids.ID
	// Title is empty to take the beginning of the first message.
	Title   string
	Message Draft
}

// CreateThread makes a thread with its first message. Two people who begin a thread at the
// same message meet in one thread.
func (s *Messages) CreateThread(ctx context.Context, n NewThread) (ThreadWritten, error) {
	who := actor.From(ctx)
	if !n.Message.ReplyToID.IsZero() {
		return ThreadWritten{}, errs.Invalid("/message/reply_to_id", "unknown", "A new thread has no message to answer.")
	}
	text, err := s.understand(ctx, who.ID, n.Message.Content, func() (ids.ID, error) { return n.ChannelID, nil })
	if err != nil {
		return ThreadWritten{}, below("/message", err)
	}
	request := n.Message.request(n.ChannelID)
	request.ParentID, request.Title = n.ParentID, n.Title
	hash := request.Hash()
	var out ThreadWritten
	err = s.once(ctx, func(ctx context.Context) error {
		out = ThreadWritten{}
		done, err := s.threadDone(ctx, who.ID, n, hash, &out)
		if done || err != nil {
			return err
		}
		if who.ActingFor != nil && who.ActingFor.ChannelID != n.ChannelID {
			return errs.Forbidden("acting_for_limited")
		}
		thread, created, err := s.openThread(ctx, who, n, text)
		if err != nil {
			return err
		}
		if !created {
			place, err := s.Places.Place(ctx, thread)
			if err != nil {
				return err
			}
			if err := s.withinRun(ctx, who, place); err != nil {
				return err
			}
		}
		m, err := s.place(ctx, n.Message.message(who, thread, hash, text))
		if err != nil {
			return err
		}
		out = ThreadWritten{Written: Written{Message: *m, Warnings: text.Warnings}, Created: created}
		if created && !n.ParentID.IsZero() {
			if err := s.markParent(ctx, n.ParentID, thread); err != nil {
				return err
			}
		}
		out.Thread, err = s.ThreadReads.ThreadPayload(ctx, thread)
		return err
	})
	return out, err
}

// threadDone answers a request that was done before.
func (s *Messages) threadDone(ctx context.Context, author ids.ID, n NewThread, hash []byte, out *ThreadWritten) (bool, error) {
	var sent Sent
	if err := s.Messages.FindSent(ctx, author, n.Message.ClientMsgID, &sent); err != nil {
		return false, fmt.Errorf("look for an earlier send: %w", err)
	}
	channel, err := s.Structure.Channel(ctx, n.ChannelID)
	if sent.ID.IsZero() {
		if err == nil {
			err = s.Authorizer.Authorize(ctx, authorize.ActionThreadCreate, authorize.Channel(channel.ID))
		}
		return false, err
	}
	if out.Written, err = s.repeat(ctx, sent, hash); err != nil {
		return true, err
	}
	out.Thread, err = s.ThreadReads.ThreadPayload(ctx, out.Message.ThreadID)
	return true, err
}

// openThread gives the thread the message goes to: a new one, or the one that begins at the
// parent already.
func (s *Messages) openThread(ctx context.Context, who actor.Actor, n NewThread, text domain.Text) (thread ids.ID, created bool, err error) {
	channel, err := s.Structure.Channel(ctx, n.ChannelID)
	if err != nil {
		return thread, false, err
	}
	if err := s.slowDown(ctx, who, channel); err != nil {
		return thread, false, err
	}
	kind := chat.ThreadSide
	switch {
	case !n.ParentID.IsZero():
		if thread, err = s.parentThread(ctx, n); err != nil || !thread.IsZero() {
			return thread, false, err
		}
	case channel.Kind == "forum":
		kind = chat.ThreadPost
		if n.Title == "" {
			return thread, false, errs.Invalid("/title", "required", "A post needs a title.")
		}
	case n.Title == "":
		return thread, false, errs.Invalid("/title", "required", "A thread that begins at no message needs a title.")
	}
	t := chat.NewThread{ChannelID: n.ChannelID, Kind: kind, ParentMessageID: n.ParentID, CreatedBy: who.ID, Title: n.Title, TitleSource: string(who.Kind)}
	if n.Title == "" {
		t.Title, t.TitleSource = s.autoTitle(text), "auto"
	}
	made, err := s.Threads.Create(ctx, t)
	return made.ID, err == nil, err
}

// parentThread holds the parent message and gives the thread that begins there, if any.
func (s *Messages) parentThread(ctx context.Context, n NewThread) (ids.ID, error) {
	unknown := errs.Invalid("/parent_message_id", "unknown", "There is no such message in this channel.")
	thread, _, err := s.Messages.Place(ctx, n.ParentID)
	if errs.Is(err, errs.CodeNotFound) {
		return ids.ID{}, unknown
	}
	if err != nil {
		return ids.ID{}, err
	}
	info, err := s.Threads.Info(ctx, thread)
	if err != nil {
		return ids.ID{}, err
	}
	switch {
	case info.ChannelID != n.ChannelID:
		return ids.ID{}, unknown
	case info.Kind == chat.ThreadSide:
		return ids.ID{}, errs.Conflict("thread_depth", "A thread cannot begin inside a side thread.")
	}
	if _, err := s.Threads.Lock(ctx, thread); err != nil {
		return ids.ID{}, err
	}
	parent, err := s.locked(ctx, n.ParentID)
	if err != nil {
		return ids.ID{}, err
	}
	if parent.Deleted != nil {
		return ids.ID{}, errDeleted()
	}
	remember(ctx, &parent)
	return parent.StartedThreadID, nil
}

func (s *Messages) markParent(ctx context.Context, parent, thread ids.ID) error {
	m := remembered(ctx, parent)
	if m == nil {
		return errs.Internal(fmt.Errorf("the parent %s was not held", parent))
	}
	if _, err := s.readPlace(ctx, m); err != nil {
		return err
	}
	m.StartedThreadID = thread
	m.Version++
	if err := s.Messages.SetThread(ctx, *m); err != nil {
		return fmt.Errorf("note the thread on its parent: %w", err)
	}
	return s.Log.Append(ctx, event(eventUpdated, *m, s.Payloads.Updated(*m, causeThread, nil)))
}

// autoTitle is the first line of what a preview shows, shortened.
func (s *Messages) autoTitle(text domain.Text) string {
	for _, candidate := range []string{text.Preview, text.Plain, text.Content} {
		line, _, _ := strings.Cut(strings.TrimSpace(candidate), "\n")
		if title := strings.TrimSpace(s.Parser.Cut(strings.ReplaceAll(line, "\t", " "), s.Config.AutoTitleClusters)); title != "" {
			return title
		}
	}
	return "…"
}

// below puts the faults of a member under the member that holds it.
func below(prefix string, err error) error {
	e := errs.As(err)
	if e == nil || len(e.Fields) == 0 {
		return err
	}
	moved := *e
	moved.Fields = make([]errs.Field, len(e.Fields))
	for i, f := range e.Fields {
		f.Pointer = prefix + f.Pointer
		moved.Fields[i] = f
	}
	return &moved
}
