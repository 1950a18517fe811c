// SPDX-License-Identifier: Apache-2.0

// Package webauthn reads and checks what authenticators answer. The library decodes CBOR and
// COSE and verifies signatures; which steps of the two ceremonies are taken, and with what
// expectations, stands here. Attestation is not asked for, so a statement about the make of
// an authenticator is neither verified nor believed.
package webauthn

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"

	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
)

const (
	// maxAnswer bounds an answer; real ones have a few kilobytes.
	maxAnswer = 64 << 10
	// The moduli of RSA keys, in bytes.
	rsaMin, rsaMax = 256, 1024
)

// Ceremonies implements app.PasskeyCeremonies for one relying party.
type Ceremonies struct {
	relyingParty string
	// origins are web origins, opaque those of native apps, which are compared as they are.
	origins, opaque []string
}

var _ app.PasskeyCeremonies = (*Ceremonies)(nil)

// New makes them for a public address. Of the further origins those that begin with https://
// or http:// are web origins.
func New(publicURL string, extraOrigins []string) (*Ceremonies, error) {
	relyingParty, err := domain.RelyingPartyID(publicURL)
	if err != nil {
		return nil, fmt.Errorf("find the relying party of passkeys: %w", err)
	}
	c := &Ceremonies{relyingParty: relyingParty, origins: []string{strings.TrimSuffix(publicURL, "/")}}
	for _, origin := range extraOrigins {
		if strings.HasPrefix(origin, "https://") || strings.HasPrefix(origin, "http://") {
			c.origins = append(c.origins, origin)
			continue
		}
		c.opaque = append(c.opaque, origin)
	}
	return c, nil
}

