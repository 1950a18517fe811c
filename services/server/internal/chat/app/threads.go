// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// maxUnread bounds the threads that can be unread for one reader.
const maxUnread = 10000

// Threads has the use cases of threads and implements chat.Threads and chat.Places.
type Threads struct{ Deps }

// NewThreads makes the use cases.
func NewThreads(d Deps) *Threads { return &Threads{d} }

var (
	_ chat.Threads = (*Threads)(nil)
	_ chat.Places  = (*Threads)(nil)
)

// List gives a page of the threads of a channel, newest first.
func (s *Threads) List(ctx context.Context, q ThreadQuery) (list []domain.Thread, err error) {
	err = s.Units.View(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionThreadRead, authorize.Channel(q.ChannelID)); err != nil {
			return err
		}
		if q.Kind == chat.ThreadMain {
			list, err = s.mainOnly(ctx, q)
		} else {
			list, err = s.Threads.List(ctx, q)
		}
		return err
	})
	return list, err
}

func (s *Threads) mainOnly(ctx context.Context, q ThreadQuery) ([]domain.Thread, error) {
	main, err := s.Threads.Main(ctx, q.ChannelID)
	switch {
	case errs.Is(err, errs.CodeNotFound), q.State == domain.StateClosed, q.BeforeAt != nil:
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return []domain.Thread{main}, nil
	}
}

// Get reads one thread.
func (s *Threads) Get(ctx context.Context, id ids.ID) (out domain.Thread, err error) {
	err = s.Units.View(ctx, func(ctx context.Context) error {
		if out, err = s.Threads.Get(ctx, id); err != nil {
			return authorize.Absent(ctx, s.Authorizer, err, authorize.ActionThreadRead, authorize.Thread(id, id))
		}
		return s.Authorizer.Authorize(ctx, authorize.ActionThreadRead, authorize.Thread(id, out.ChannelID))
	})
	return out, err
}

// Info implements chat.Threads.
func (s *Threads) Info(ctx context.Context, id ids.ID) (chat.Thread, error) {
	t, err := s.Threads.Get(ctx, id)
	return portThread(t), err
}

// Read gives a thread to those who show it. It does not authorize.
func (s *Threads) Read(ctx context.Context, id ids.ID) (domain.Thread, error) {
	return s.Threads.Get(ctx, id)
}

// Infos implements chat.Threads.
func (s *Threads) Infos(ctx context.Context, list []ids.ID) (map[ids.ID]chat.Thread, error) {
	found, err := s.Threads.In(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read threads: %w", err)
	}
	out := make(map[ids.ID]chat.Thread, len(found))
	for _, t := range found {
		out[t.ID] = portThread(t)
	}
	return out, nil
}

// Place implements chat.Places.
func (s *Threads) Place(ctx context.Context, id ids.ID) (chat.Place, error) {
	p, err := s.place(ctx, id)
	return chat.Place{Thread: portThread(p.thread), Channel: portChannel(p.channel)}, err
}

// place reads a thread with its channel, once per unit.
func (s *Threads) place(ctx context.Context, id ids.ID) (place, error) {
	if p, ok := heldPlace(ctx, id); ok {
		return p, nil
	}
	u := txn.Current(ctx)
	writing := u != nil && !u.ReadOnly()
	if writing {
		if err := s.Threads.LockPlace(ctx, id); err != nil {
			return place{}, fmt.Errorf("take the place lock: %w", err)
		}
	}
	t, c, err := s.Threads.Place(ctx, id)
	if err != nil {
		return place{}, err
	}
	p := place{thread: t, channel: c}
	if writing {
		holdPlace(ctx, p)
	}
	return p, nil
}

// Lock implements chat.Threads.
func (s *Threads) Lock(ctx context.Context, id ids.ID) (chat.Thread, error) {
	forgetPlace(ctx, id)
	if err := s.Threads.LockPlace(ctx, id); err != nil {
		return chat.Thread{}, fmt.Errorf("take the place lock: %w", err)
	}
	if err := s.Threads.LockRow(ctx, id); err != nil {
		return chat.Thread{}, fmt.Errorf("lock the thread: %w", err)
	}
	p, err := s.place(ctx, id)
	if err != nil {
		return chat.Thread{}, err
	}
	return portThread(p.thread), mayWriteIn(p.channel)
}

// Create implements chat.Threads.
func (s *Threads) Create(ctx context.Context, n chat.NewThread) (chat.Thread, error) {
	if err := s.Channels.LockShared(ctx, n.ChannelID); err != nil {
		return chat.Thread{}, fmt.Errorf("take the place lock: %w", err)
	}
	c, err := s.Channels.Get(ctx, n.ChannelID)
	if err != nil {
		return chat.Thread{}, err
	}
	if err := mayWriteIn(c); err != nil {
		return chat.Thread{}, err
	}
	if n.TitleSource != domain.TitleAuto {
		var faults errs.Validation
		n.Title = s.names().Title(&faults, "/title", n.Title)
		if err := faults.Err(); err != nil {
			return chat.Thread{}, err
		}
	}
	now := txn.Current(ctx).Now()
	if n.ID.IsZero() {
		n.ID = ids.NewAt(now)
	}
	t := domain.Thread{
		ID: n.ID, ChannelID: c.ID, SpaceID: c.SpaceID, Kind: n.Kind, ParentMessageID: n.ParentMessageID, Title: n.Title, TitleSource: n.TitleSource,
		State: domain.StateOpen, Counters: domain.Counters{First: 1, LastMessageAt: now}, ActiveAt: now, CreatedBy: n.CreatedBy, CreatedAt: now, Version: 1,
	}
	if err := s.Threads.Insert(ctx, t); err != nil {
		return chat.Thread{}, fmt.Errorf("insert the thread: %w", err)
	}
	holdPlace(ctx, place{thread: t, channel: c})
	return portThread(t), s.Log.Append(ctx, s.threadEvent(eventThreadCreated, t))
}

