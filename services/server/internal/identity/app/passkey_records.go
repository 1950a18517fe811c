// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Passkey is a living passkey of a person.
type Passkey struct {
	ID, PrincipalID ids.ID
	// CredentialID is how the authenticator knows it, PublicKey its key in COSE form.
	CredentialID, PublicKey  []byte
	Alg                      int
	SignCount                int64
	AAGUID                   [16]byte
	Transports               []string
	BackupEligible, BackedUp bool
	Name                     string
	CreatedAt                time.Time
	LastUsedAt               *time.Time
}

func (p Passkey) state() domain.PasskeyState {
	return domain.PasskeyState{PrincipalID: p.PrincipalID, SignCount: p.SignCount, BackupEligible: p.BackupEligible}
}

// ChallengeKind is the ceremony a challenge was made for.
type ChallengeKind string

// The ceremonies.
const (
	ChallengeLogin    ChallengeKind = "passkey_login"
	ChallengeRegister ChallengeKind = "passkey_register"
	ChallengeStepUp   ChallengeKind = "step_up"
)

// Challenge is a stored challenge. It belongs to a flow, to a session, or to both.
type Challenge struct {
	ID                             ids.ID
	Kind                           ChallengeKind
	FlowID, SessionID, PrincipalID ids.ID
	Value                          domain.Challenge
	ExpiresAt                      time.Time
	Consumed                       bool
}

// PasskeyRequest is what an authenticator is asked: to sign a challenge with a passkey, or
// to make one for a person.
type PasskeyRequest struct {
	Challenge      domain.Challenge
	RelyingPartyID string
	ExpiresAt      time.Time
	// Known are the passkeys to choose from when signing and to leave alone when making
	// one. At a login it is empty, whoever is meant: nothing tells which names exist.
	Known []Passkey
	// New is set when a passkey is to be made.
	New *NewPasskeyFor
}

// NewPasskeyFor names whom a passkey is made for.
type NewPasskeyFor struct {
	PrincipalID         ids.ID
	Handle, DisplayName string
	// InstanceName is how the authenticator names the relying party.
	InstanceName string
}

// PasskeyCeremonies reads and checks the answers of authenticators. Its errors are
// domain.ErrPasskey for everything that is wrong with an answer. The adapter webauthn
// implements it.
type PasskeyCeremonies interface {
	// Read gives what an answer of either ceremony says about itself; nothing is verified.
	Read(answer json.RawMessage) (challenge domain.Challenge, credentialID []byte, err error)
	// Registered verifies the answer to a request for a new passkey.
	Registered(answer json.RawMessage, challenge domain.Challenge) (domain.NewPasskey, error)
	// Used verifies the answer to a challenge with a stored public key.
	Used(answer json.RawMessage, challenge domain.Challenge, publicKey []byte) (domain.PasskeyUse, error)
}

// Passkeys are passkeys and challenges.
type Passkeys interface {
	InsertChallenge(ctx context.Context, c Challenge) error
	ChallengeByValue(ctx context.Context, value domain.Challenge) (c Challenge, found bool, err error)
	// ConsumeChallenge is false when it was consumed before or is over.
	ConsumeChallenge(ctx context.Context, id ids.ID, at time.Time) (bool, error)
	DeleteExpiredChallenges(ctx context.Context, before time.Time, batch int) (int, error)
	// InsertPasskey fails with conflict (passkey_in_use) when the credential is known.
	InsertPasskey(ctx context.Context, p Passkey) error
	// ListPasskeys gives the living ones of a person, newest first.
	ListPasskeys(ctx context.Context, principal ids.ID) ([]Passkey, error)
	PasskeyByCredential(ctx context.Context, credentialID []byte) (p Passkey, active, found bool, err error)
	// UsePasskey is false when the passkey was revoked or used since it was read.
	UsePasskey(ctx context.Context, before Passkey, use domain.PasskeyUse, at time.Time) (bool, error)
	// RenamePasskey and RevokePasskey are false without such a living passkey.
	RenamePasskey(ctx context.Context, principal, id ids.ID, name string) (bool, error)
	RevokePasskey(ctx context.Context, principal, id ids.ID, at time.Time) (bool, error)
	RevokePasskeysOf(ctx context.Context, principal ids.ID, at time.Time) error
}
