// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/url"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

var (
	// ErrProviderDocument means that a provider answered with something unusable.
	ErrProviderDocument = errors.New("the document of the provider is malformed")
	// ErrIssuerMismatch means that the metadata speaks for another provider.
	ErrIssuerMismatch = errors.New("the metadata names another issuer")
)

// ProviderMetadata is what a provider says about itself.
type ProviderMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	UserInfoEndpoint      string   `json:"userinfo_endpoint"`
	JWKSURI               string   `json:"jwks_uri"`
	ClaimsSupported       []string `json:"claims_supported"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	// SendsIssuer says that every answer to the browser names the issuer (RFC 9207), so one
	// without it is not from this provider.
	SendsIssuer bool `json:"authorization_response_iss_parameter_supported"`
}

// ParseMetadata reads the discovery document of the issuer.
func ParseMetadata(raw []byte, issuer string) (ProviderMetadata, error) {
	var m ProviderMetadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return ProviderMetadata{}, ErrProviderDocument
	}
	if m.Issuer != issuer {
		return ProviderMetadata{}, ErrIssuerMismatch
	}
	for _, required := range []string{m.AuthorizationEndpoint, m.TokenEndpoint, m.JWKSURI} {
		if !endpoint(required, issuer) {
			return ProviderMetadata{}, ErrProviderDocument
		}
	}
	if m.UserInfoEndpoint != "" && !endpoint(m.UserInfoEndpoint, issuer) {
		return ProviderMetadata{}, ErrProviderDocument
	}
	return m, nil
}

// endpoint accepts absolute addresses without a fragment, over https unless the issuer
// itself is reached over plain http, as on a developer's machine.
func endpoint(text, issuer string) bool {
	u, err := url.Parse(text)
	base, errBase := url.Parse(issuer)
	if err != nil || errBase != nil || u.Host == "" || u.Fragment != "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && base.Scheme == "http"
}

// Unsupported gives the problems of signing in with the metadata, as codes.
func (m ProviderMetadata) Unsupported(clientAuth string) []string {
	var out []string
	if m.ChallengeMethods != nil && !slices.Contains(m.ChallengeMethods, "S256") {
		out = append(out, "pkce_unsupported")
	}
	methods := m.TokenAuthMethods
	if methods == nil {
		methods = []string{ClientSecretBasic}
	}
	if clientAuth != ClientPublic && !slices.Contains(methods, clientAuth) {
		out = append(out, "client_auth_unsupported")
	}
	return out
}

// ProviderKey is a key with which a provider signs.
type ProviderKey struct {
	ID        string
	Algorithm jose.Algorithm
	Public    crypto.PublicKey
}

// maxProviderKeys bounds the keys of one provider.
const maxProviderKeys = 50

// ParseKeySet reads a JWK set and keeps the keys that can verify an ID token. Others are
// left out, as the specification asks: a provider may publish keys for other uses.
func ParseKeySet(raw []byte) ([]ProviderKey, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &document); err != nil || document.Keys == nil || len(document.Keys) > maxProviderKeys {
		return nil, ErrProviderDocument
	}
	keys := []ProviderKey{}
	for _, one := range document.Keys {
		var k jose.JWK
		if json.Unmarshal(one, &k) != nil || k.Use != "" && k.Use != "sig" {
			continue
		}
		public, err := k.Public()
		if err != nil {
			continue
		}
		if algorithms := algorithmsOf(public); k.Algorithm == "" || slices.Contains(algorithms, k.Algorithm) {
			keys = append(keys, ProviderKey{ID: k.KeyID, Algorithm: k.Algorithm, Public: public})
		}
	}
	return keys, nil
}

func algorithmsOf(key crypto.PublicKey) []jose.Algorithm {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		return []jose.Algorithm{jose.ES256}
	case ed25519.PublicKey:
		return []jose.Algorithm{jose.EdDSA}
	case *rsa.PublicKey:
		if k.N.BitLen() < 2048 {
			return nil
		}
		return []jose.Algorithm{jose.RS256, jose.PS256}
	default:
		return nil
	}
}

// AlgorithmName is the algorithm the key verifies: the one it was published for, or the one
// that its kind suggests.
func (k ProviderKey) AlgorithmName() string {
	if k.Algorithm != "" {
		return string(k.Algorithm)
	}
	if fits := algorithmsOf(k.Public); len(fits) > 0 {
		return string(fits[0])
	}
	return ""
}
