// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

// unknownReloadEvery bounds the reloads that tokens with unknown keys can cause.
const unknownReloadEvery = time.Second

func (s *Service) purposes() map[instance.Purpose]domain.PurposeRule {
	return map[instance.Purpose]domain.PurposeRule{
		instance.PurposeAccess:     {Algorithm: jose.ES256, Type: "at+jwt", InJWKS: true, Accepted: s.cfg.AccessTokenTTL},
		instance.PurposeInvocation: {Algorithm: jose.ES256, Type: "invocation+jwt", InJWKS: true, Accepted: s.cfg.InvocationTokenTTL},
		instance.PurposeCheckpoint: {Algorithm: jose.ES256, Type: "bothy-audit-checkpoint+jws", InJWKS: true, Accepted: -1},
	}
}

// purposeOrder is the order in which keys are made.
var purposeOrder = []instance.Purpose{instance.PurposeAccess, instance.PurposeInvocation, instance.PurposeCheckpoint}

// keySet is what the process knows of the keys at one moment.
type keySet struct {
	byKID    map[string]verifier
	active   map[instance.Purpose]signer
	jwks     []jose.JWK
	loadedAt time.Time
}

type verifier struct {
	key    domain.SigningKey
	public crypto.PublicKey
}

type signer struct {
	kid string
	key crypto.Signer
}

type keyCache struct {
	mu  sync.RWMutex
	set *keySet
	// stale asks for a reload before the time is over.
	stale bool
}

func (c *keyCache) get(now time.Time, ttl time.Duration) *keySet {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.set == nil || c.stale || now.Sub(c.set.loadedAt) >= ttl {
		return nil
	}
	return c.set
}

func (c *keyCache) put(s *keySet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set, c.stale = s, false
}

func (c *keyCache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
}

// keySetNow gives the keys, read again when they are older than ttl.
func (s *Service) keySetNow(ctx context.Context, ttl time.Duration) (*keySet, error) {
	if set := s.keys.get(s.clock.Now(), ttl); set != nil {
		return set, nil
	}
	s.keyLoad.Lock()
	defer s.keyLoad.Unlock()
	now := s.clock.Now()
	if set := s.keys.get(now, ttl); set != nil {
		return set, nil // Another request has just read them.
	}
	rows, err := s.store.Keys(ctx)
	if err != nil {
		return nil, errs.Unavailable(fmt.Errorf("read signing keys: %w", err))
	}
	set, err := s.buildKeySet(rows, now)
	if err != nil {
		return nil, err
	}
	s.keys.put(set)
	return set, nil
}

func (s *Service) buildKeySet(rows []domain.SigningKey, now time.Time) (*keySet, error) {
	set := &keySet{byKID: map[string]verifier{}, active: map[instance.Purpose]signer{}, loadedAt: now}
	rules := s.purposes()
	for _, k := range rows {
		rule, known := rules[instance.Purpose(k.Purpose)]
		if !known || !k.Accepted(now) {
			continue
		}
		public, err := k.Public.Public()
		if err != nil {
			return nil, fmt.Errorf("read the public key %s: %w", k.KID, err)
		}
		set.byKID[k.KID] = verifier{key: k, public: public}
		if rule.InJWKS {
			j := k.Public
			j.KeyID, j.Use, j.Algorithm = k.KID, "sig", k.Algorithm
			set.jwks = append(set.jwks, j)
		}
		if k.State == domain.KeyActive {
			key, err := s.keyStore.Load(k.KID)
			if err != nil {
				return nil, fmt.Errorf("load the private key %s: %w", k.KID, err)
			}
			set.active[instance.Purpose(k.Purpose)] = signer{kid: k.KID, key: key}
		}
	}
	return set, nil
}

// Sign implements instance.Keys.
func (s *Service) Sign(ctx context.Context, p instance.Purpose, payload []byte) (string, error) {
	set, err := s.keySetNow(ctx, s.cfg.KeyCacheTTL)
	if err != nil {
		return "", err
	}
	active, ok := set.active[p]
	if !ok {
		return "", errs.Internal(fmt.Errorf("the purpose %s has no active key", p))
	}
	return jose.Sign(active.key, jose.Header{Type: s.purposes()[p].Type, KeyID: active.kid}, payload)
}

// Verify implements instance.Keys.
func (s *Service) Verify(ctx context.Context, p instance.Purpose, compact string) ([]byte, error) {
	token, err := jose.Parse(compact)
	if err != nil {
		return nil, notOurs(err)
	}
	rule := s.purposes()[p]
	if token.Header.Type != rule.Type || token.Header.Algorithm != rule.Algorithm || token.Header.Key != nil {
		return nil, notOurs(errors.New("the header is not that of the purpose"))
	}
	set, err := s.keySetNow(ctx, s.cfg.KeyCacheTTL)
	if err != nil {
		return nil, err
	}
	v, ok := set.byKID[token.Header.KeyID]
	if !ok {
		// The key may have been made by another process a moment ago.
		if set, err = s.keySetNow(ctx, unknownReloadEvery); err != nil {
			return nil, err
		}
		if v, ok = set.byKID[token.Header.KeyID]; !ok {
			return nil, notOurs(errors.New("unknown key"))
		}
	}
	if v.key.Purpose != string(p) || !v.key.Accepted(s.clock.Now()) {
		return nil, notOurs(errors.New("the key is for something else or no longer accepted"))
	}
	if err := token.Verify(v.public); err != nil {
		return nil, notOurs(err)
	}
	return token.Payload, nil
}

