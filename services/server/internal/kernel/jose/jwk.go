// SPDX-License-Identifier: Apache-2.0

package jose

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
)

// JWK is a public key in its JSON form. Members of private keys are not read; a key that
// holds them is refused where it would matter (RFC 9449, section 4.3).
type JWK struct {
	KeyType   string    `json:"kty"`
	Curve     string    `json:"crv,omitempty"`
	X         string    `json:"x,omitempty"`
	Y         string    `json:"y,omitempty"`
	N         string    `json:"n,omitempty"`
	E         string    `json:"e,omitempty"`
	KeyID     string    `json:"kid,omitempty"`
	Use       string    `json:"use,omitempty"`
	Algorithm Algorithm `json:"alg,omitempty"`
	// D is present in private keys alone.
	D string `json:"d,omitempty"`
}

// FromPublic makes the JWK of a public key.
func FromPublic(key crypto.PublicKey) (JWK, error) {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return JWK{}, ErrAlgorithm
		}
		point, err := k.Bytes()
		if err != nil || len(point) != 65 {
			return JWK{}, fmt.Errorf("encode point: %w", ErrMalformed)
		}
		return JWK{KeyType: "EC", Curve: "P-256", X: encode(point[1:33]), Y: encode(point[33:]), Algorithm: ES256}, nil
	case ed25519.PublicKey:
		return JWK{KeyType: "OKP", Curve: "Ed25519", X: encode(k), Algorithm: EdDSA}, nil
	default:
		return JWK{}, ErrAlgorithm
	}
}

// Public reads the key. It refuses points that are not on the curve, private keys and
// types it does not know.
func (j JWK) Public() (crypto.PublicKey, error) {
	if j.D != "" {
		return nil, fmt.Errorf("private key: %w", ErrMalformed)
	}
	switch {
	case j.KeyType == "EC" && j.Curve == "P-256":
		return j.ecdsa()
	case j.KeyType == "OKP" && j.Curve == "Ed25519":
		x, err := decode(j.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, ErrMalformed
		}
		return ed25519.PublicKey(x), nil
	case j.KeyType == "RSA":
		return j.rsa()
	default:
		return nil, ErrAlgorithm
	}
}

func (j JWK) ecdsa() (crypto.PublicKey, error) {
	x, errX := decode(j.X)
	y, errY := decode(j.Y)
	if errX != nil || errY != nil || len(x) != 32 || len(y) != 32 {
		return nil, ErrMalformed
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err != nil {
		return nil, ErrMalformed
	}
	return key, nil
}

func (j JWK) rsa() (crypto.PublicKey, error) {
	n, errN := decode(j.N)
	e, errE := decode(j.E)
	if errN != nil || errE != nil || len(n) == 0 || len(n) > 1024 || len(e) == 0 || len(e) > 4 {
		return nil, ErrMalformed
	}
	exponent := int(new(big.Int).SetBytes(e).Int64())
	if exponent < 3 || exponent%2 == 0 {
		return nil, ErrMalformed
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: exponent}, nil
}

// Thumbprint is the SHA-256 fingerprint of RFC 7638 in base64url; it is the kid of our
// keys and the cnf.jkt of bound tokens.
func (j JWK) Thumbprint() (string, error) {
	// The members in lexicographic order, without white space, as section 3 requires.
	var members any
	switch j.KeyType {
	case "EC":
		members = struct {
			Crv string `json:"crv"`
			Kty string `json:"kty"`
			X   string `json:"x"`
			Y   string `json:"y"`
		}{j.Curve, j.KeyType, j.X, j.Y}
	case "OKP":
		members = struct {
			Crv string `json:"crv"`
			Kty string `json:"kty"`
			X   string `json:"x"`
		}{j.Curve, j.KeyType, j.X}
	case "RSA":
		members = struct {
			E   string `json:"e"`
			Kty string `json:"kty"`
			N   string `json:"n"`
		}{j.E, j.KeyType, j.N}
	default:
		return "", ErrAlgorithm
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return "", fmt.Errorf("encode key: %w", err)
	}
	sum := sha256.Sum256(raw)
	return encode(sum[:]), nil
}