// Read implements app.PasskeyCeremonies.
func (c *Ceremonies) Read(answer json.RawMessage) (domain.Challenge, []byte, error) {
	if len(answer) > maxAnswer {
		return domain.Challenge{}, nil, refuse("longer than %d bytes", maxAnswer)
	}
	var shape struct {
		RawID    protocol.URLEncodedBase64 `json:"rawId"`
		Response struct {
			ClientDataJSON protocol.URLEncodedBase64 `json:"clientDataJSON"`
		} `json:"response"`
	}
	if err := json.Unmarshal(answer, &shape); err != nil {
		return domain.Challenge{}, nil, refuse("not an answer: %v", err)
	}
	var client struct {
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(shape.Response.ClientDataJSON, &client); err != nil {
		return domain.Challenge{}, nil, refuse("the client data is no JSON object")
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(client.Challenge)
	if err != nil || len(raw) != len(domain.Challenge{}) {
		return domain.Challenge{}, nil, refuse("the challenge is none of ours")
	}
	if len(shape.RawID) == 0 || len(shape.RawID) > domain.CredentialIDMax {
		return domain.Challenge{}, nil, refuse("a credential ID of %d bytes", len(shape.RawID))
	}
	return domain.Challenge(raw), shape.RawID, nil
}

// Registered implements app.PasskeyCeremonies.
func (c *Ceremonies) Registered(answer json.RawMessage, challenge domain.Challenge) (domain.NewPasskey, error) {
	if len(answer) > maxAnswer {
		return domain.NewPasskey{}, refuse("longer than %d bytes", maxAnswer)
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return domain.NewPasskey{}, refuse("not a new passkey: %s", reason(err))
	}
	if err := c.verifyClient(parsed.Response.CollectedClientData, protocol.CreateCeremony, challenge); err != nil {
		return domain.NewPasskey{}, err
	}
	data := parsed.Response.AttestationObject.AuthData
	if err := c.verifyAuthenticator(data); err != nil {
		return domain.NewPasskey{}, err
	}
	if !data.Flags.HasAttestedCredentialData() || string(data.AttData.CredentialID) != string(parsed.RawID) {
		return domain.NewPasskey{}, refuse("the credential is not the one that was made")
	}
	alg, err := algorithm(data.AttData.CredentialPublicKey)
	if err != nil {
		return domain.NewPasskey{}, err
	}
	p := domain.NewPasskey{
		CredentialID: data.AttData.CredentialID, PublicKey: data.AttData.CredentialPublicKey, Alg: alg, SignCount: int64(data.Counter),
		BackupEligible: data.Flags.HasBackupEligible(), BackedUp: data.Flags.HasBackupState(),
	}
	copy(p.AAGUID[:], data.AttData.AAGUID)
	for _, t := range parsed.Response.Transports {
		p.Transports = append(p.Transports, string(t))
	}
	return p, nil
}

// Used implements app.PasskeyCeremonies.
func (c *Ceremonies) Used(answer json.RawMessage, challenge domain.Challenge, publicKey []byte) (domain.PasskeyUse, error) {
	if len(answer) > maxAnswer {
		return domain.PasskeyUse{}, refuse("longer than %d bytes", maxAnswer)
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return domain.PasskeyUse{}, refuse("not a use of a passkey: %s", reason(err))
	}
	if err := c.verifyClient(parsed.Response.CollectedClientData, protocol.AssertCeremony, challenge); err != nil {
		return domain.PasskeyUse{}, err
	}
	data := parsed.Response.AuthenticatorData
	if err := c.verifyAuthenticator(data); err != nil {
		return domain.PasskeyUse{}, err
	}
	if err := verifySignature(parsed, publicKey); err != nil {
		return domain.PasskeyUse{}, err
	}
	return domain.PasskeyUse{
		UserHandle: parsed.Response.UserHandle, SignCount: int64(data.Counter),
		BackupEligible: data.Flags.HasBackupEligible(), BackedUp: data.Flags.HasBackupState(),
	}, nil
}

// verifyClient checks what the browser says: the ceremony, the challenge and the origin. A
// ceremony inside a frame of another site is refused.
func (c *Ceremonies) verifyClient(client protocol.CollectedClientData, ceremony protocol.CeremonyType, challenge domain.Challenge) error {
	expected := base64.RawURLEncoding.EncodeToString(challenge[:])
	err := client.Verify(expected, ceremony, c.origins, c.opaque, nil, protocol.TopOriginExplicitVerificationMode, false)
	if err != nil {
		return refuse("the client data: %s", reason(err))
	}
	return nil
}

// verifyAuthenticator checks the relying party and that the person was present and verified.
func (c *Ceremonies) verifyAuthenticator(data protocol.AuthenticatorData) error {
	hash := sha256.Sum256([]byte(c.relyingParty))
	if err := data.Verify(hash[:], nil, true, true); err != nil {
		return refuse("the authenticator data: %s", reason(err))
	}
	return nil
}

func verifySignature(parsed *protocol.ParsedCredentialAssertionData, publicKey []byte) error {
	key, err := webauthncose.ParsePublicKey(publicKey)
	if err != nil {
		return refuse("the stored key cannot be read: %s", reason(err))
	}
	raw := parsed.Raw.AssertionResponse
	hash := sha256.Sum256(raw.ClientDataJSON)
	signed := append([]byte(raw.AuthenticatorData), hash[:]...)
	if fits, err := webauthncose.VerifySignature(key, signed, parsed.Response.Signature); err != nil || !fits {
		return refuse("the signature does not verify")
	}
	return nil
}

// algorithm reads the COSE algorithm of a key, and refuses keys that are too weak.
func algorithm(publicKey []byte) (int, error) {
	key, err := webauthncose.ParsePublicKey(publicKey)
	if err != nil {
		return 0, refuse("the key cannot be read: %s", reason(err))
	}
	switch k := key.(type) {
	case webauthncose.EC2PublicKeyData:
		return int(k.Algorithm), nil
	case webauthncose.OKPPublicKeyData:
		return int(k.Algorithm), nil
	case webauthncose.RSAPublicKeyData:
		if n := len(k.Modulus); n < rsaMin || n > rsaMax {
			return 0, refuse("an RSA key of %d bytes", n)
		}
		return int(k.Algorithm), nil
	default:
		return 0, refuse("a key of an unknown type")
	}
}

// reason is what the library says without what it was sent.
func reason(err error) string {
	var e *protocol.Error
	if errors.As(err, &e) {
		return e.Details
	}
	return "malformed"
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", domain.ErrPasskey, fmt.Sprintf(format, args...))
}
