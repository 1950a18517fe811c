// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/sync"
	"github.com/OWNER/bothy/services/server/internal/sync/domain"
)

// ReadStateConfig is how unread messages are counted.
type ReadStateConfig struct {
	CountCap     int           `key:"sync.unread_count_cap" default:"1000" min:"10" max:"100000" doc:"Unread messages are counted up to here."`
	UnreadWindow time.Duration `key:"sync.unread_window" default:"336h" min:"1h" max:"8760h" doc:"Threads older than this that a person has never opened count as read."`
}

// StoredReadState is a row with the time of its last change.
type StoredReadState struct {
	domain.ReadState
	UpdatedAt time.Time
}

// ReadStateRepository keeps read positions.
type ReadStateRepository interface {
	// Lock reads the row of a person and thread and holds it; ok is false without one.
	Lock(ctx context.Context, principal, thread ids.ID) (r StoredReadState, ok bool, err error)
	ByThreads(ctx context.Context, principal ids.ID, threads []ids.ID) (map[ids.ID]StoredReadState, error)
	// Post queues the position of an author; whatever stood there, the row then has no manual
	// mark and the next version.
	Post(ctx context.Context, principal ids.ID, r domain.ReadState, at time.Time) error
	// Save queues the row.
	Save(ctx context.Context, principal ids.ID, r domain.ReadState, at time.Time) error
	// Baseline inserts rows for threads that have none.
	Baseline(ctx context.Context, principal ids.ID, states []domain.ReadState, at time.Time) error
}

// ReadStates keeps how far people have read.
type ReadStates struct {
	config     ReadStateConfig
	units      txn.UnitOfWork
	authorizer authorize.Authorizer
	threads    chat.Threads
	mentions   messaging.Mentions
	rows       ReadStateRepository
	log        eventlog.Appender
}

// NewReadStates makes the use cases.
func NewReadStates(config ReadStateConfig, units txn.UnitOfWork, authorizer authorize.Authorizer, threads chat.Threads,
	mentions messaging.Mentions, rows ReadStateRepository, log eventlog.Appender,
) *ReadStates {
	return &ReadStates{config: config, units: units, authorizer: authorizer, threads: threads, mentions: mentions, rows: rows, log: log}
}

// Update moves the position of the actor forward; clearMark removes a manual mark as well.
// Nothing that changes nothing is an event.
func (s *ReadStates) Update(ctx context.Context, thread ids.ID, upTo int64, clearMark bool) (sync.ReadState, error) {
	return s.change(ctx, thread, authorize.ActionReadStateUpdate, func(r *domain.ReadState, t chat.Thread) (bool, error) {
		return r.Read(upTo, t.Counters.LastThreadSeq, clearMark, domain.OriginUser), nil
	})
}

// MarkUnread makes everything from a message on unread, until the person reads on.
func (s *ReadStates) MarkUnread(ctx context.Context, thread ids.ID, from int64) (sync.ReadState, error) {
	return s.change(ctx, thread, authorize.ActionReadStateMarkUnread, func(r *domain.ReadState, t chat.Thread) (bool, error) {
		if from < 1 || from > t.Counters.LastThreadSeq {
			return false, errs.Invalid("/from_thread_seq", "out_of_range", fmt.Sprintf("The thread has messages 1 to %d.", t.Counters.LastThreadSeq))
		}
		return r.MarkUnread(from), nil
	})
}

func (s *ReadStates) change(ctx context.Context, thread ids.ID, action authorize.Action,
	apply func(*domain.ReadState, chat.Thread) (bool, error),
) (sync.ReadState, error) {
	var out sync.ReadState
	err := s.units.Do(ctx, func(ctx context.Context) error {
		t, err := s.threads.Info(ctx, thread)
		if err != nil {
			return err
		}
		if err := s.authorizer.Authorize(ctx, action, authorize.Thread(t.ID, t.ChannelID)); err != nil {
			return err
		}
		me := actor.From(ctx).ID
		row, found, err := s.rows.Lock(ctx, me, thread)
		if err != nil {
			return fmt.Errorf("lock the read position: %w", err)
		}
		now := txn.Current(ctx).Now()
		if !found {
			row = StoredReadState{ReadState: s.initial(me, t, now), UpdatedAt: now}
		}
		changed, err := apply(&row.ReadState, t)
		if err != nil {
			return err
		}
		if changed {
			row.UpdatedAt = now
			if err := s.rows.Save(ctx, me, row.ReadState, now); err != nil {
				return fmt.Errorf("save the read position: %w", err)
			}
		}
		list, err := s.counted(ctx, me, []chat.Thread{t}, map[ids.ID]StoredReadState{thread: row}, now)
		if err != nil {
			return err
		}
		out = list[0]
		if !changed {
			return nil
		}
		return s.append(ctx, me, t, out)
	})
	return out, err
}

