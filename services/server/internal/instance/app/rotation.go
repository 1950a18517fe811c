// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

const (
	// maxKeys bounds the list of keys; four a year and purpose are made.
	maxKeys = 500
	// orphanAge is how old a file without a row must be before it is removed: its row may
	// still be on its way.
	orphanAge = time.Hour
)

// RotateKeys is the periodic job: it prepares, activates and replaces keys as their age asks
// for, and forgets private halves that sign no more. A purpose that fails does not keep the
// others from rotating.
func (s *Service) RotateKeys(ctx context.Context) error {
	var faults []error
	for _, p := range purposeOrder {
		if err := s.rotateDue(ctx, p); err != nil {
			s.metrics.RotationFailed(ctx, string(p))
			s.log.Error("a signing key cannot be rotated", "purpose", string(p), "error", err)
			faults = append(faults, fmt.Errorf("rotate the key for %s: %w", p, err))
		}
	}
	if err := s.tidyKeys(ctx); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (s *Service) rotateDue(ctx context.Context, p instance.Purpose) error {
	keys, err := s.keysOf(ctx, p)
	if err != nil {
		return err
	}
	if active, _ := domain.Current(keys); active != nil && active.ActivatedAt != nil {
		s.metrics.KeyAge(ctx, string(p), s.now(ctx).Sub(*active.ActivatedAt))
	}
	if s.rotation().Step(keys, s.now(ctx)) == domain.StepNone {
		return nil
	}
	defer s.keys.expire()
	return s.units.Do(ctx, func(ctx context.Context) error {
		// Another worker may have been faster: what is due is decided again under the lock.
		keys, err := s.lockedKeys(ctx, p)
		if err != nil {
			return err
		}
		switch s.rotation().Step(keys, s.now(ctx)) {
		case domain.StepPrepare:
			err = s.addKey(ctx, p, domain.KeyNext, domain.RetiredByRotation)
		case domain.StepActivate:
			err = s.succeed(ctx, p, keys, domain.RetiredByRotation)
		case domain.StepReplace:
			err = s.addKey(ctx, p, domain.KeyActive, domain.RetiredByRotation)
		case domain.StepNone:
			return nil
		}
		if err != nil {
			return err
		}
		return s.tell(ctx, "signing_keys")
	})
}

func (s *Service) rotation() domain.Rotation {
	return domain.Rotation{Interval: s.cfg.RotationInterval, Lead: s.cfg.NextLead}
}

// RotateKey is the act of an owner. It gives the keys of the purpose as they are then.
func (s *Service) RotateKey(ctx context.Context, purpose string, mode domain.RotationMode) (keys []domain.SigningKey, err error) {
	p := instance.Purpose(purpose)
	defer s.keys.expire()
	err = s.units.Do(ctx, func(ctx context.Context) error {
		if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionSigningKeyRotate, authorize.Instance()); err != nil {
			return err
		}
		if _, known := s.purposes()[p]; !known {
			return errs.NotFound()
		}
		have, err := s.lockedKeys(ctx, p)
		if err != nil {
			return err
		}
		if err := s.rotateAs(ctx, p, have, mode); err != nil {
			return err
		}
		if err := s.peers.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionSigningKeyRotate), ResourceKind: string(authorize.ResourceInstance),
			Details: map[string]any{"purpose": purpose, "mode": string(mode)},
		}); err != nil {
			return err
		}
		if keys, err = s.keysOf(ctx, p); err != nil {
			return err
		}
		return s.tell(ctx, "signing_keys")
	})
	return keys, err
}

func (s *Service) rotateAs(ctx context.Context, p instance.Purpose, keys []domain.SigningKey, mode domain.RotationMode) error {
	active, next := domain.Current(keys)
	switch mode {
	case domain.RotateScheduled:
		if next != nil {
			return errs.Conflict("next_exists", "The next key is published already and signs soon.")
		}
		return s.addKey(ctx, p, domain.KeyNext, domain.RetiredManually)
	case domain.RotateNow:
		if next != nil {
			return s.succeed(ctx, p, keys, domain.RetiredManually)
		}
		if active != nil {
			if err := s.retire(ctx, p, *active, domain.RetiredManually); err != nil {
				return err
			}
		}
		return s.addKey(ctx, p, domain.KeyActive, domain.RetiredManually)
	case domain.RotateCompromised:
		// Whoever has read the active key has read the next one beside it.
		for _, k := range []*domain.SigningKey{active, next} {
			if k == nil {
				continue
			}
			if err := s.retire(ctx, p, *k, domain.RetiredCompromised); err != nil {
				return err
			}
		}
		return s.addKey(ctx, p, domain.KeyActive, domain.RetiredCompromised)
	default:
		return errs.Invalid("/mode", "unknown_value", "The mode must be scheduled, now or compromised.")
	}
}

