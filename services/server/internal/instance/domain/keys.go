// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

// KeyState is where a signing key stands.
type KeyState string

// The states of a key. The next key is published before it signs, so that everybody who
// verifies knows it by then.
const (
	KeyNext    KeyState = "next"
	KeyActive  KeyState = "active"
	KeyRetired KeyState = "retired"
)

// The reasons for which keys retire.
const (
	RetiredByRotation  = "rotation"
	RetiredManually    = "manual"
	RetiredCompromised = "compromised"
	RetiredLost        = "lost"
)

// SigningKey is the public half of a key.
type SigningKey struct {
	ID        ids.ID
	KID       string
	Purpose   string
	Algorithm jose.Algorithm
	Public    jose.JWK
	State     KeyState
	// Published keys are accepted for verification.
	Published   bool
	CreatedAt   time.Time
	ActivatedAt *time.Time
	RetiredAt   *time.Time
	UnpublishAt *time.Time
	// RetireReason is one of the reasons; empty before.
	RetireReason string
}

// Accepted reports whether signatures of the key count at the moment.
func (k SigningKey) Accepted(now time.Time) bool {
	return k.Published && (k.UnpublishAt == nil || now.Before(*k.UnpublishAt))
}

// PurposeRule is what is fixed about the keys of a purpose.
type PurposeRule struct {
	Algorithm jose.Algorithm
	// Type is the typ of the tokens; a verifier accepts no other.
	Type string
	// InJWKS publishes the keys to everybody.
	InJWKS bool
	// Accepted is how long signatures count after a key has retired; negative for ever.
	Accepted time.Duration
}

// unpublishMargin lets a token that was signed in the last moment live its time, whatever
// the clocks.
const unpublishMargin = 5 * time.Minute

// UnpublishAt is when a key that retires now stops being accepted; nil for never.
func (p PurposeRule) UnpublishAt(now time.Time) *time.Time {
	if p.Accepted < 0 {
		return nil
	}
	t := now.Add(p.Accepted + unpublishMargin)
	return &t
}
