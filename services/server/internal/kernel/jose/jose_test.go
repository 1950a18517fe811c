// SPDX-License-Identifier: Apache-2.0

package jose_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSignedTokenVerifiesWithItsKeyAlone(t *testing.T) {
	t.Parallel()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"ES256": ecKey(t), "EdDSA": ed} {
		t.Run(name, func(t *testing.T) {
			compact, err := jose.Sign(key, jose.Header{Type: "at+jwt", KeyID: "k"}, []byte(`{"a":1}`))
			if err != nil {
				t.Fatal(err)
			}
			token, err := jose.Parse(compact)
			if err != nil {
				t.Fatal(err)
			}
			if err := token.Verify(key.Public()); err != nil {
				t.Errorf("own key: %v", err)
			}
			if err := token.Verify(ecKey(t).Public()); err == nil {
				t.Error("a foreign key verified the token")
			}
		})
	}
}

func TestChangedTokenDoesNotVerify(t *testing.T) {
	t.Parallel()
	key := ecKey(t)
	compact, err := jose.Sign(key, jose.Header{}, []byte(`{"sub":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(compact, ".")
	other, err := jose.Sign(key, jose.Header{}, []byte(`{"sub":"b"}`))
	if err != nil {
		t.Fatal(err)
	}
	forged := parts[0] + "." + strings.Split(other, ".")[1] + "." + parts[2]
	token, err := jose.Parse(forged)
	if err != nil {
		t.Fatal(err)
	}
	if err := token.Verify(key.Public()); !errors.Is(err, jose.ErrSignature) {
		t.Errorf("got %v, want ErrSignature", err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "two parts": "e30.e30", "four parts": "e30.e30.e30.e30", "no signature": "e30.e30.",
		"padding": "e30=.e30.AA", "header no JSON": "AAAA.e30.AA", "critical": "eyJjcml0IjpbImIiXX0.e30.AA",
		"too long": strings.Repeat("A", jose.MaxTokenBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := jose.Parse(text); !errors.Is(err, jose.ErrMalformed) {
				t.Errorf("got %v, want ErrMalformed", err)
			}
		})
	}
}

func TestAlgorithmOfTheHeaderNeverChoosesTheKey(t *testing.T) {
	t.Parallel()
	compact, err := jose.Sign(ecKey(t), jose.Header{}, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jose.Parse(compact)
	if err != nil {
		t.Fatal(err)
	}
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := token.Verify(pub); !errors.Is(err, jose.ErrAlgorithm) {
		t.Errorf("got %v, want ErrAlgorithm", err)
	}
}

// The key and its thumbprint are the example of RFC 7638, section 3.1.
func TestThumbprintOfRFC7638(t *testing.T) {
	t.Parallel()
	key := jose.JWK{KeyType: "RSA", E: "AQAB", N: "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"}
	got, err := key.Thumbprint()
	if err != nil {
		t.Fatal(err)
	}
	if want := "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"; got != want {
		t.Errorf("thumbprint %q, want %q", got, want)
	}
	if _, err := key.Public(); err != nil {
		t.Errorf("read RSA key: %v", err)
	}
}

func TestJWKRoundTripAndRefusals(t *testing.T) {
	t.Parallel()
	jwk, err := jose.FromPublic(ecKey(t).Public())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jwk.Public(); err != nil {
		t.Fatal(err)
	}
	private := jwk
	private.D = "AA"
	if _, err := private.Public(); err == nil {
		t.Error("a private key was accepted")
	}
	off := jwk
	off.Y = jwk.X
	if _, err := off.Public(); err == nil {
		t.Error("a point off the curve was accepted")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("e30.e30.AA")
	f.Add("eyJhbGciOiJFUzI1NiJ9.e30.AAAA")
	key := ecKey(f)
	f.Fuzz(func(t *testing.T, text string) {
		token, err := jose.Parse(text)
		if err != nil {
			return
		}
		if token.Verify(key.Public()) == nil {
			t.Fatal("a token nobody signed was verified")
		}
		if token.Header.Key != nil {
			_, _ = token.Header.Key.Public()
		}
	})
}

func FuzzJWK(f *testing.F) {
	f.Add([]byte(`{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`))
	f.Add([]byte(`{"kty":"RSA","n":"AQ","e":"AQAB"}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		var key jose.JWK
		if json.Unmarshal(raw, &key) == nil {
			_, _ = key.Public()
			_, _ = key.Thumbprint()
		}
	})
}
