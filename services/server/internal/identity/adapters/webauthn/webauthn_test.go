// SPDX-License-Identifier: Apache-2.0

package webauthn_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/webauthn"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func ceremonies(t testing.TB, extra ...string) *webauthn.Ceremonies {
	t.Helper()
	c, err := webauthn.New(identitytest.Origin+"/", extra)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(challenge domain.Challenge, user []byte) identitytest.Ask {
	return identitytest.Ask{Challenge: challenge[:], RPID: "chat.example", UserID: user}
}

func TestPasskeysOfEveryAlgorithm(t *testing.T) {
	c := ceremonies(t)
	for name, alg := range map[string]int{"ES256": domain.AlgES256, "EdDSA": domain.AlgEdDSA, "RS256": domain.AlgRS256} {
		t.Run(name, func(t *testing.T) {
			person := domain.UserHandle(ids.New())
			a := identitytest.NewAuthenticator()
			a.Alg, a.Counts, a.BackedUp = alg, true, true
			challenge := domain.NewChallenge()
			answer := a.Create(t, ask(challenge, person))
			read, credential, err := c.Read(answer)
			if err != nil || read != challenge {
				t.Fatalf("read %v, %v", read, err)
			}
			made, err := c.Registered(answer, challenge)
			if err != nil {
				t.Fatal(err)
			}
			if made.Alg != alg || string(made.CredentialID) != string(credential) || !made.BackedUp || !made.BackupEligible || made.SignCount != 0 {
				t.Errorf("made %+v", made)
			}
			if err := made.Check(); err != nil {
				t.Error(err)
			}
			next := domain.NewChallenge()
			use, err := c.Used(a.Get(t, ask(next, nil)), next, made.PublicKey)
			if err != nil {
				t.Fatal(err)
			}
			if string(use.UserHandle) != string(person) || use.SignCount != 1 || !use.BackedUp {
				t.Errorf("used %+v", use)
			}
		})
	}
}

