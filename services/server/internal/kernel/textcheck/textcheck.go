// SPDX-License-Identifier: Apache-2.0

// Package textcheck refuses display texts that could deceive a reader or break a
// terminal: invalid UTF-8, control characters and characters that reorder the text around
// them. It does not check lengths; limits belong to the thing that is named.
package textcheck

import (
	"errors"
	"unicode/utf8"
)

var (
	// ErrInvalidUTF8 means that the bytes are no UTF-8.
	ErrInvalidUTF8 = errors.New("invalid_utf8")
	// ErrControl means that the text holds a control character.
	ErrControl = errors.New("control_character")
	// ErrBidi means that the text holds a bidirectional control character.
	ErrBidi = errors.New("bidi_control")
)

// Name checks one line of display text: names, titles, labels.
func Name(s string) error { return check(s, false) }

// Body checks text of several lines, in which line breaks and tabs are allowed. Other
// control characters are not; bidirectional controls are, because people quote and
// discuss texts that hold them, and a message is shown isolated from what surrounds it.
func Body(s string) error { return check(s, true) }

func check(s string, body bool) error {
	if !utf8.ValidString(s) {
		return ErrInvalidUTF8
	}
	for _, r := range s {
		switch {
		case body && (r == '\n' || r == '\t' || r == '\r'):
		case r < 0x20, r >= 0x7f && r <= 0x9f:
			return ErrControl
		case !body && (r == 0x2028 || r == 0x2029):
			return ErrControl
		case !body && isBidiControl(r):
			return ErrBidi
		}
	}
	return nil
}

func isBidiControl(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}