// AppendToThread implements chat.Threads.
func (s *Threads) AppendToThread(ctx context.Context, id ids.ID, messageKind string, author actor.Kind) (chat.Appended, error) {
	p, err := s.place(ctx, id)
	if err != nil {
		return chat.Appended{}, err
	}
	if err := mayWriteIn(p.channel); err != nil {
		return chat.Appended{}, err
	}
	at := txn.Current(ctx).Now()
	t, wasClosed, err := s.Threads.Append(ctx, id, domain.Countable(messageKind), domain.Reopens(messageKind, string(author)), at)
	if err != nil {
		return chat.Appended{}, fmt.Errorf("number the message: %w", err)
	}
	if t.ChannelID != p.channel.ID {
		// The thread lies elsewhere now; what was decided for the old place does not count.
		return chat.Appended{}, txn.ErrRetry
	}
	t.SpaceID = p.channel.SpaceID
	holdPlace(ctx, place{thread: t, channel: p.channel})
	out := chat.Appended{Thread: portThread(t), ThreadSeq: t.Counters.Last, Reopened: wasClosed && t.State == domain.StateOpen}
	if out.Reopened {
		err = s.Log.Append(ctx, s.threadEvent(eventThreadReopened, t))
	}
	return out, err
}

// MessageDeleted implements chat.Threads.
func (s *Threads) MessageDeleted(ctx context.Context, id ids.ID, countable bool, lastCountable int64) (chat.Thread, error) {
	if !countable {
		return s.Info(ctx, id)
	}
	t, err := s.Threads.Forget(ctx, id, lastCountable)
	if err != nil {
		return chat.Thread{}, fmt.Errorf("take the message out of the counters: %w", err)
	}
	if p, ok := heldPlace(ctx, id); ok {
		t.SpaceID = p.channel.SpaceID
		holdPlace(ctx, place{thread: t, channel: p.channel})
	}
	return portThread(t), nil
}

// UnreadCandidates implements chat.Threads.
func (s *Threads) UnreadCandidates(ctx context.Context, channels []ids.ID) ([]chat.Thread, error) {
	found, err := s.Threads.OfChannels(ctx, channels, maxUnread)
	if err != nil {
		return nil, fmt.Errorf("list threads that can be unread: %w", err)
	}
	out := make([]chat.Thread, len(found))
	for i, t := range found {
		out[i] = portThread(t)
	}
	return out, nil
}

func portThread(t domain.Thread) chat.Thread {
	return chat.Thread{
		ID: t.ID, ChannelID: t.ChannelID, SpaceID: t.SpaceID, Kind: t.Kind, Title: t.Title, ParentMessageID: t.ParentMessageID,
		Closed: t.State == domain.StateClosed, CreatedBy: t.CreatedBy, CreatedAt: t.CreatedAt,
		Counters: chat.Counters{
			Rev: t.Counters.Rev, FirstThreadSeq: t.Counters.First, LastThreadSeq: t.Counters.Last,
			LastCountableSeq: t.Counters.LastCountable, MessageCount: t.Counters.Messages, LastMessageAt: t.Counters.LastMessageAt,
		},
	}
}

func portChannel(c domain.Channel) chat.Channel {
	return chat.Channel{
		ID: c.ID, SpaceID: c.SpaceID, Kind: c.Kind, Name: c.Name, MainThreadID: c.MainThreadID, Archived: c.Archived(), ReadOnly: c.ReadOnly,
		OperatorID: c.Operator(), TriggerRule: c.Behavior.TriggerRule, AgentChaining: c.Behavior.AgentChaining, AgentSources: c.Behavior.AgentSources,
		ConfigVersion: c.ConfigVersion, Prompt: c.Behavior.Prompt, SlowModeSeconds: c.SlowModeSeconds,
	}
}

// Snapshot gives visible threads for the snapshot.
func (s *Threads) Snapshot(ctx context.Context, targets []ids.ID, since time.Time, after ids.ID, limit int) ([]domain.Thread, error) {
	scope, err := s.Authorizer.Scope(ctx, authorize.ActionThreadRead)
	if err != nil {
		return nil, fmt.Errorf("find the visible threads: %w", err)
	}
	return s.Threads.ByID(ctx, Snapshot{Visible: scope, Targets: targets, After: after, Limit: limit}, since)
}

// Snapshot gives visible channels for the snapshot.
func (s *Channels) Snapshot(ctx context.Context, targets []ids.ID, after ids.ID, limit int) ([]domain.Channel, error) {
	scope, err := s.Authorizer.Scope(ctx, authorize.ActionChannelRead)
	if err != nil {
		return nil, fmt.Errorf("find the visible channels: %w", err)
	}
	return s.Channels.ByID(ctx, Snapshot{Visible: scope, Targets: targets, After: after, Limit: limit})
}

// Snapshot gives visible spaces for the snapshot.
func (s *Spaces) Snapshot(ctx context.Context, targets []ids.ID, after ids.ID, limit int) ([]domain.Space, error) {
	scope, err := s.Authorizer.Scope(ctx, authorize.ActionSpaceRead)
	if err != nil {
		return nil, fmt.Errorf("find the visible spaces: %w", err)
	}
	list, err := s.Spaces.ByID(ctx, Snapshot{Visible: scope, Targets: targets, After: after, Limit: limit})
	for i := range list {
		list[i] = shown(scope, list[i])
	}
	return list, err
}
