// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ListEvents gives the rows that pass the filter, the newest first, and whether there are more.
func (s *Service) ListEvents(ctx context.Context, f EventFilter) (list []domain.Row, more bool, err error) {
	if err := s.mayRead(ctx, authorize.Instance()); err != nil {
		return nil, false, err
	}
	limit := f.Limit
	f.Limit++
	list, err = s.store.Events(ctx, f)
	if err != nil {
		return nil, false, fmt.Errorf("list audit rows: %w", err)
	}
	if len(list) > limit {
		list, more = list[:limit], true
	}
	return list, more, nil
}

// GetEvent gives one row.
func (s *Service) GetEvent(ctx context.Context, id ids.ID) (domain.Row, error) {
	if err := s.mayRead(ctx, authorize.Resource{Kind: authorize.ResourceInstance, ID: id}); err != nil {
		return domain.Row{}, err
	}
	r, found, err := s.store.Event(ctx, id)
	switch {
	case err != nil:
		return domain.Row{}, fmt.Errorf("read an audit row: %w", err)
	case !found:
		return domain.Row{}, errs.NotFound()
	default:
		return r, nil
	}
}

// ListCheckpoints gives checkpoints below a number, the newest first; before is zero for the
// first page.
func (s *Service) ListCheckpoints(ctx context.Context, before int64, limit int) (list []domain.Checkpoint, more bool, err error) {
	if err := s.mayRead(ctx, authorize.Instance()); err != nil {
		return nil, false, err
	}
	list, err = s.store.CheckpointPage(ctx, before, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("list checkpoints: %w", err)
	}
	if len(list) > limit {
		list, more = list[:limit], true
	}
	return list, more, nil
}

// VerifyRecord is Verify for a caller who asks for it, and is recorded itself.
func (s *Service) VerifyRecord(ctx context.Context, from, to int64) (audit.Result, error) {
	if err := s.authz.Authorize(ctx, authorize.ActionAuditVerify, authorize.Instance()); err != nil {
		return audit.Result{}, err
	}
	r, err := s.Verify(ctx, from, to)
	if err != nil {
		return r, err
	}
	return r, s.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionAuditVerify), ResourceKind: string(authorize.ResourceInstance),
		Details: map[string]any{"from_seq": r.FirstSeq, "to_seq": r.LastSeq, "ok": r.OK, "breaks": len(r.Breaks)},
	})
}

// mayRead decides about a read and records it, once per session and hour.
func (s *Service) mayRead(ctx context.Context, r authorize.Resource) error {
	if err := s.authz.Authorize(ctx, authorize.ActionAuditRead, r); err != nil {
		return err
	}
	count, due := s.reads.count(actor.From(ctx), s.clock.Now())
	if !due {
		return nil
	}
	return s.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionAuditRead), ResourceKind: string(authorize.ResourceInstance),
		Details: map[string]any{domain.CountKey: count},
	})
}

const (
	// readWindow is the time in which reads of one session become one row.
	readWindow = time.Hour
	// maxReaders bounds the sessions that are counted at one time.
	maxReaders = 1000
)

// reads counts reads of the record by session, or by API token.
type reads struct {
	mu sync.Mutex
	by map[ids.ID]*reader
}

type reader struct {
	total int
	until time.Time
}

func newReads() *reads { return &reads{by: map[ids.ID]*reader{}} }

// count adds a read. The first one of an hour is due to be recorded, with the number of reads
// so far.
func (r *reads) count(a actor.Actor, now time.Time) (total int, due bool) {
	key := a.SessionID
	if key.IsZero() {
		key = a.TokenID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.by[key]
	if at == nil {
		r.makeRoom(now)
		at = &reader{}
		r.by[key] = at
	}
	at.total++
	if now.Before(at.until) {
		return at.total, false
	}
	at.until = now.Add(readWindow)
	return at.total, true
}

// makeRoom forgets sessions that are past their hour; while none is, it forgets all, which
// costs a few further rows.
func (r *reads) makeRoom(now time.Time) {
	if len(r.by) < maxReaders {
		return
	}
	for key, at := range r.by {
		if !now.Before(at.until) {
			delete(r.by, key)
		}
	}
	if len(r.by) >= maxReaders {
		clear(r.by)
	}
}
