// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/rand"
	"errors"
	"strings"
	"time"
)

// CodePurpose says what an enrollment code is for.
type CodePurpose string

// The purposes of enrollment codes.
const (
	PurposeFirstOwner CodePurpose = "first_owner"
	PurposeInvite     CodePurpose = "invite"
	PurposeRecovery   CodePurpose = "recovery"
)

const (
	crockford     = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	codeLength    = 24
	codeGroup     = 6
	codeTextLimit = 64
)

// ErrCode means that a text has not the form of an enrollment code.
var ErrCode = errors.New("not an enrollment code")

// NewEnrollmentCode makes a code of 120 random bits in the form people copy:
// XXXXXX-XXXXXX-XXXXXX-XXXXXX.
func NewEnrollmentCode() string {
	var seed [codeLength]byte
	_, _ = rand.Read(seed[:]) // never fails: the runtime ends the process instead
	var out strings.Builder
	for i, b := range seed {
		if i > 0 && i%codeGroup == 0 {
			out.WriteByte('-')
		}
		out.WriteByte(crockford[b&31]) // 256 is a multiple of 32, so every letter is equally likely
	}
	return out.String()
}

// ParseEnrollmentCode reads what somebody typed: case, hyphens and spaces do not matter,
// and letters that look like digits count as those. It returns the hash under which the
// code is stored.
func ParseEnrollmentCode(text string) ([32]byte, error) {
	if len(text) > codeTextLimit {
		return [32]byte{}, ErrCode
	}
	canonical := make([]byte, 0, codeLength)
	for i := range len(text) {
		c := text[i]
		switch {
		case c == '-' || c == ' ':
			continue
		case c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		switch c {
		case 'O':
			c = '0'
		case 'I', 'L':
			c = '1'
		}
		if strings.IndexByte(crockford, c) < 0 {
			return [32]byte{}, ErrCode
		}
		canonical = append(canonical, c)
	}
	if len(canonical) != codeLength {
		return [32]byte{}, ErrCode
	}
	return HashSecret(string(canonical)), nil
}

// EnrollmentCode is a stored code.
type EnrollmentCode struct {
	Purpose   CodePurpose
	ExpiresAt time.Time
	Redeemed  bool
	Revoked   bool
}

// Open reports whether the code may still be redeemed.
func (c EnrollmentCode) Open(now time.Time) bool {
	return !c.Redeemed && !c.Revoked && now.Before(c.ExpiresAt)
}
