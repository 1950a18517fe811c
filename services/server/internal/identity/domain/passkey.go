// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const (
	// PasskeyMax is how many passkeys a person may have.
	PasskeyMax = 20
	// PasskeyNameMax is the longest name of a passkey in characters.
	PasskeyNameMax = 60
	// PasskeyTimeout is how long a challenge may be answered.
	PasskeyTimeout = 5 * time.Minute
	// CredentialIDMax is the longest identifier of a credential in bytes (WebAuthn, 4).
	CredentialIDMax = 1023
	transportsMax   = 8
	transportMax    = 32
)

// The COSE algorithms of passkeys, in the order in which an authenticator is asked for them.
const (
	AlgES256 = -7
	AlgEdDSA = -8
	AlgRS256 = -257
)

// PasskeyAlgorithms are the accepted algorithms, the preferred one first.
func PasskeyAlgorithms() []int { return []int{AlgES256, AlgEdDSA, AlgRS256} }

var (
	// ErrPasskey means that an answer of an authenticator is not acceptable; the wrapped
	// text says why, for the log.
	ErrPasskey = errors.New("unacceptable answer of an authenticator")
	// ErrPasskeyCloned means that the counter of a passkey did not grow: two authenticators
	// hold the same key.
	ErrPasskeyCloned = errors.New("the counter of the passkey did not grow")
)

// Challenge is what an authenticator is asked to sign.
type Challenge [32]byte

// NewChallenge makes one.
func NewChallenge() Challenge {
	var c Challenge
	_, _ = rand.Read(c[:]) // never fails: the runtime ends the process instead
	return c
}

// NewPasskey is what an authenticator says about a key it has made. Challenge, origin,
// relying party, presence and verification of the person have been checked.
type NewPasskey struct {
	CredentialID []byte
	// PublicKey is in COSE form, Alg its COSE algorithm.
	PublicKey                []byte
	Alg                      int
	SignCount                int64
	AAGUID                   [16]byte
	Transports               []string
	BackupEligible, BackedUp bool
}

// Check refuses what this instance did not ask for.
func (p NewPasskey) Check() error {
	switch {
	case len(p.CredentialID) == 0 || len(p.CredentialID) > CredentialIDMax:
		return refusePasskey("a credential ID of %d bytes", len(p.CredentialID))
	case !slices.Contains(PasskeyAlgorithms(), p.Alg):
		return refusePasskey("algorithm %d", p.Alg)
	case p.BackedUp && !p.BackupEligible:
		return refusePasskey("backed up without being eligible")
	}
	return nil
}

// UsableTransports keeps the hints that look like hints: they come from the client and are
// given back to it.
func UsableTransports(list []string) []string {
	out := []string{}
	for _, t := range list {
		if len(out) < transportsMax && isTransport(t) && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func isTransport(t string) bool {
	for _, c := range t {
		if (c < 'a' || c > 'z') && c != '-' {
			return false
		}
	}
	return t != "" && len(t) <= transportMax
}

// PasskeyUse is a signed answer to a challenge. Challenge, origin, relying party, presence
// and verification of the person and the signature have been checked.
type PasskeyUse struct {
	// UserHandle is whom the authenticator holds the passkey for; empty when it does not say.
	UserHandle               []byte
	SignCount                int64
	BackupEligible, BackedUp bool
}

// PasskeyState is what is stored of a passkey before a use.
type PasskeyState struct {
	PrincipalID    ids.ID
	SignCount      int64
	BackupEligible bool
}

// CheckUse tells whether the use may count. A discoverable passkey names its person. A
// counter that an authenticator keeps must grow, and eligibility for backup never changes.
func (s PasskeyState) CheckUse(u PasskeyUse, handleNeeded bool) error {
	switch {
	case len(u.UserHandle) == 0 && handleNeeded:
		return refusePasskey("no user handle")
	case len(u.UserHandle) > 0 && !bytes.Equal(u.UserHandle, UserHandle(s.PrincipalID)):
		return refusePasskey("the user handle is another person's")
	case u.BackupEligible != s.BackupEligible, u.BackedUp && !u.BackupEligible:
		return refusePasskey("the flags of backup contradict each other")
	case (s.SignCount != 0 || u.SignCount != 0) && u.SignCount <= s.SignCount:
		return ErrPasskeyCloned
	}
	return nil
}

// UserHandle is how authenticators know a person: her ID, which tells nothing about her.
func UserHandle(principal ids.ID) []byte { return slices.Clone(principal[:]) }

// RelyingPartyID is the scope of passkeys: the host of the public address, without the port.
func RelyingPartyID(publicURL string) (string, error) {
	u, err := url.Parse(publicURL)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("%q has no host", publicURL)
	}
	return u.Hostname(), nil
}

// WaysIn are the credentials with which a person can sign in.
type WaysIn struct {
	Password             bool
	Passkeys, Identities int
}

// Any reports whether there is at least one.
func (w WaysIn) Any() bool { return w.Password || w.Passkeys > 0 || w.Identities > 0 }

// Drivers are the ways in that an instance has switched on.
type Drivers struct{ Local, Passkey bool }

// Through keeps the ways in that the drivers let pass.
func (w WaysIn) Through(d Drivers) WaysIn {
	w.Password = w.Password && d.Local
	if !d.Passkey {
		w.Passkeys = 0
	}
	return w
}

// MayBecome reports whether a change may leave a person with these ways in. Nobody takes
// her own last one, and an owner always keeps one; for others an owner may take the last.
func (w WaysIn) MayBecome(own, activeOwner bool) bool { return w.Any() || !own && !activeOwner }

func refusePasskey(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPasskey, fmt.Sprintf(format, args...))
}
