// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

const (
	// MaxProofBytes bounds the header DPoP.
	MaxProofBytes = 4 << 10
	proofType     = "dpop+jwt"
	jtiMin        = 16
	jtiMax        = 64
	// proofClockTolerance lets a wrong clock pass: freshness comes from the nonce.
	proofClockTolerance = 24 * time.Hour
)

// ErrProof means that a DPoP proof is not acceptable; the wrapped text says why, for the
// log.
var ErrProof = errors.New("unacceptable DPoP proof")

// Thumbprint is the SHA-256 fingerprint of a device key (RFC 7638).
type Thumbprint [32]byte

// String is the base64url form that tokens carry.
func (t Thumbprint) String() string { return base64.RawURLEncoding.EncodeToString(t[:]) }

// ParseThumbprint reads the base64url form.
func ParseThumbprint(s string) (Thumbprint, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != len(Thumbprint{}) {
		return Thumbprint{}, errors.New("not a thumbprint")
	}
	return Thumbprint(raw), nil
}

// Proof is a DPoP proof whose signature fits its own key and that was made for the
// request at hand. Its nonce and its single use are for the caller to check.
type Proof struct {
	JTI   string
	Nonce string
	Key   jose.JWK
	JKT   Thumbprint
}

// ProofRequest is what a proof must have been made for.
type ProofRequest struct {
	// Method and URL are compared exactly; the URL has neither query nor fragment.
	Method, URL string
	// AccessToken is the token presented with the proof, empty for none.
	AccessToken string
}

type proofClaims struct {
	JTI   string       `json:"jti"`
	HTM   string       `json:"htm"`
	HTU   string       `json:"htu"`
	IAT   *json.Number `json:"iat"`
	Nonce string       `json:"nonce"`
	ATH   string       `json:"ath"`
}

// VerifyProof checks a proof against the request. It never panics, whatever the text, and
// fails with ErrProof for everything that is wrong.
func VerifyProof(compact string, want ProofRequest, now time.Time) (Proof, error) {
	if len(compact) > MaxProofBytes {
		return Proof{}, refuse("longer than %d bytes", MaxProofBytes)
	}
	token, err := jose.Parse(compact)
	if err != nil {
		return Proof{}, refuse("not a signed token")
	}
	jkt, err := verifyProofKey(token)
	if err != nil {
		return Proof{}, err
	}
	claims, err := readProofClaims(token.Payload)
	if err != nil {
		return Proof{}, err
	}
	if err := claims.fit(want, now); err != nil {
		return Proof{}, err
	}
	key := *token.Header.Key
	return Proof{JTI: claims.JTI, Nonce: claims.Nonce, Key: key, JKT: jkt}, nil
}

// verifyProofKey checks the header and the signature with the key in it.
func verifyProofKey(token *jose.Token) (Thumbprint, error) {
	h := token.Header
	switch {
	case h.Type != proofType:
		return Thumbprint{}, refuse("typ is not %s", proofType)
	case h.Algorithm != jose.ES256:
		return Thumbprint{}, refuse("alg is not ES256")
	case h.Key == nil || h.Key.KeyType != "EC" || h.Key.Curve != "P-256":
		return Thumbprint{}, refuse("no P-256 key in the header")
	}
	public, err := h.Key.Public()
	if err != nil {
		return Thumbprint{}, refuse("the key in the header is unusable")
	}
	if err := token.Verify(public); err != nil {
		return Thumbprint{}, refuse("the signature does not verify")
	}
	text, err := h.Key.Thumbprint()
	if err != nil {
		return Thumbprint{}, refuse("the key has no thumbprint")
	}
	jkt, err := ParseThumbprint(text)
	if err != nil {
		return Thumbprint{}, refuse("the key has no thumbprint")
	}
	return jkt, nil
}

func readProofClaims(payload []byte) (proofClaims, error) {
	var c proofClaims
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if err := dec.Decode(&c); err != nil {
		return proofClaims{}, refuse("the claims are no JSON object")
	}
	if dec.More() {
		return proofClaims{}, refuse("something follows the claims")
	}
	return c, nil
}

func (c proofClaims) fit(want ProofRequest, now time.Time) error {
	if len(c.JTI) < jtiMin || len(c.JTI) > jtiMax {
		return refuse("jti must have %d to %d characters", jtiMin, jtiMax)
	}
	if c.HTM != want.Method {
		return refuse("htm is not the method")
	}
	if c.HTU != want.URL {
		return refuse("htu is not the address")
	}
	if c.IAT == nil {
		return refuse("iat is missing")
	}
	iat, err := c.IAT.Float64()
	if err != nil || math.IsInf(iat, 0) || math.Abs(iat-float64(now.Unix())) > proofClockTolerance.Seconds() {
		return refuse("iat is no time near the present")
	}
	if want.AccessToken == "" {
		return nil
	}
	if c.ATH != AccessTokenHash(want.AccessToken) {
		return refuse("ath does not fit the access token")
	}
	return nil
}

// AccessTokenHash is the claim ath of a proof for an access token.
func AccessTokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProof, fmt.Sprintf(format, args...))
}