func notOurs(cause error) error {
	return errs.New(errs.CodeUnauthenticated, "The token is not valid.").WithCause(cause)
}

// CheckKeys fails unless every purpose has an active key whose private half is at hand. It
// decides nothing for a caller, so it asks for no right.
func (s *Service) CheckKeys(ctx context.Context) error {
	set, err := s.keySetNow(ctx, s.cfg.KeyCacheTTL)
	if err != nil {
		return err
	}
	for _, p := range purposeOrder {
		if _, ok := set.active[p]; !ok {
			return fmt.Errorf("the purpose %s has no active key", p)
		}
	}
	return nil
}

// JWKS lists the public keys that everybody may verify with.
func (s *Service) JWKS(ctx context.Context) ([]jose.JWK, error) {
	if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionInstanceDiscoveryRead, authorize.Instance()); err != nil {
		return nil, err
	}
	set, err := s.keySetNow(ctx, s.cfg.KeyCacheTTL)
	if err != nil {
		return nil, err
	}
	return set.jwks, nil
}

// VerificationKeys gives the public keys of a purpose by kid, with those that are no longer
// accepted: old checkpoints are verified with them.
func (s *Service) VerificationKeys(ctx context.Context, p instance.Purpose) (map[string]instance.VerificationKey, error) {
	rows, err := s.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	now := s.now(ctx)
	out := map[string]instance.VerificationKey{}
	for _, k := range rows {
		if k.Purpose != string(p) {
			continue
		}
		public, err := k.Public.Public()
		if err != nil {
			return nil, fmt.Errorf("read the public key %s: %w", k.KID, err)
		}
		out[k.KID] = instance.VerificationKey{Key: public, Published: k.Accepted(now)}
	}
	return out, nil
}

// EnsureKeys runs while the process starts: it retires keys whose private half is gone and
// gives every purpose without an active key a new one. When the key store has none of the
// keys, which is how a wrong or empty volume looks, it fails unless the configuration accepts
// the loss.
func (s *Service) EnsureKeys(ctx context.Context) error {
	ctx = actor.With(ctx, actor.System())
	rows, err := s.store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	lost, present, err := s.lostKeys(rows)
	if err != nil {
		return err
	}
	if len(lost) > 0 && present == 0 && !s.cfg.AcceptLostKeys {
		return errors.New("the key store holds none of the signing keys: mount the right folder, or set signing_key.accept_lost_keys to go on with new ones (everybody signs in again)")
	}
	for _, k := range lost {
		if err := s.retireLost(ctx, k); err != nil {
			return err
		}
	}
	for _, p := range purposeOrder {
		if err := s.ensureActive(ctx, p, rows, lost); err != nil {
			return err
		}
	}
	s.keys.expire()
	_, err = s.keySetNow(ctx, s.cfg.KeyCacheTTL)
	return err
}

func (s *Service) lostKeys(rows []domain.SigningKey) (lost []domain.SigningKey, present int, err error) {
	for _, k := range rows {
		if k.State == domain.KeyRetired {
			continue
		}
		switch _, err := s.keyStore.Load(k.KID); {
		case err == nil:
			present++
		case errors.Is(err, ErrNoFile):
			lost = append(lost, k)
		default:
			return nil, 0, fmt.Errorf("load the private key %s: %w", k.KID, err)
		}
	}
	return lost, present, nil
}

func (s *Service) retireLost(ctx context.Context, k domain.SigningKey) error {
	rule := s.purposes()[instance.Purpose(k.Purpose)]
	s.log.Warn("a signing key has lost its private half and retires", "purpose", k.Purpose, "kid", k.KID)
	return s.units.Do(ctx, func(ctx context.Context) error {
		now := s.now(ctx)
		if err := s.store.RetireKey(ctx, k.ID, domain.RetiredLost, now, rule.UnpublishAt(now), true); err != nil {
			return fmt.Errorf("retire a lost key: %w", err)
		}
		return s.recordTransition(ctx, k, string(k.State), string(domain.KeyRetired), domain.RetiredLost)
	})
}

func (s *Service) ensureActive(ctx context.Context, p instance.Purpose, rows, lost []domain.SigningKey) error {
	for _, k := range rows {
		if k.Purpose != string(p) || k.State != domain.KeyActive {
			continue
		}
		gone := false
		for _, l := range lost {
			gone = gone || l.ID == k.ID
		}
		if !gone {
			return nil
		}
	}
	err := s.units.Do(ctx, func(ctx context.Context) error { return s.addKey(ctx, p, domain.KeyActive, "start") })
	if errors.Is(err, ErrActiveExists) {
		return nil // Another process was first; its key lies in the shared store.
	}
	return err
}

// recordTransition names the key by the ID of its row: a kid has no form that the audit log
// allows.
func (s *Service) recordTransition(ctx context.Context, k domain.SigningKey, from, to, reason string) error {
	if s.peers.Audit == nil {
		return nil
	}
	return s.peers.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionSigningKeyTransition), ResourceKind: "signing_key", ResourceID: k.ID,
		Details: map[string]any{"purpose": k.Purpose, "from": from, "to": to, "reason": reason},
	})
}
