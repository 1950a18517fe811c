// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// IdempotencyConfig is how long and how much is remembered.
type IdempotencyConfig struct {
	TTL          time.Duration `key:"sync.idempotency_ttl" default:"24h" min:"1h" max:"720h" doc:"How long the answer of a repeatable write is kept."`
	MaxBodyBytes int           `key:"sync.idempotency_max_body_bytes" type:"bytes" default:"262144" min:"4096" max:"4194304" doc:"Larger answers are kept as their location only."`
	CleanupBatch int           `key:"sync.idempotency_cleanup_batch_size" default:"1000" min:"100" max:"10000" doc:"Expired rows deleted at once."`
}

// StoredKey is a key as the table holds it.
type StoredKey struct {
	RequestHash [32]byte
	Completed   bool
	Answer      idempotency.Answer
}

// KeyRepository keeps keys.
type KeyRepository interface {
	// Claim makes the row; claimed is false when a live one exists. It waits for a twin that
	// is running, and fails with request_in_progress when that takes too long.
	Claim(ctx context.Context, k idempotency.Key, now, expires time.Time) (claimed bool, err error)
	Get(ctx context.Context, k idempotency.Key) (StoredKey, error)
	Complete(ctx context.Context, k idempotency.Key, a idempotency.Answer) error
	StoreFinal(ctx context.Context, k idempotency.Key, a idempotency.Answer, now, expires time.Time) error
	DeleteExpired(ctx context.Context, before time.Time, limit int) (int64, error)
}

// Idempotency implements idempotency.Store.
type Idempotency struct {
	config IdempotencyConfig
	keys   KeyRepository
	units  txn.UnitOfWork
}

// NewIdempotency makes the store.
func NewIdempotency(config IdempotencyConfig, keys KeyRepository, units txn.UnitOfWork) *Idempotency {
	return &Idempotency{config: config, keys: keys, units: units}
}

// Begin implements idempotency.Store.
func (s *Idempotency) Begin(ctx context.Context, k idempotency.Key) (*idempotency.Answer, error) {
	now := txn.Current(ctx).Now()
	claimed, err := s.keys.Claim(ctx, k, now, now.Add(s.config.TTL))
	if err != nil {
		return nil, fmt.Errorf("claim the key: %w", err)
	}
	if claimed {
		return nil, nil
	}
	stored, err := s.keys.Get(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("read the stored answer: %w", err)
	}
	if stored.RequestHash != k.RequestHash {
		return nil, errs.New(errs.CodeIdempotencyKeyReuse, "This Idempotency-Key belongs to another request. Use a new key.")
	}
	if !stored.Completed {
		return nil, errs.New(errs.CodeRequestInProgress, "The same request is still running. Repeat it shortly.").WithRetryAfter(time.Second)
	}
	return &stored.Answer, nil
}

// Complete implements idempotency.Store. A body that is too large is left out: the answer
// then leads to the resource by its location.
func (s *Idempotency) Complete(ctx context.Context, k idempotency.Key, a idempotency.Answer) error {
	return s.keys.Complete(ctx, k, s.storable(a))
}

// CompleteFailed implements idempotency.Store.
func (s *Idempotency) CompleteFailed(ctx context.Context, k idempotency.Key, a idempotency.Answer) error {
	return s.units.Do(ctx, func(ctx context.Context) error {
		now := txn.Current(ctx).Now()
		return s.keys.StoreFinal(ctx, k, s.storable(a), now, now.Add(s.config.TTL))
	})
}

func (s *Idempotency) storable(a idempotency.Answer) idempotency.Answer {
	if a.SecretShown || len(a.Body) > s.config.MaxBodyBytes {
		a.Body = nil
	}
	return a
}

// Cleanup deletes expired keys in batches and returns how many. Repeating it is harmless.
func (s *Idempotency) Cleanup(ctx context.Context, now time.Time) (int64, error) {
	var total int64
	for {
		var n int64
		err := s.units.Do(ctx, func(ctx context.Context) (err error) {
			n, err = s.keys.DeleteExpired(ctx, now, s.config.CleanupBatch)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("delete expired keys: %w", err)
		}
		total += n
		if n < int64(s.config.CleanupBatch) {
			return total, nil
		}
	}
}
