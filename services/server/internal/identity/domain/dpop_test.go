// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

var proofNow = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// proofOf signs claims as a proof; edit may break header and claims first.
func proofOf(t testing.TB, key *ecdsa.PrivateKey, edit func(h *jose.Header, claims map[string]any)) string {
	t.Helper()
	jwk, err := jose.FromPublic(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	header := jose.Header{Type: "dpop+jwt", Key: &jwk}
	claims := map[string]any{
		"jti": "0123456789abcdef", "htm": "POST", "htu": "https://chat.example/api/v1/auth/login",
		"iat": proofNow.Unix(), "nonce": "n",
	}
	if edit != nil {
		edit(&header, claims)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := jose.Sign(key, header, payload)
	if err != nil {
		t.Fatal(err)
	}
	return compact
}

var wantProof = ProofRequest{Method: "POST", URL: "https://chat.example/api/v1/auth/login"}

func TestProofAccepted(t *testing.T) {
	key := newKey(t)
	for name, edit := range map[string]func(*jose.Header, map[string]any){
		"plain":                   nil,
		"a clock a day behind":    func(_ *jose.Header, c map[string]any) { c["iat"] = proofNow.Add(-23 * time.Hour).Unix() },
		"a clock a day ahead":     func(_ *jose.Header, c map[string]any) { c["iat"] = proofNow.Add(23 * time.Hour).Unix() },
		"a time with a fraction":  func(_ *jose.Header, c map[string]any) { c["iat"] = float64(proofNow.Unix()) + 0.5 },
		"claims nobody asked for": func(_ *jose.Header, c map[string]any) { c["extra"] = true },
		"ath without a token":     func(_ *jose.Header, c map[string]any) { c["ath"] = "x" },
	} {
		proof, err := VerifyProof(proofOf(t, key, edit), wantProof, proofNow)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		jwk, _ := jose.FromPublic(&key.PublicKey)
		want, _ := jwk.Thumbprint()
		if proof.JKT.String() != want || proof.Nonce != "n" || proof.JTI != "0123456789abcdef" {
			t.Errorf("%s: read as %+v", name, proof)
		}
	}
}

func TestProofBoundToAccessToken(t *testing.T) {
	key := newKey(t)
	want := wantProof
	want.AccessToken = "token"
	right := proofOf(t, key, func(_ *jose.Header, c map[string]any) { c["ath"] = AccessTokenHash("token") })
	if _, err := VerifyProof(right, want, proofNow); err != nil {
		t.Fatal(err)
	}
	other := proofOf(t, key, func(_ *jose.Header, c map[string]any) { c["ath"] = AccessTokenHash("other") })
	for name, proof := range map[string]string{"another token": other, "no token": proofOf(t, key, nil)} {
		if _, err := VerifyProof(proof, want, proofNow); !errors.Is(err, ErrProof) {
			t.Errorf("a proof for %s is accepted", name)
		}
	}
}

func TestProofRefused(t *testing.T) {
	key := newKey(t)
	claim := func(name string, value any) func(*jose.Header, map[string]any) {
		return func(_ *jose.Header, c map[string]any) { c[name] = value }
	}
	without := func(name string) func(*jose.Header, map[string]any) {
		return func(_ *jose.Header, c map[string]any) { delete(c, name) }
	}
	for name, edit := range map[string]func(*jose.Header, map[string]any){
		"another method":       claim("htm", "GET"),
		"method in lower case": claim("htm", "post"),
		"another path":         claim("htu", wantProof.URL+"/x"),
		"another origin":       claim("htu", strings.Replace(wantProof.URL, "chat", "evil", 1)),
		"a query":              claim("htu", wantProof.URL+"?a=b"),
		"short jti":            claim("jti", "short"),
		"long jti":             claim("jti", strings.Repeat("j", 65)),
		"no jti":               without("jti"),
		"no iat":               without("iat"),
		"iat as text":          claim("iat", "now"),
		"iat days away":        claim("iat", proofNow.Add(25*time.Hour).Unix()),
		"iat huge":             claim("iat", 1e300),
		"typ of a token":       func(h *jose.Header, _ map[string]any) { h.Type = "at+jwt" },
		"no key":               func(h *jose.Header, _ map[string]any) { h.Key = nil },
		"a private key":        func(h *jose.Header, _ map[string]any) { h.Key.D = "AAAA" },
		"somebody else's key": func(h *jose.Header, _ map[string]any) {
			other, _ := jose.FromPublic(&newKey(t).PublicKey)
			h.Key = &other
		},
		"critical headers": func(h *jose.Header, _ map[string]any) { h.Critical = []string{"x"} },
	} {
		if _, err := VerifyProof(proofOf(t, key, edit), wantProof, proofNow); !errors.Is(err, ErrProof) {
			t.Errorf("%s: accepted (%v)", name, err)
		}
	}
	good := proofOf(t, key, nil)
	head, rest, _ := strings.Cut(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"dpop+jwt","alg":"none"}`))
	for name, compact := range map[string]string{
		"two proofs in one": good + ", " + good, "empty": "", "algorithm none": none + "." + rest,
		"cut signature": good[:len(good)-4], "no signature": head + "." + strings.SplitN(rest, ".", 2)[0] + ".",
		"too long": strings.Repeat("a", MaxProofBytes+1),
	} {
		if _, err := VerifyProof(compact, wantProof, proofNow); !errors.Is(err, ErrProof) {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestProofOnlyES256(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	jwk, err := jose.FromPublic(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	payload := []byte(`{"jti":"0123456789abcdef","htm":"POST","htu":"https://chat.example/api/v1/auth/login","iat":1772600767}`)
	compact, err := jose.Sign(key, jose.Header{Type: "dpop+jwt", Key: &jwk}, payload)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyProof(compact, wantProof, proofNow); !errors.Is(err, ErrProof) {
		t.Fatal("an Ed25519 key is accepted")
	}
}

func FuzzVerifyProof(f *testing.F) {
	key := newKey(f)
	f.Add(proofOf(f, key, nil))
	f.Add("a.b.c")
	f.Add("..")
	f.Fuzz(func(t *testing.T, compact string) {
		proof, err := VerifyProof(compact, wantProof, proofNow)
		if err == nil && (proof.JKT == Thumbprint{} || proof.JTI == "") {
			t.Fatalf("accepted without key or jti: %q", compact)
		}
		if err != nil && !errors.Is(err, ErrProof) {
			t.Fatalf("foreign error %v", err)
		}
	})
}

func TestNonce(t *testing.T) {
	key, err := DeriveKey([]byte("secret of thirty-two bytes or so"), "dpop-nonce")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := DeriveKey([]byte("secret of thirty-two bytes or so"), "another label")
	at := proofNow.Add(123 * time.Millisecond)
	nonce := NewNonce(key, at)
	if got, err := NonceTime(key, nonce); err != nil || !got.Equal(at) {
		t.Fatalf("NonceTime = %v, %v", got, err)
	}
	if NewNonce(key, at) == nonce {
		t.Fatal("two nonces of one moment are equal")
	}
	flipped := "A" + nonce[1:]
	if flipped == nonce {
		flipped = "B" + nonce[1:]
	}
	for name, text := range map[string]string{"foreign": NewNonce(other, at), "changed time": flipped, "empty": "", "cut": nonce[:20]} {
		if _, err := NonceTime(key, text); !errors.Is(err, ErrNonce) {
			t.Errorf("a nonce that is %s is accepted", name)
		}
	}
}