// misbehaviours are what neither ceremony accepts.
var misbehaviours = map[string]func(*identitytest.Authenticator){
	"another site":            func(a *identitytest.Authenticator) { a.Origin = "https://chat.example.org" },
	"the host as a subdomain": func(a *identitytest.Authenticator) { a.Origin = "https://evil.chat.example" },
	"another port":            func(a *identitytest.Authenticator) { a.Origin = "https://chat.example:8443" },
	"without encryption":      func(a *identitytest.Authenticator) { a.Origin = "http://chat.example" },
	"no origin":               func(a *identitytest.Authenticator) { a.Origin = "" },
	"a native app nobody named": func(a *identitytest.Authenticator) {
		a.Origin = "android:apk-key-hash:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	},
	"another relying party":       func(a *identitytest.Authenticator) { a.RPID = "example" },
	"framed by another site":      func(a *identitytest.Authenticator) { a.CrossOrigin = true },
	"no person present":           func(a *identitytest.Authenticator) { a.NoUser = true },
	"the person was not verified": func(a *identitytest.Authenticator) { a.NoVerification = true },
	"an old challenge":            func(a *identitytest.Authenticator) { a.Challenge = make([]byte, 32) },
	"an empty challenge":          func(a *identitytest.Authenticator) { a.Challenge = []byte{} },
	"the type of a payment":       func(a *identitytest.Authenticator) { a.Type = "payment.get" },
}

func TestMisbehavingAuthenticatorsAreRefused(t *testing.T) {
	c := ceremonies(t)
	for name, spoil := range misbehaviours {
		t.Run(name, func(t *testing.T) {
			a := identitytest.NewAuthenticator()
			challenge := domain.NewChallenge()
			made, err := c.Registered(a.Create(t, ask(challenge, []byte("x"))), challenge)
			if err != nil {
				t.Fatal(err)
			}
			spoil(a)
			if _, err := c.Used(a.Get(t, ask(challenge, nil)), challenge, made.PublicKey); !errors.Is(err, domain.ErrPasskey) {
				t.Errorf("used: %v", err)
			}
			if _, err := c.Registered(a.Create(t, ask(challenge, []byte("x"))), challenge); !errors.Is(err, domain.ErrPasskey) {
				t.Errorf("registered: %v", err)
			}
		})
	}
}

func TestSignaturesMustFit(t *testing.T) {
	c := ceremonies(t)
	a, other := identitytest.NewAuthenticator(), identitytest.NewAuthenticator()
	challenge := domain.NewChallenge()
	made, err := c.Registered(a.Create(t, ask(challenge, []byte("x"))), challenge)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := c.Registered(other.Create(t, ask(challenge, []byte("x"))), challenge)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Used(a.Get(t, ask(challenge, nil)), challenge, foreign.PublicKey); !errors.Is(err, domain.ErrPasskey) {
		t.Errorf("the key of another passkey: %v", err)
	}
	a.Spoil = true
	if _, err := c.Used(a.Get(t, ask(challenge, nil)), challenge, made.PublicKey); !errors.Is(err, domain.ErrPasskey) {
		t.Errorf("a changed signature: %v", err)
	}
	a.Spoil = false
	if _, err := c.Registered(a.Get(t, ask(challenge, nil)), challenge); !errors.Is(err, domain.ErrPasskey) {
		t.Errorf("a use is no registration: %v", err)
	}
	if _, err := c.Used(a.Create(t, ask(challenge, nil)), challenge, made.PublicKey); !errors.Is(err, domain.ErrPasskey) {
		t.Errorf("a registration is no use: %v", err)
	}
	if _, err := c.Used(a.Get(t, ask(challenge, nil)), challenge, []byte{0xa0}); !errors.Is(err, domain.ErrPasskey) {
		t.Errorf("a key that is none: %v", err)
	}
}

func TestFurtherOrigins(t *testing.T) {
	app := "android:apk-key-hash:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	c := ceremonies(t, "https://mobile.example", app)
	for _, origin := range []string{identitytest.Origin, "https://mobile.example", app} {
		a := identitytest.NewAuthenticator()
		a.Origin = origin
		challenge := domain.NewChallenge()
		if _, err := c.Registered(a.Create(t, ask(challenge, []byte("x"))), challenge); err != nil {
			t.Errorf("%s: %v", origin, err)
		}
	}
}

func TestReadRefusesWhatIsNoAnswer(t *testing.T) {
	c := ceremonies(t)
	for _, text := range []string{
		``, `null`, `[]`, `{}`, `{"rawId":"AA"}`, `{"rawId":"AA","response":{"clientDataJSON":"e30"}}`,
		`{"rawId":"","response":{"clientDataJSON":"eyJjaGFsbGVuZ2UiOiJBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBIn0"}}`,
	} {
		if _, _, err := c.Read(json.RawMessage(text)); !errors.Is(err, domain.ErrPasskey) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, _, err := c.Read(make(json.RawMessage, 64<<10+1)); !errors.Is(err, domain.ErrPasskey) {
		t.Errorf("too long: %v", err)
	}
}

// known is a challenge that every process of a fuzzing run has.
var known = domain.Challenge{1, 2, 3}

// Whatever a client sends, the answer is a refusal or a passkey, never a crash.
func FuzzAnswers(f *testing.F) {
	c := ceremonies(f)
	a := identitytest.NewAuthenticator()
	challenge := known
	created := a.Create(f, ask(challenge, []byte("x")))
	made, err := c.Registered(created, challenge)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(created))
	f.Add([]byte(a.Get(f, ask(challenge, nil))))
	f.Add([]byte(`{"rawId":"AA","id":"AA","type":"public-key","response":{"clientDataJSON":"e30","attestationObject":"oA"}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if _, _, err := c.Read(answer); err != nil && !errors.Is(err, domain.ErrPasskey) {
			t.Errorf("read: %v", err)
		}
		if _, err := c.Registered(answer, challenge); err != nil && !errors.Is(err, domain.ErrPasskey) {
			t.Errorf("registered: %v", err)
		}
		if _, err := c.Used(answer, challenge, made.PublicKey); err != nil && !errors.Is(err, domain.ErrPasskey) {
			t.Errorf("used: %v", err)
		}
	})
}

// The authenticator data and the key come in CBOR inside the answer, so they are fuzzed of
// their own, behind client data that is right.
func FuzzAttestation(f *testing.F) {
	c := ceremonies(f)
	a := identitytest.NewAuthenticator()
	challenge := known
	var shape struct {
		Response struct {
			ClientDataJSON string `json:"clientDataJSON"`
			Object         string `json:"attestationObject"`
		} `json:"response"`
		ID string `json:"id"`
	}
	if err := json.Unmarshal(a.Create(f, ask(challenge, []byte("x"))), &shape); err != nil {
		f.Fatal(err)
	}
	f.Add(shape.Response.Object)
	f.Fuzz(func(t *testing.T, object string) {
		answer, err := json.Marshal(map[string]any{
			"id": shape.ID, "rawId": shape.ID, "type": "public-key",
			"response": map[string]string{"clientDataJSON": shape.Response.ClientDataJSON, "attestationObject": object},
		})
		if err != nil {
			t.Skip()
		}
		if _, err := c.Registered(answer, challenge); err != nil && !errors.Is(err, domain.ErrPasskey) {
			t.Errorf("registered: %v", err)
		}
	})
}
