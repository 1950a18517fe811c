// SPDX-License-Identifier: Apache-2.0

// Package jose reads, makes and verifies compact JSON Web Signatures (RFC 7515) and reads
// JSON Web Keys (RFC 7517) with their thumbprints (RFC 7638). It knows the four algorithms
// the product meets: ES256 and EdDSA, with which it also signs, RS256 and PS256, which
// identity providers use. There is no "none", no HMAC and no key from a header unless the
// caller asks for it, so a token can never choose how it is verified.
package jose

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Algorithm is a JWS algorithm name.
type Algorithm string

// The supported algorithms.
const (
	ES256 Algorithm = "ES256"
	EdDSA Algorithm = "EdDSA"
	RS256 Algorithm = "RS256"
	PS256 Algorithm = "PS256"
)

// MaxTokenBytes bounds what Parse reads.
const MaxTokenBytes = 16 << 10

var (
	// ErrMalformed means that the text is no compact JWS of ours or the key no JWK.
	ErrMalformed = errors.New("malformed")
	// ErrSignature means that the signature does not fit the key.
	ErrSignature = errors.New("signature does not verify")
	// ErrAlgorithm means an algorithm that is unknown or does not fit the key.
	ErrAlgorithm = errors.New("algorithm not acceptable")
)

// Header is the protected header, as far as it is used.
type Header struct {
	Algorithm Algorithm `json:"alg"`
	Type      string    `json:"typ,omitempty"`
	KeyID     string    `json:"kid,omitempty"`
	// Key is the public key of a DPoP proof; other tokens with one are refused by callers.
	Key *JWK `json:"jwk,omitempty"`
	// Critical lists extensions that must be understood. None is, so any entry refuses.
	Critical []string `json:"crit,omitempty"`
}

// Token is a parsed, not yet verified JWS.
type Token struct {
	Header  Header
	Payload []byte
	signed  string
	sig     []byte
}

// Parse reads a compact JWS without verifying it. It never panics, whatever the text.
func Parse(compact string) (*Token, error) {
	if len(compact) > MaxTokenBytes {
		return nil, fmt.Errorf("token of %d bytes: %w", len(compact), ErrMalformed)
	}
	head, rest, ok := strings.Cut(compact, ".")
	if !ok {
		return nil, ErrMalformed
	}
	body, sig, ok := strings.Cut(rest, ".")
	if !ok || strings.Contains(sig, ".") {
		return nil, ErrMalformed
	}
	t := &Token{signed: head + "." + body}
	rawHeader, err := decode(head)
	if err != nil {
		return nil, ErrMalformed
	}
	if t.Payload, err = decode(body); err != nil {
		return nil, ErrMalformed
	}
	if t.sig, err = decode(sig); err != nil || len(t.sig) == 0 {
		return nil, ErrMalformed
	}
	if err := json.Unmarshal(rawHeader, &t.Header); err != nil {
		return nil, ErrMalformed
	}
	if len(t.Header.Critical) > 0 {
		return nil, fmt.Errorf("critical header: %w", ErrMalformed)
	}
	return t, nil
}

// Verify checks the signature with the key. The algorithm must be the one that belongs to
// the key, whatever the header would like.
func (t *Token) Verify(key crypto.PublicKey) error {
	digest := sha256.Sum256([]byte(t.signed))
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if t.Header.Algorithm != ES256 || k.Curve.Params().Name != "P-256" {
			return ErrAlgorithm
		}
		if len(t.sig) != 64 {
			return ErrSignature
		}
		r, s := new(big.Int).SetBytes(t.sig[:32]), new(big.Int).SetBytes(t.sig[32:])
		if !ecdsa.Verify(k, digest[:], r, s) {
			return ErrSignature
		}
	case ed25519.PublicKey:
		if t.Header.Algorithm != EdDSA {
			return ErrAlgorithm
		}
		if len(k) != ed25519.PublicKeySize || !ed25519.Verify(k, []byte(t.signed), t.sig) {
			return ErrSignature
		}
	case *rsa.PublicKey:
		return t.verifyRSA(k, digest[:])
	default:
		return ErrAlgorithm
	}
	return nil
}

// minRSABits refuses keys that RFC 7518, section 3.3 does not allow.
const minRSABits = 2048

func (t *Token) verifyRSA(k *rsa.PublicKey, digest []byte) error {
	if k.N.BitLen() < minRSABits {
		return ErrAlgorithm
	}
	var err error
	switch t.Header.Algorithm {
	case RS256:
		err = rsa.VerifyPKCS1v15(k, crypto.SHA256, digest, t.sig)
	case PS256:
		err = rsa.VerifyPSS(k, crypto.SHA256, digest, t.sig, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	default:
		return ErrAlgorithm
	}
	if err != nil {
		return ErrSignature
	}
	return nil
}

// Sign makes a compact JWS over the payload. The header's algorithm is set from the key,
// which must be an ECDSA P-256 or an Ed25519 key.
func Sign(key crypto.Signer, header Header, payload []byte) (string, error) {
	switch key.(type) {
	case *ecdsa.PrivateKey:
		header.Algorithm = ES256
	case ed25519.PrivateKey:
		header.Algorithm = EdDSA
	default:
		return "", ErrAlgorithm
	}
	head, err := json.Marshal(header)
	if err != nil {
		return "", fmt.Errorf("encode header: %w", err)
	}
	signed := encode(head) + "." + encode(payload)
	sig, err := signature(key, signed)
	if err != nil {
		return "", err
	}
	return signed + "." + encode(sig), nil
}

func signature(key crypto.Signer, signed string) ([]byte, error) {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		if k.Curve.Params().Name != "P-256" {
			return nil, ErrAlgorithm
		}
		digest := sha256.Sum256([]byte(signed))
		r, s, err := ecdsa.Sign(rand.Reader, k, digest[:])
		if err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		sig := make([]byte, 64)
		r.FillBytes(sig[:32])
		s.FillBytes(sig[32:])
		return sig, nil
	case ed25519.PrivateKey:
		return ed25519.Sign(k, []byte(signed)), nil
	default:
		return nil, ErrAlgorithm
	}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// decode is strict: two encodings of one value would be two names of one signed token.
func decode(s string) ([]byte, error) { return base64.RawURLEncoding.Strict().DecodeString(s) }
