// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

const (
	seenQueueMax = 1024
	seenBatchMax = 100
)

// Seen notes when credentials were last used, outside the requests that use them: a
// bounded queue and one goroutine, which Run is. What does not fit the queue is dropped;
// the next use is noted instead.
type Seen struct {
	units      txn.UnitOfWork
	store      Store
	log        *slog.Logger
	idle       time.Duration
	networkKey []byte
	queue      chan Use

	mu      sync.Mutex
	waiting map[ids.ID]struct{}
}

// NewSeen makes the queue; nothing is written before Run.
func NewSeen(cfg Config, units txn.UnitOfWork, store Store, log *slog.Logger) (*Seen, error) {
	key, err := domain.DeriveKey(cfg.CodeHMACKey, "network")
	if err != nil {
		return nil, err
	}
	return &Seen{
		units: units, store: store, log: log, idle: cfg.SessionIdleTTL, networkKey: key,
		queue: make(chan Use, seenQueueMax), waiting: map[ids.ID]struct{}{},
	}, nil
}

// note queues a use, once per credential.
func (s *Seen) note(ctx context.Context, u Use) {
	u.Network = networkPseudonym(s.networkKey, reqmeta.From(ctx).ClientIP)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, queued := s.waiting[u.credential()]; queued {
		return
	}
	select {
	case s.queue <- u:
		s.waiting[u.credential()] = struct{}{}
	default:
	}
}

func (u Use) credential() ids.ID {
	if !u.SessionID.IsZero() {
		return u.SessionID
	}
	return u.TokenID
}

// Run writes queued uses in batches until the context ends; then it writes nothing more.
func (s *Seen) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-s.queue:
			s.write(ctx, s.collect(first))
		}
	}
}

func (s *Seen) collect(first Use) []Use {
	batch := []Use{first}
	for len(batch) < seenBatchMax {
		select {
		case u := <-s.queue:
			batch = append(batch, u)
		default:
			return batch
		}
	}
	return batch
}

// write loses a batch rather than repeating it: the times are for display and for the idle
// end, which lies days away.
func (s *Seen) write(ctx context.Context, batch []Use) {
	err := s.units.Do(ctx, func(ctx context.Context) error { return s.store.NoteUses(ctx, batch, s.idle) })
	if err != nil && ctx.Err() == nil && !errs.Is(err, errs.CodeMaintenance) {
		s.log.Warn("last uses of credentials not noted", "count", len(batch), "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range batch {
		delete(s.waiting, u.credential())
	}
}
