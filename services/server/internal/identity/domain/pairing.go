// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"strings"
	"time"
)

const (
	// userCodeLetters has no vowels, so no words appear, and nothing that looks like a digit.
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
	userCodeGroup   = 4
)

// ErrUserCode means that a text has not the form of a code that people type.
var ErrUserCode = errors.New("not a code of a pairing")

// UserCode is the canonical form of a typed code: eight letters of twenty, about 34 bits. That
// is enough because a code lives minutes and guesses are counted.
type UserCode string

// NewUserCode makes a code from the system's generator.
func NewUserCode() UserCode {
	// Every letter is equally likely: bytes beyond the last full round are drawn again.
	const rounds = 256 / len(userCodeLetters) * len(userCodeLetters)
	out := make([]byte, 0, userCodeLength)
	for len(out) < userCodeLength {
		var seed [2 * userCodeLength]byte
		_, _ = rand.Read(seed[:]) // never fails: the runtime ends the process instead
		for _, b := range seed {
			if int(b) < rounds && len(out) < userCodeLength {
				out = append(out, userCodeLetters[int(b)%len(userCodeLetters)])
			}
		}
	}
	return UserCode(out)
}

// Shown is the code as people copy it: XXXX-XXXX.
func (c UserCode) Shown() string { return string(c[:userCodeGroup]) + "-" + string(c[userCodeGroup:]) }

// Hash is what is stored of a code. It is keyed, because a short code could be found by trying
// all of them.
func (c UserCode) Hash(key []byte) [32]byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(c))
	return [32]byte(mac.Sum(nil))
}

// ParseUserCode reads what somebody typed: case, hyphens and spaces do not matter.
func ParseUserCode(text string) (UserCode, error) {
	const limit = 64
	if len(text) > limit {
		return "", ErrUserCode
	}
	out := make([]byte, 0, userCodeLength)
	for i := range len(text) {
		c := text[i]
		switch {
		case c == '-' || c == ' ':
			continue
		case c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		if strings.IndexByte(userCodeLetters, c) < 0 {
			return "", ErrUserCode
		}
		out = append(out, c)
	}
	if len(out) != userCodeLength {
		return "", ErrUserCode
	}
	return UserCode(out), nil
}

// PairingState is how far a pairing has come.
type PairingState string

// The states. Pending is the only one that somebody decides, approved the only one that a
// device collects.
const (
	PairingPending  PairingState = "pending"
	PairingApproved PairingState = "approved"
	PairingDenied   PairingState = "denied"
	PairingConsumed PairingState = "consumed"
	PairingExpired  PairingState = "expired"
)

// The interval between two questions of a device. Who asks faster waits longer each time.
const (
	PollInterval     = 5 * time.Second
	pollIntervalMost = time.Minute
)

// Pairing is a request to be let in.
type Pairing struct {
	State        PairingState
	ExpiresAt    time.Time
	PollInterval time.Duration
	// LastPolledAt is zero before the first question.
	LastPolledAt time.Time
}

// Open reports whether somebody may still decide.
func (p Pairing) Open(now time.Time) bool {
	return p.State == PairingPending && now.Before(p.ExpiresAt)
}

// PollOutcome is the answer to a device that asks.
type PollOutcome int

// The outcomes.
const (
	// PollOver: the pairing ended, or its tokens were collected before.
	PollOver PollOutcome = iota
	PollPending
	// PollSlowDown: asked too early.
	PollSlowDown
	PollReady
	PollDenied
)

// Poll answers a question of the device and gives the interval until the next.
func (p Pairing) Poll(now time.Time) (PollOutcome, time.Duration) {
	switch {
	case p.State == PairingDenied:
		return PollDenied, p.PollInterval
	case p.State != PairingPending && p.State != PairingApproved, !now.Before(p.ExpiresAt):
		return PollOver, p.PollInterval
	case p.State == PairingApproved:
		return PollReady, p.PollInterval
	case !p.LastPolledAt.IsZero() && now.Sub(p.LastPolledAt) < p.PollInterval:
		return PollSlowDown, min(p.PollInterval+PollInterval, pollIntervalMost)
	default:
		return PollPending, p.PollInterval
	}
}