// succeed lets the next key sign. One whose private half is gone is replaced by a new key.
func (s *Service) succeed(ctx context.Context, p instance.Purpose, keys []domain.SigningKey, reason string) error {
	active, next := domain.Current(keys)
	if active != nil {
		if err := s.retire(ctx, p, *active, reason); err != nil {
			return err
		}
	}
	switch _, err := s.keyStore.Load(next.KID); {
	case errors.Is(err, ErrNoFile):
		s.log.Warn("the next signing key has lost its private half", "purpose", string(p), "kid", next.KID)
		if err := s.retire(ctx, p, *next, domain.RetiredLost); err != nil {
			return err
		}
		return s.addKey(ctx, p, domain.KeyActive, reason)
	case err != nil:
		return fmt.Errorf("load the next private key: %w", err)
	}
	if err := s.store.ActivateKey(ctx, next.ID, s.now(ctx)); err != nil {
		return fmt.Errorf("activate a key: %w", err)
	}
	return s.recordTransition(ctx, *next, string(domain.KeyNext), string(domain.KeyActive), reason)
}

// retire ends a key. A compromised one is accepted no more at once.
func (s *Service) retire(ctx context.Context, p instance.Purpose, k domain.SigningKey, reason string) error {
	now := s.now(ctx)
	unpublish, published := s.purposes()[p].UnpublishAt(now), true
	if reason == domain.RetiredCompromised {
		unpublish, published = &now, false
	}
	if err := s.store.RetireKey(ctx, k.ID, reason, now, unpublish, published); err != nil {
		return fmt.Errorf("retire a key: %w", err)
	}
	return s.recordTransition(ctx, k, string(k.State), string(domain.KeyRetired), reason)
}

// addKey makes a key. Its file comes before its row, because a row must never name a key that
// nobody has; a file whose row does not follow is removed later.
func (s *Service) addKey(ctx context.Context, p instance.Purpose, state domain.KeyState, reason string) error {
	rule := s.purposes()[p]
	kid, public, err := s.keyStore.Create(string(rule.Algorithm))
	if err != nil {
		return fmt.Errorf("make a signing key: %w", err)
	}
	jwk, err := jose.FromPublic(public)
	if err != nil {
		return fmt.Errorf("encode a signing key: %w", err)
	}
	now := s.now(ctx)
	k := domain.SigningKey{
		ID: ids.NewAt(now), KID: kid, Purpose: string(p), Algorithm: rule.Algorithm, Public: jwk, State: state, Published: true, CreatedAt: now,
	}
	if state == domain.KeyActive {
		k.ActivatedAt = &now
	}
	if err := s.store.InsertKey(ctx, k); err != nil {
		return err
	}
	return s.recordTransition(ctx, k, "none", string(state), reason)
}

// Accepts reports whether signatures of the key count at the moment.
func (s *Service) Accepts(k domain.SigningKey) bool { return k.Accepted(s.clock.Now()) }

// ListKeys gives the public halves of all keys, the newest first.
func (s *Service) ListKeys(ctx context.Context) ([]domain.SigningKey, error) {
	if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionInstanceSettingsRead, authorize.Instance()); err != nil {
		return nil, err
	}
	keys, err := s.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	slices.Reverse(keys)
	return keys[:min(len(keys), maxKeys)], nil
}

func (s *Service) keysOf(ctx context.Context, p instance.Purpose) ([]domain.SigningKey, error) {
	keys, err := s.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	keys = slices.DeleteFunc(keys, func(k domain.SigningKey) bool { return k.Purpose != string(p) })
	slices.Reverse(keys)
	return keys[:min(len(keys), maxKeys)], nil
}

func (s *Service) lockedKeys(ctx context.Context, p instance.Purpose) ([]domain.SigningKey, error) {
	if err := s.store.LockKeys(ctx, string(p)); err != nil {
		return nil, fmt.Errorf("lock signing keys: %w", err)
	}
	return s.keysOf(ctx, p)
}

// tidyKeys notes keys whose time is over, and removes the private halves of retired keys and of
// keys that never got a row.
func (s *Service) tidyKeys(ctx context.Context) error {
	now := s.now(ctx)
	if err := s.units.Do(ctx, func(ctx context.Context) error { return s.store.UnpublishKeys(ctx, now) }); err != nil {
		return fmt.Errorf("unpublish signing keys: %w", err)
	}
	// The files are listed first: a row that is missing then was never written.
	files, err := s.keyStore.List()
	if err != nil {
		return fmt.Errorf("list the key store: %w", err)
	}
	keys, err := s.store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	rows := make(map[string]domain.SigningKey, len(keys))
	for _, k := range keys {
		rows[k.KID] = k
	}
	var faults []error
	for _, f := range files {
		k, known := rows[f.KID]
		if known && !k.Leftover(now, s.cfg.KeyCacheTTL) || !known && now.Sub(f.MadeAt) < orphanAge {
			continue
		}
		if err := s.keyStore.Remove(f.KID); err != nil {
			faults = append(faults, fmt.Errorf("remove the private key %s: %w", f.KID, err))
		}
	}
	return errors.Join(faults...)
}