func (s *ReadStates) append(ctx context.Context, me ids.ID, t chat.Thread, r sync.ReadState) error {
	return s.log.Append(ctx, eventlog.Event{
		Type: "read_state.updated", PrincipalID: me,
		Place:    eventlog.Place{SpaceID: t.SpaceID, ChannelID: t.ChannelID, ThreadID: t.ID},
		Resource: eventlog.Resource{Type: "read_state", ID: t.ID},
		Payload:  map[string]any{"read_states": []sync.ReadState{r}},
	})
}

// initial is the position of somebody who has none in a thread (rule R1 of chapter 04).
func (s *ReadStates) initial(principal ids.ID, t chat.Thread, now time.Time) domain.ReadState {
	r := domain.ReadState{ThreadID: t.ID, ChannelID: t.ChannelID, LastRead: t.Counters.LastThreadSeq, Origin: domain.OriginBaseline}
	fresh := t.CreatedAt.After(now.Add(-s.config.UnreadWindow)) && t.CreatedAt.After(principal.Time())
	if t.Kind != chat.ThreadMain && fresh {
		r.LastRead = 0
	}
	return r
}

// ForThreads gives the read states of the actor for threads, with counts.
func (s *ReadStates) ForThreads(ctx context.Context, principal ids.ID, threads []chat.Thread, now time.Time) ([]sync.ReadState, error) {
	list := make([]ids.ID, len(threads))
	for i, t := range threads {
		list[i] = t.ID
	}
	rows, err := s.rows.ByThreads(ctx, principal, list)
	if err != nil {
		return nil, fmt.Errorf("read the read positions: %w", err)
	}
	return s.counted(ctx, principal, threads, rows, now)
}

func (s *ReadStates) counted(ctx context.Context, principal ids.ID, threads []chat.Thread, rows map[ids.ID]StoredReadState, now time.Time) ([]sync.ReadState, error) {
	states := make([]StoredReadState, len(threads))
	var queries []messaging.UnreadQuery
	for i, t := range threads {
		row, ok := rows[t.ID]
		if !ok {
			row = StoredReadState{ReadState: s.initial(principal, t, now), UpdatedAt: t.CreatedAt}
		}
		states[i] = row
		if t.Counters.LastCountableSeq > row.Position() {
			queries = append(queries, messaging.UnreadQuery{ThreadID: t.ID, Above: row.Position()})
		}
	}
	counts := map[ids.ID]messaging.Unread{}
	if len(queries) > 0 {
		var err error
		if counts, err = s.mentions.UnreadCounts(ctx, principal, queries, s.config.CountCap); err != nil {
			return nil, fmt.Errorf("count what is unread: %w", err)
		}
	}
	out := make([]sync.ReadState, len(threads))
	for i, t := range threads {
		out[i] = present(states[i], t, counts[t.ID])
	}
	return out, nil
}

func present(r StoredReadState, t chat.Thread, unread messaging.Unread) sync.ReadState {
	out := sync.ReadState{
		ThreadID: t.ID, ChannelID: t.ChannelID, LastReadThreadSeq: r.LastRead, UnreadCount: unread.Count, UnreadCapped: unread.Capped,
		MentionCount: unread.Mentions, AsOfThreadSeq: t.Counters.LastThreadSeq, Version: r.Version, UpdatedAt: r.UpdatedAt,
	}
	if r.UnreadFrom > 0 {
		out.ManuallyUnreadFrom = &r.UnreadFrom
	}
	if unread.Count > 0 || r.UnreadFrom > 0 {
		first := r.Position() + 1
		out.FirstUnread = &first
	}
	return out
}

// OnMessagePosted lets the author of a message have read everything up to it (rule R4 of
// chapter 04). There is no event of its own: message.created says it to the author's devices.
func (s *ReadStates) OnMessagePosted(ctx context.Context, e messaging.MessagePosted) error {
	if e.Message.Author.Kind != actor.KindPerson {
		return nil
	}
	position := domain.ReadState{ThreadID: e.Message.ThreadID, ChannelID: e.Message.ChannelID, LastRead: e.Message.ThreadSeq, Origin: domain.OriginPost}
	if err := s.rows.Post(ctx, e.Message.Author.ID, position, txn.Current(ctx).Now()); err != nil {
		return fmt.Errorf("save the author's read position: %w", err)
	}
	return nil
}
