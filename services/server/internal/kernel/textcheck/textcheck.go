// SPDX-License-Identifier: Apache-2.0

// Package textcheck refuses display texts that could deceive a reader or break a
// terminal: invalid UTF-8, control characters, characters that reorder the text around
// them, names that show nothing and towers of marks. It does not check lengths; limits
// belong to the thing that is named.
package textcheck

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// ErrInvalidUTF8 means that the bytes are no UTF-8.
	ErrInvalidUTF8 = errors.New("invalid_utf8")
	// ErrControl means that the text holds a control character.
	ErrControl = errors.New("control_character")
	// ErrBidi means that the text holds a bidirectional control character.
	ErrBidi = errors.New("bidi_control")
	// ErrInvisible means that the text has characters and none that can be seen.
	ErrInvisible = errors.New("invisible_character")
	// ErrStacked means that one character carries so many marks that it covers its neighbours.
	ErrStacked = errors.New("cluster_too_long")
)

// maxMarks is how many marks may follow one character. Scripts need a handful.
const maxMarks = 31

// Name checks one line of display text: names, titles, labels. An empty text passes; whether
// one is needed is the question of the thing that is named.
func Name(s string) error {
	if err := check(s, false); err != nil {
		return err
	}
	shown, marks := false, 0
	for _, r := range s {
		if !unicode.Is(unicode.M, r) {
			marks = 0
			shown = shown || isVisible(r)
			continue
		}
		if marks++; marks > maxMarks {
			return ErrStacked
		}
	}
	if !shown && strings.TrimSpace(s) != "" {
		return ErrInvisible
	}
	return nil
}

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

// isVisible tells whether a character that is no mark leaves ink by itself.
func isVisible(r rune) bool {
	switch r {
	case 0x115f, 0x1160, 0x3164, 0xffa0, 0x2800: // the fillers of Hangul, the empty pattern of Braille
		return false
	}
	return unicode.IsGraphic(r) && !unicode.Is(unicode.Z, r)
}
