// SPDX-License-Identifier: Apache-2.0

// Package identitytest gives tests what a client has: device keys, DPoP proofs and a real
// login against a database. Only test files import it.
//
//	f := identitytest.New(t, pgtest.New(t))
//	ana := f.Owner(t, "ana")          // bootstrapped, enrolled, signed in
//	ctx := ana.Context(t)             // as a request of hers would carry it
//	bob := f.Member(t, ana, "bob")    // created by ana, enrolled, signed in
package identitytest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

// Key is the key of a device.
type Key struct {
	private *ecdsa.PrivateKey
	jwk     jose.JWK
	// JKT is the thumbprint of the key.
	JKT domain.Thumbprint
}

// NewKey makes a device key.
func NewKey(t testing.TB) *Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("identitytest: %v", err)
	}
	jwk, err := jose.FromPublic(&private.PublicKey)
	if err != nil {
		t.Fatalf("identitytest: %v", err)
	}
	text, err := jwk.Thumbprint()
	if err != nil {
		t.Fatalf("identitytest: %v", err)
	}
	jkt, err := domain.ParseThumbprint(text)
	if err != nil {
		t.Fatalf("identitytest: %v", err)
	}
	return &Key{private: private, jwk: jwk, JKT: jkt}
}

// Claims are what a proof says. Zero members are left out, but for the identifier and the
// time, which are filled in.
type Claims struct {
	JTI         string
	Method, URL string
	IssuedAt    time.Time
	Nonce       string
	// AccessToken is bound by its hash.
	AccessToken string
}

// Proof signs a DPoP proof.
func (k *Key) Proof(t testing.TB, c Claims) string {
	t.Helper()
	if c.JTI == "" {
		c.JTI = ids.New().String()
	}
	if c.IssuedAt.IsZero() {
		c.IssuedAt = time.Now()
	}
	claims := map[string]any{"jti": c.JTI, "htm": c.Method, "htu": c.URL, "iat": c.IssuedAt.Unix()}
	if c.Nonce != "" {
		claims["nonce"] = c.Nonce
	}
	if c.AccessToken != "" {
		claims["ath"] = domain.AccessTokenHash(c.AccessToken)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatalf("identitytest: %v", err)
	}
	compact, err := jose.Sign(k.private, jose.Header{Type: "dpop+jwt", Key: &k.jwk}, payload)
	if err != nil {
		t.Fatalf("identitytest: %v", err)
	}
	return compact
}

// SigningKeys implements instance.Keys with one key per purpose, in memory.
type SigningKeys struct {
	mu   sync.Mutex
	keys map[instance.Purpose]*ecdsa.PrivateKey
}

// Sign implements instance.Keys.
func (s *SigningKeys) Sign(_ context.Context, p instance.Purpose, payload []byte) (string, error) {
	key, err := s.key(p)
	if err != nil {
		return "", err
	}
	return jose.Sign(key, jose.Header{Type: "test-" + string(p), KeyID: string(p)}, payload)
}

// Verify implements instance.Keys.
func (s *SigningKeys) Verify(_ context.Context, p instance.Purpose, compact string) ([]byte, error) {
	refused := errs.New(errs.CodeUnauthenticated, "Sign in.")
	key, err := s.key(p)
	if err != nil {
		return nil, err
	}
	token, err := jose.Parse(compact)
	if err != nil || token.Header.KeyID != string(p) || token.Header.Type != "test-"+string(p) {
		return nil, refused
	}
	if err := token.Verify(&key.PublicKey); err != nil {
		return nil, refused.WithCause(err)
	}
	return token.Payload, nil
}

func (s *SigningKeys) key(p instance.Purpose) (*ecdsa.PrivateKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[instance.Purpose]*ecdsa.PrivateKey{}
	}
	if s.keys[p] == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		s.keys[p] = key
	}
	return s.keys[p], nil
}
