// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
)

// keyRing has one key of each kind. A rotation makes a new ring with new names.
type keyRing struct {
	name   string
	ec     *ecdsa.PrivateKey
	hidden *ecdsa.PrivateKey
	ed     ed25519.PrivateKey
	rsa    *rsa.PrivateKey
}

func newKeyRing() (*keyRing, error) {
	ec, errEC := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	hidden, errHidden := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, ed, errEd := ed25519.GenerateKey(rand.Reader)
	rsaKey, errRSA := rsa.GenerateKey(rand.Reader, 2048)
	for _, err := range []error{errEC, errHidden, errEd, errRSA} {
		if err != nil {
			return nil, fmt.Errorf("make keys: %w", err)
		}
	}
	return &keyRing{name: random()[:8], ec: ec, hidden: hidden, ed: ed, rsa: rsaKey}, nil
}

func b64(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// published is the key set. Like those of real providers it has a key for another use.
func (k *keyRing) published() []claims {
	point, err := k.ec.PublicKey.Bytes()
	if err != nil {
		panic(err) // A key that was made a moment ago has a point.
	}
	return []claims{
		{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": k.name + "-ec", "x": b64(point[1:33]), "y": b64(point[33:])},
		{"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": k.name + "-ed", "x": b64(k.ed.Public().(ed25519.PublicKey))},
		{"kty": "RSA", "use": "sig", "kid": k.name + "-rsa", "n": b64(k.rsa.N.Bytes()), "e": b64(big.NewInt(int64(k.rsa.E)).Bytes())},
		{"kty": "RSA", "use": "enc", "kid": k.name + "-enc", "n": b64(k.rsa.N.Bytes()), "e": b64(big.NewInt(int64(k.rsa.E)).Bytes())},
	}
}

// sign makes a token, in a bad way when the behaviour says so.
func (k *keyRing) sign(payload claims, does behaviour) (string, error) {
	algorithm, kid := "ES256", k.name+"-ec"
	switch does.Algorithm {
	case "RS256", "PS256", "HS256":
		algorithm, kid = does.Algorithm, k.name+"-rsa"
	case "EdDSA":
		algorithm, kid = does.Algorithm, k.name+"-ed"
	case "none":
		algorithm = "none"
	}
	if does.KeyID != "" {
		kid = does.KeyID
	}
	head, err := json.Marshal(claims{"alg": algorithm, "typ": "JWT", "kid": kid})
	if err != nil {
		return "", fmt.Errorf("encode the header: %w", err)
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("encode the claims: %w", err)
	}
	signed := b64(head) + "." + b64(body)
	signature, err := k.signature(algorithm, does.Unpublished, signed)
	return signed + "." + b64(signature), err
}

func (k *keyRing) signature(algorithm string, unpublished bool, signed string) ([]byte, error) {
	digest := sha256.Sum256([]byte(signed))
	switch algorithm {
	case "none":
		return nil, nil
	case "EdDSA":
		return ed25519.Sign(k.ed, []byte(signed)), nil
	case "RS256":
		return rsa.SignPKCS1v15(rand.Reader, k.rsa, crypto.SHA256, digest[:])
	case "PS256":
		return rsa.SignPSS(rand.Reader, k.rsa, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	case "HS256":
		// The classic confusion: the published key taken as a shared secret.
		public, err := x509.MarshalPKIXPublicKey(&k.rsa.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("encode the public key: %w", err)
		}
		mac := hmac.New(sha256.New, public)
		mac.Write([]byte(signed))
		return mac.Sum(nil), nil
	}
	key := k.ec
	if unpublished {
		key = k.hidden
	}
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	raw := make([]byte, 64)
	r.FillBytes(raw[:32])
	s.FillBytes(raw[32:])
	return raw, nil
}
