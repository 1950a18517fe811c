// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// flowSecretBytes is the strength of state, nonce, verifier and result code.
const flowSecretBytes = 32

// NewFlowSecret makes a text that nobody can guess: 43 characters of base64url.
func NewFlowSecret() string {
	var raw [flowSecretBytes]byte
	_, _ = rand.Read(raw[:]) // never fails: the runtime ends the process instead
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// IsFlowSecret reports whether a text has the form of NewFlowSecret.
func IsFlowSecret(text string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(raw) == flowSecretBytes
}

// HashText is the SHA-256 under which a secret of a flow is stored.
func HashText(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

var errWrapped = errors.New("not wrapped with this key for this flow")

// Wrap encrypts a secret of a flow with a key of 32 bytes. It opens for the same flow alone.
func Wrap(key, flow []byte, secret string) ([]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	return aead.Seal(nonce, nonce, []byte(secret), flow), nil
}

// Unwrap is the reverse of Wrap.
func Unwrap(key, flow, wrapped []byte) (string, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return "", err
	}
	if len(wrapped) < aead.NonceSize() {
		return "", errWrapped
	}
	plain, err := aead.Open(nil, wrapped[:aead.NonceSize()], wrapped[aead.NonceSize():], flow)
	if err != nil {
		return "", errWrapped
	}
	return string(plain), nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("wrap a secret: %w", err)
	}
	return cipher.NewGCM(block)
}

// AuthorizationRequest is what a browser takes to a provider.
type AuthorizationRequest struct {
	Endpoint, ClientID, RedirectURI string
	Scopes                          []string
	State, Nonce, Verifier          string
	// ACR asks for a way of proving the person, MaxAuthAge for how recent it must be.
	ACR        string
	MaxAuthAge time.Duration
}

// URL is the address of the request. What the endpoint already has in its query stays.
func (r AuthorizationRequest) URL() (string, error) {
	u, err := url.Parse(r.Endpoint)
	if err != nil {
		return "", ErrProviderDocument
	}
	challenge := sha256.Sum256([]byte(r.Verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": r.ClientID, "redirect_uri": r.RedirectURI, "scope": strings.Join(r.Scopes, " "),
		"state": r.State, "nonce": r.Nonce, "code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	if r.ACR != "" {
		q.Set("acr_values", r.ACR)
	}
	if r.MaxAuthAge > 0 {
		q.Set("max_age", strconv.FormatInt(int64(r.MaxAuthAge/time.Second), 10))
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// IssuerFits checks the issuer in a callback (RFC 9207): one that is named must be the one
// the login went to, and one that always names itself must not be missing. A provider that
// is made to answer for another is caught here.
func (m ProviderMetadata) IssuerFits(named string) bool {
	if named == "" {
		return !m.SendsIssuer
	}
	return named == m.Issuer
}
