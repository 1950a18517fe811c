// SPDX-License-Identifier: Apache-2.0

package bothy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
)

// Key is the key of a device. Whoever has it and the refresh token is this device.
type Key struct {
	private *ecdsa.PrivateKey
	x, y    string
}

// NewKey makes the key of a new device.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a device key: %w", err)
	}
	return newKey(private)
}

// ParseKey reads what Key.PEM wrote.
func ParseKey(text []byte) (*Key, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("device key: no PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("device key: %w", err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("device key: not of the curve P-256")
	}
	return newKey(private)
}

func newKey(private *ecdsa.PrivateKey) (*Key, error) {
	point, err := private.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("device key: %w", err)
	}
	const coordinate = 32
	k := &Key{private: private}
	k.x, k.y = base64url(point[1:1+coordinate]), base64url(point[1+coordinate:])
	return k, nil
}

// PEM is the private key for storing, as PKCS #8. Keep it readable by its user alone.
func (k *Key) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("device key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Thumbprint names the key (RFC 7638).
func (k *Key) Thumbprint() string {
	sum := sha256.Sum256([]byte(`{"crv":"P-256","kty":"EC","x":"` + k.x + `","y":"` + k.y + `"}`))
	return base64url(sum[:])
}

// proof is a DPoP proof (RFC 9449) of one request. token and nonce are optional.
func (k *Key) proof(method, url, nonce, token string, now time.Time) (string, error) {
	header := map[string]any{
		"typ": "dpop+jwt", "alg": "ES256",
		"jwk": map[string]string{"kty": "EC", "crv": "P-256", "x": k.x, "y": k.y},
	}
	claims := map[string]any{"jti": NewID(), "htm": method, "htu": url, "iat": now.Unix()}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64url(sum[:])
	}
	return k.sign(header, claims)
}

func (k *Key) sign(header, claims map[string]any) (string, error) {
	const half = 32
	h, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	c, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := base64url(h) + "." + base64url(c)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	signature := make([]byte, 2*half)
	r.FillBytes(signature[:half])
	s.FillBytes(signature[half:])
	return signed + "." + base64url(signature), nil
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// prover signs requests that have a proof and no token yet: login and refresh. It keeps the newest nonce.
type prover struct {
	key *Key

	mu    sync.Mutex
	nonce string
}

func (p *prover) current() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nonce
}

// Sign implements Credential.
func (p *prover) Sign(_ context.Context, req *http.Request, publicURL string) error {
	proof, err := p.key.proof(req.Method, publicURL, p.current(), "", time.Now())
	if err != nil {
		return &finalError{err}
	}
	req.Header.Set("DPoP", proof)
	return nil
}

// Answer implements Credential.
func (p *prover) Answer(header http.Header, problem *Problem) bool {
	nonce := header.Get("DPoP-Nonce")
	if nonce != "" {
		p.mu.Lock()
		p.nonce = nonce
		p.mu.Unlock()
	}
	return problem != nil && problem.Code == api.ErrorCodeUseDpopNonce && nonce != ""
}

// Identify implements Credential.
func (*prover) Identify(context.Context, string, string, bool) (token, proof string, err error) {
	return "", "", errors.New("not logged in")
}
