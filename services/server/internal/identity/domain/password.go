// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"strings"
	"unicode/utf8"
)

// The faults of passwords.
const (
	FaultTooShort Fault = "too_short"
	FaultTooLong  Fault = "too_long"
	FaultCommon   Fault = "too_common"
	FaultContext  Fault = "contains_context"
)

// PasswordMaxLength is the longest password in code points; it bounds the work of hashing.
const PasswordMaxLength = 256

// contextMinLength is how long a word of the context must be to count.
const contextMinLength = 4

// PasswordContext are the words an attacker tries first for this person.
type PasswordContext struct {
	Handle string
	// Email counts by the part before the at sign.
	Email string
	// InstanceName is what this installation is called.
	InstanceName string
}

// CheckPassword tells why a password is refused, FaultNone when it is acceptable. There are
// no rules of composition: length, commonness and closeness to the person decide.
func CheckPassword(password string, minLength int, c PasswordContext) Fault {
	switch n := utf8.RuneCountInString(password); {
	case n < minLength:
		return FaultTooShort
	case n > PasswordMaxLength || !utf8.ValidString(password):
		return FaultTooLong
	}
	folded := strings.ToLower(password)
	for _, word := range c.words() {
		if utf8.RuneCountInString(word) >= contextMinLength && strings.Contains(folded, word) {
			return FaultContext
		}
	}
	if isOneSequence(folded) || isCommon(folded) {
		return FaultCommon
	}
	return FaultNone
}

func (c PasswordContext) words() []string {
	local, _, _ := strings.Cut(c.Email, "@")
	words := []string{"bothy", strings.ToLower(c.Handle), strings.ToLower(local)}
	name := strings.ToLower(strings.TrimSpace(c.InstanceName))
	return append(words, name, strings.ReplaceAll(name, " ", ""))
}

// isOneSequence finds passwords made of one thing: a repeated part of up to four
// characters, or a run along the alphabet or the digits, in either direction.
func isOneSequence(s string) bool {
	runes := []rune(s)
	for part := 1; part <= 4; part++ {
		if len(runes) >= 2*part && repeats(runes, part) {
			return true
		}
	}
	return runs(runes, 1) || runs(runes, -1)
}

func repeats(runes []rune, part int) bool {
	for i := part; i < len(runes); i++ {
		if runes[i] != runes[i-part] {
			return false
		}
	}
	return true
}

// runs allows the step from 9 to 0 and back, because people count round.
func runs(runes []rune, step rune) bool {
	for i := 1; i < len(runes); i++ {
		prev, next := runes[i-1], runes[i]
		wraps := step == 1 && prev == '9' && next == '0' || step == -1 && prev == '0' && next == '9'
		if next != prev+step && !wraps {
			return false
		}
	}
	return len(runes) > 1
}
