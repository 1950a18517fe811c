// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

// TokenFault is why an ID token is refused, as a code for the audit log. People and
// providers never see it.
type TokenFault string

// The faults of ID tokens.
const (
	TokenMalformed  TokenFault = "token_malformed"
	TokenSignature  TokenFault = "token_signature"
	TokenUnknownKey TokenFault = "token_unknown_key"
	TokenIssuer     TokenFault = "token_issuer"
	TokenAudience   TokenFault = "token_audience"
	TokenExpired    TokenFault = "token_expired"
	TokenFuture     TokenFault = "token_future"
	TokenNonce      TokenFault = "token_nonce"
	TokenAuthTime   TokenFault = "token_auth_time"
	TokenSubject    TokenFault = "token_subject"
)

// Error implements error.
func (f TokenFault) Error() string { return string(f) }

// FaultOf is the fault of a refused token, empty for any other error.
func FaultOf(err error) TokenFault {
	var f TokenFault
	if errors.As(err, &f) {
		return f
	}
	return ""
}

// VerifyIDToken checks the signature of an ID token with the keys of its provider and gives
// the payload. A token names its key; TokenUnknownKey means that the keys should be looked
// at anew. Only algorithms that fit a published key pass, so neither "none" nor a key of the
// sender's choice does.
func VerifyIDToken(compact string, keys []ProviderKey) ([]byte, error) {
	token, err := jose.Parse(compact)
	if err != nil || token.Header.Key != nil {
		return nil, TokenMalformed
	}
	candidates := keysFor(token.Header, keys)
	if len(candidates) == 0 {
		return nil, TokenUnknownKey
	}
	for _, k := range candidates {
		if token.Verify(k.Public) == nil {
			return token.Payload, nil
		}
	}
	return nil, TokenSignature
}

// keysFor are the keys the header may mean. A token without kid may mean any that fits.
func keysFor(h jose.Header, keys []ProviderKey) []ProviderKey {
	var out []ProviderKey
	for _, k := range keys {
		fits := slices.Contains(algorithmsOf(k.Public), h.Algorithm) && (k.Algorithm == "" || k.Algorithm == h.Algorithm)
		if fits && (h.KeyID == "" || h.KeyID == k.ID) {
			out = append(out, k)
		}
	}
	return out
}

// IDTokenRules are what an ID token must say.
type IDTokenRules struct {
	Issuer, ClientID string
	// NonceHash is the SHA-256 of the nonce that was sent.
	NonceHash []byte
	// MaxAuthAge is how long ago the provider may have asked the person; zero for no limit.
	MaxAuthAge time.Duration
	// Skew is how far the clocks may differ.
	Skew time.Duration
}

// ClaimValues are the claims of a provider as they came.
type ClaimValues map[string]any

// subjectMax is the longest subject that the specification allows.
const subjectMax = 255

// CheckIDToken checks the claims of a verified ID token.
func CheckIDToken(payload []byte, want IDTokenRules, now time.Time) (ClaimValues, error) {
	claims, err := ParseClaims(payload)
	if err != nil {
		return nil, TokenMalformed
	}
	nonce := sha256.Sum256([]byte(claims.text("nonce")))
	switch {
	case claims.text("iss") != want.Issuer:
		return nil, TokenIssuer
	case !claims.meant(want.ClientID):
		return nil, TokenAudience
	case subtle.ConstantTimeCompare(nonce[:], want.NonceHash) != 1:
		return nil, TokenNonce
	case claims.text("sub") == "" || len(claims.text("sub")) > subjectMax:
		return nil, TokenSubject
	}
	return claims, claims.checkTimes(want, now)
}

func (c ClaimValues) checkTimes(want IDTokenRules, now time.Time) error {
	expires, hasExpires := c.instant("exp")
	issued, hasIssued := c.instant("iat")
	notBefore, hasNotBefore := c.instant("nbf")
	if !hasExpires || !hasIssued || c["nbf"] != nil && !hasNotBefore {
		return TokenMalformed
	}
	switch {
	case !now.Before(expires.Add(want.Skew)):
		return TokenExpired
	case issued.After(now.Add(want.Skew)), hasNotBefore && notBefore.After(now.Add(want.Skew)):
		return TokenFuture
	}
	if want.MaxAuthAge > 0 {
		asked, ok := c.instant("auth_time")
		if !ok || now.Sub(asked) > want.MaxAuthAge+want.Skew {
			return TokenAuthTime
		}
	}
	return nil
}

// ParseClaims reads the claims of a token or of userinfo. Numbers keep their form.
func ParseClaims(raw []byte) (ClaimValues, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var c ClaimValues
	if err := decoder.Decode(&c); err != nil || c == nil || decoder.More() {
		return nil, ErrProviderDocument
	}
	return c, nil
}

// meant reports whether the token is for the client: in its audience, and, when there are
// others or the provider names an authorized party, as that party.
func (c ClaimValues) meant(clientID string) bool {
	var audience []string
	switch v := c["aud"].(type) {
	case string:
		audience = []string{v}
	case []any:
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return false
			}
			audience = append(audience, text)
		}
	}
	if !slices.Contains(audience, clientID) {
		return false
	}
	party, named := c["azp"]
	if len(audience) == 1 && !named {
		return true
	}
	return party == clientID
}

// text is the claim as text; empty when it is something else.
func (c ClaimValues) text(name string) string {
	if name == "" {
		return ""
	}
	text, _ := c[name].(string)
	return text
}

// latest is the last second that is accepted of a provider, the end of the year 9999.
const latest = 253402300799

// instant is the claim as a time.
func (c ClaimValues) instant(name string) (time.Time, bool) {
	number, ok := c[name].(json.Number)
	if !ok {
		return time.Time{}, false
	}
	seconds, err := number.Float64()
	if err != nil || seconds < 0 || seconds > latest {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}
