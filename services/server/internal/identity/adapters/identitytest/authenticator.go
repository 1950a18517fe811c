// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
)

// Ask is what an authenticator is asked.
type Ask struct {
	Challenge []byte
	RPID      string
	// UserID is set when a passkey is to be made.
	UserID []byte
	// Allow names the credentials to choose from; none for any.
	Allow [][]byte
}

// AskOf is the request of a use case as an authenticator gets it.
func AskOf(r *app.PasskeyRequest) Ask {
	a := Ask{Challenge: r.Challenge[:], RPID: r.RelyingPartyID}
	if r.New != nil {
		a.UserID = domain.UserHandle(r.New.PrincipalID)
		return a
	}
	for _, p := range r.Known {
		a.Allow = append(a.Allow, p.CredentialID)
	}
	return a
}

// AskFrom reads the options of an operation as a browser does.
func AskFrom(t testing.TB, options json.RawMessage) Ask {
	t.Helper()
	var o struct {
		Challenge string `json:"challenge"`
		RPID      string `json:"rpId"`
		RP        struct {
			ID string `json:"id"`
		} `json:"rp"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
		AllowCredentials []struct {
			ID string `json:"id"`
		} `json:"allowCredentials"`
	}
	must(t, json.Unmarshal(options, &o))
	a := Ask{Challenge: unbase64(t, o.Challenge), RPID: o.RPID + o.RP.ID, UserID: unbase64(t, o.User.ID)}
	for _, c := range o.AllowCredentials {
		a.Allow = append(a.Allow, unbase64(t, c.ID))
	}
	return a
}

// Authenticator is a software authenticator with the browser around it. It behaves until a
// field tells it not to.
type Authenticator struct {
	// Alg is the COSE algorithm of new keys.
	Alg int
	// Origin is the page on which the ceremony takes place.
	Origin string
	// RPID overrides the relying party that is signed for.
	RPID string
	// Challenge overrides the challenge that is answered.
	Challenge []byte
	// Type overrides the ceremony that the client data names.
	Type string
	// UserHandle overrides whom a passkey is said to be for.
	UserHandle []byte
	// NoUser leaves out the presence of the person, NoVerification her verification.
	NoUser, NoVerification bool
	// CrossOrigin says that the page is framed by another site.
	CrossOrigin bool
	// Counts makes it keep a counter; BackedUp makes its passkeys copies of a provider.
	Counts, BackedUp bool
	// Spoil changes a signature.
	Spoil bool

	keys []*softKey
}

type softKey struct {
	id, user []byte
	signer   crypto.Signer
	alg      int
	count    uint32
}

// NewAuthenticator makes one with ES256 keys on the page of the instance under test.
func NewAuthenticator() *Authenticator {
	return &Authenticator{Alg: domain.AlgES256, Origin: Origin}
}

// Clone copies the authenticator with its keys and counters, as a thief would.
func (a *Authenticator) Clone() *Authenticator {
	clone := *a
	clone.keys = nil
	for _, k := range a.keys {
		copied := *k
		clone.keys = append(clone.keys, &copied)
	}
	return &clone
}

// Create makes a passkey and answers as PublicKeyCredential.toJSON does.
func (a *Authenticator) Create(t testing.TB, ask Ask) json.RawMessage {
	t.Helper()
	k := &softKey{id: make([]byte, 32), user: ask.UserID, alg: a.Alg}
	_, _ = rand.Read(k.id)
	var err error
	switch a.Alg {
	case domain.AlgEdDSA:
		_, k.signer, err = ed25519.GenerateKey(rand.Reader)
	case domain.AlgRS256:
		k.signer, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		k.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	must(t, err)
	a.keys = append(a.keys, k)
	data := a.authenticatorData(ask, k, 0x40)
	data = append(data, make([]byte, 16)...)
	data = binary.BigEndian.AppendUint16(data, uint16(len(k.id)))
	data = append(append(data, k.id...), coseKey(t, k)...)
	object := cborMap(cborText("fmt"), cborText("none"), cborText("attStmt"), cborMap(), cborText("authData"), cborBytes(data))
	return answer(t, k.id, map[string]any{
		"clientDataJSON": base64url(a.clientData(t, ask, "webauthn.create")), "attestationObject": base64url(object),
		"transports": []string{"internal", "hybrid"},
	})
}

// Get signs a challenge with the newest passkey that may answer.
func (a *Authenticator) Get(t testing.TB, ask Ask) json.RawMessage {
	t.Helper()
	k := a.choose(ask)
	if k == nil {
		t.Fatal("identitytest: the authenticator has no such passkey")
	}
	if a.Counts {
		k.count++
	}
	data, client := a.authenticatorData(ask, k, 0), a.clientData(t, ask, "webauthn.get")
	hash := sha256.Sum256(client)
	signature := sign(t, k, append(bytes.Clone(data), hash[:]...))
	if a.Spoil {
		signature[len(signature)-1] ^= 1
	}
	user := k.user
	if a.UserHandle != nil {
		user = a.UserHandle
	}
	response := map[string]any{
		"clientDataJSON": base64url(client), "authenticatorData": base64url(data), "signature": base64url(signature),
	}
	if len(user) > 0 {
		response["userHandle"] = base64url(user)
	}
	return answer(t, k.id, response)
}

func (a *Authenticator) choose(ask Ask) *softKey {
	for i := len(a.keys) - 1; i >= 0; i-- {
		if len(ask.Allow) == 0 {
			return a.keys[i]
		}
		for _, id := range ask.Allow {
			if bytes.Equal(id, a.keys[i].id) {
				return a.keys[i]
			}
		}
	}
	return nil
}

func (a *Authenticator) authenticatorData(ask Ask, k *softKey, flags byte) []byte {
	id := ask.RPID
	if a.RPID != "" {
		id = a.RPID
	}
	hash := sha256.Sum256([]byte(id))
	if !a.NoUser {
		flags |= 0x01
	}
	if !a.NoVerification {
		flags |= 0x04
	}
	if a.BackedUp {
		flags |= 0x08 | 0x10
	}
	return binary.BigEndian.AppendUint32(append(hash[:], flags), k.count)
}

func (a *Authenticator) clientData(t testing.TB, ask Ask, ceremony string) []byte {
	t.Helper()
	challenge := ask.Challenge
	if a.Challenge != nil {
		challenge = a.Challenge
	}
	if a.Type != "" {
		ceremony = a.Type
	}
	raw, err := json.Marshal(map[string]any{
		"type": ceremony, "challenge": base64url(challenge), "origin": a.Origin, "crossOrigin": a.CrossOrigin,
	})
	must(t, err)
	return raw
}

func sign(t testing.TB, k *softKey, message []byte) []byte {
	t.Helper()
	hash := sha256.Sum256(message)
	digest, how := hash[:], crypto.SignerOpts(crypto.SHA256)
	if k.alg == domain.AlgEdDSA {
		digest, how = message, crypto.Hash(0)
	}
	signature, err := k.signer.Sign(rand.Reader, digest, how)
	must(t, err)
	return signature
}

func coseKey(t testing.TB, k *softKey) []byte {
	t.Helper()
	switch public := k.signer.Public().(type) {
	case ed25519.PublicKey:
		return cborMap(cborInt(1), cborInt(1), cborInt(3), cborInt(domain.AlgEdDSA), cborInt(-1), cborInt(6), cborInt(-2), cborBytes(public))
	case *rsa.PublicKey:
		return cborMap(cborInt(1), cborInt(3), cborInt(3), cborInt(domain.AlgRS256), cborInt(-1), cborBytes(public.N.Bytes()),
			cborInt(-2), cborBytes(big.NewInt(int64(public.E)).Bytes()))
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		must(t, err)
		return cborMap(cborInt(1), cborInt(2), cborInt(3), cborInt(domain.AlgES256), cborInt(-1), cborInt(1),
			cborInt(-2), cborBytes(point[1:33]), cborInt(-3), cborBytes(point[33:]))
	default:
		t.Fatalf("identitytest: a key of type %T", public)
		return nil
	}
}

// The little of CBOR that an authenticator writes (RFC 8949).

func cborHead(major byte, n int) []byte {
	switch {
	case n < 24:
		return []byte{major | byte(n)}
	case n < 1<<8:
		return []byte{major | 24, byte(n)}
	default:
		return binary.BigEndian.AppendUint16([]byte{major | 25}, uint16(n))
	}
}

func cborInt(n int) []byte {
	if n < 0 {
		return cborHead(0x20, -1-n)
	}
	return cborHead(0, n)
}

func cborBytes(b []byte) []byte { return append(cborHead(0x40, len(b)), b...) }

func cborText(s string) []byte { return append(cborHead(0x60, len(s)), s...) }

// cborMap takes keys and values in turn, already encoded and in canonical order.
func cborMap(pairs ...[]byte) []byte {
	return append(cborHead(0xa0, len(pairs)/2), bytes.Join(pairs, nil)...)
}

func answer(t testing.TB, id []byte, response map[string]any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"id": base64url(id), "rawId": base64url(id), "type": "public-key", "authenticatorAttachment": "platform",
		"clientExtensionResults": map[string]any{}, "response": response,
	})
	must(t, err)
	return raw
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func unbase64(t testing.TB, s string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(s)
	must(t, err)
	return raw
}
