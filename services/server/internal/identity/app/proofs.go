// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// nonceRefreshAge is how old a presented nonce may be before answers carry a fresh one.
const nonceRefreshAge = time.Minute

// Proofs checks DPoP proofs: form, nonce and single use. Nonces are stateless; which
// proofs were used is in memory, bounded, and in buckets by the second of the nonce. When
// the bound is reached, the oldest bucket goes and its nonces are no longer accepted, so
// the window shrinks and never opens.
type Proofs struct {
	clock  clock.Clock
	key    []byte
	origin string
	ttl    time.Duration
	max    int

	mu      sync.Mutex
	buckets map[int64]map[replayKey]struct{}
	count   int
	// floor is the first second whose nonces are accepted.
	floor int64
}

type replayKey [16]byte

// NewProofs makes an empty memory. The configuration must be valid.
func NewProofs(cfg Config, clk clock.Clock) (*Proofs, error) {
	key, err := domain.DeriveKey(cfg.CodeHMACKey, "dpop-nonce")
	if err != nil {
		return nil, err
	}
	p := &Proofs{
		clock: clk, key: key, origin: cfg.origin(), ttl: cfg.DPoPNonceTTL, max: cfg.DPoPReplayMax,
		buckets: map[int64]map[replayKey]struct{}{},
	}
	if cfg.SingleNode {
		p.floor = clk.Now().Unix()
	}
	return p, nil
}

// Origin is the public address that the htu of proofs begins with.
func (p *Proofs) Origin() string { return p.origin }

// Nonce makes a fresh nonce.
func (p *Proofs) Nonce() string {
	now := p.clock.Now()
	p.mu.Lock()
	floor := p.floor
	p.mu.Unlock()
	if now.Unix() < floor {
		now = time.Unix(floor, 0)
	}
	return domain.NewNonce(p.key, now)
}

// Verify checks a proof and uses it up. It fails with invalid_dpop_proof, or with
// use_dpop_nonce and a fresh nonce in the extension dpop_nonce, which costs the client one
// repetition and nothing else.
func (p *Proofs) Verify(compact string, want domain.ProofRequest) (domain.Proof, error) {
	now := p.clock.Now()
	proof, err := domain.VerifyProof(compact, want, now)
	if err != nil {
		return domain.Proof{}, errInvalidProof(err)
	}
	at, ok := p.accepted(proof.Nonce, now)
	if !ok {
		return domain.Proof{}, p.needNonce()
	}
	switch p.use(proof, at, now) {
	case useNonceOver:
		return domain.Proof{}, p.needNonce()
	case useReplay:
		return domain.Proof{}, errInvalidProof(errors.New("the proof was used before"))
	}
	return proof, nil
}

// Renewal gives a fresh nonce when the one in a proof is older than a minute, missing or not
// ours; empty otherwise. needed tells that the proof cannot be accepted without it. It uses
// nothing up.
func (p *Proofs) Renewal(nonce string) (fresh string, needed bool) {
	now := p.clock.Now()
	at, ok := p.accepted(nonce, now)
	if ok && now.Sub(at) < nonceRefreshAge {
		return "", false
	}
	return p.Nonce(), !ok
}

// accepted gives the time of a nonce of ours that is not over.
func (p *Proofs) accepted(nonce string, now time.Time) (time.Time, bool) {
	at, err := domain.NonceTime(p.key, nonce)
	if err != nil || now.Sub(at) >= p.ttl || at.Sub(now) >= p.ttl {
		return time.Time{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return at, at.Unix() >= p.floor
}

type useResult int

const (
	useFirst useResult = iota
	useReplay
	useNonceOver
)

func (p *Proofs) use(proof domain.Proof, nonceAt, now time.Time) useResult {
	hash := sha256.Sum256(append(proof.JKT[:], proof.JTI...))
	key := replayKey(hash[:16])
	second := nonceAt.Unix()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(now.Add(-p.ttl).Unix())
	if second < p.floor {
		return useNonceOver
	}
	bucket := p.buckets[second]
	if _, used := bucket[key]; used {
		return useReplay
	}
	for p.count >= p.max {
		p.dropOldest()
	}
	if second < p.floor {
		return useNonceOver
	}
	if bucket = p.buckets[second]; bucket == nil {
		bucket = map[replayKey]struct{}{}
		p.buckets[second] = bucket
	}
	bucket[key] = struct{}{}
	p.count++
	return useFirst
}

// forget drops the buckets whose nonces are too old to be accepted anyway.
func (p *Proofs) forget(before int64) {
	for second, bucket := range p.buckets {
		if second < before {
			p.count -= len(bucket)
			delete(p.buckets, second)
		}
	}
}

func (p *Proofs) dropOldest() {
	seconds := make([]int64, 0, len(p.buckets))
	for second := range p.buckets {
		seconds = append(seconds, second)
	}
	oldest := slices.Min(seconds)
	p.count -= len(p.buckets[oldest])
	delete(p.buckets, oldest)
	p.floor = max(p.floor, oldest+1)
}

func (p *Proofs) needNonce() error {
	return errs.New(errs.CodeUseDPoPNonce, "Repeat the request with the nonce of this answer.").With("dpop_nonce", p.Nonce())
}

func errInvalidProof(cause error) error {
	return errs.New(errs.CodeInvalidDPoPProof, "The proof of the device key is not acceptable.").WithCause(cause)
}
