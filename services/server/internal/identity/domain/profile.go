// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"errors"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
)

// Limits of profile texts, in code points.
const (
	DisplayNameMax = 80
	TitleMax       = 80
	PronounsMax    = 40
	BioMax         = 500
	StatusTextMax  = 100
	StatusEmojiMax = 64
	DeviceNameMax  = 60
	TokenNameMax   = 60
	VersionTextMax = 40
	emailMax       = 254
)

// CheckName tells whether a single line of display text is acceptable: not empty, not
// longer than the limit, something to see, no control or reordering characters.
func CheckName(s string, limit int) Fault {
	if strings.TrimSpace(s) == "" {
		return "empty"
	}
	return CheckOptional(s, limit)
}

// CheckOptional is CheckName for texts that may be empty.
func CheckOptional(s string, limit int) Fault {
	if utf8.RuneCountInString(s) > limit {
		return FaultTooLong
	}
	return textFault(textcheck.Name(s))
}

// CheckParagraph is CheckOptional for texts with line breaks.
func CheckParagraph(s string, limit int) Fault {
	if utf8.RuneCountInString(s) > limit {
		return FaultTooLong
	}
	return textFault(textcheck.Body(s))
}

func textFault(err error) Fault {
	switch {
	case err == nil:
		return FaultNone
	case errors.Is(err, textcheck.ErrInvalidUTF8):
		return "invalid_utf8"
	case errors.Is(err, textcheck.ErrBidi):
		return "bidi_control"
	case errors.Is(err, textcheck.ErrInvisible):
		return "invisible_character"
	case errors.Is(err, textcheck.ErrStacked):
		return "cluster_too_long"
	default:
		return "control_character"
	}
}

// CheckEmail tells whether an address can be stored. Whether it is the person's own is
// another question, which only a verified flag answers.
func CheckEmail(s string) Fault {
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || len(s) > emailMax || textcheck.Name(s) != nil {
		return FaultFormat
	}
	return FaultNone
}

// CheckLocale accepts language tags of the plain kind: a language of two or three letters
// and further subtags of two to eight letters or digits.
func CheckLocale(s string) Fault {
	if len(s) > 35 {
		return FaultFormat
	}
	for i, part := range strings.Split(s, "-") {
		if i == 0 && (len(part) > 3 || !isLetters(part)) || len(part) < 2 || len(part) > 8 || !isBase62(part) {
			return FaultFormat
		}
	}
	return FaultNone
}

func isLetters(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// CheckTimeZone accepts names of the time-zone database.
func CheckTimeZone(s string) Fault {
	if s == "" || s == "Local" || len(s) > 64 {
		return FaultFormat
	}
	if _, err := time.LoadLocation(s); err != nil {
		return FaultFormat
	}
	return FaultNone
}
