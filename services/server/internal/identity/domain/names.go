// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"strings"
	"unicode"
)

// confusables maps letters and digits that look like a Latin letter to it. The table covers
// what fonts of chats show alike: Cyrillic, Greek, a few digits and signs.
var confusables = map[rune]rune{
	'а': 'a', 'в': 'b', 'с': 'c', 'ԁ': 'd', 'е': 'e', 'ё': 'e', 'һ': 'h', 'і': 'i', 'ї': 'i', 'ј': 'j', 'к': 'k', 'ӏ': 'l',
	'м': 'm', 'н': 'h', 'о': 'o', 'р': 'p', 'ѕ': 's', 'т': 't', 'у': 'y', 'х': 'x', 'ѵ': 'v', 'ԝ': 'w', 'ԛ': 'q', 'ь': 'b',
	'α': 'a', 'β': 'b', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x',
	'γ': 'y', 'ω': 'w', 'ı': 'i', 'ɑ': 'a', 'ɡ': 'g', 'ⅼ': 'l', 'ⅰ': 'i', 'ℓ': 'l',
	'0': 'o', '1': 'l', '|': 'l', '!': 'l', 'i': 'l', '5': 's', '$': 's', '@': 'a', '3': 'e',
}

// Skeleton is a name as an eye sees it in passing: case, width, accents of combining kind,
// invisible characters, spacing and look-alikes do not count. Two names with one skeleton
// can be taken for each other.
func Skeleton(name string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(name) {
		if r >= 0xff01 && r <= 0xff5e { // full-width forms of ASCII
			r = unicode.ToLower(r - 0xfee0)
		}
		if unicode.IsSpace(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r) || r == '.' || r == '-' || r == '_' {
			continue
		}
		if latin, ok := confusables[r]; ok {
			r = latin
		}
		// i and l look alike in many fonts, so a letter that maps to i maps on to l.
		if r == 'i' {
			r = 'l'
		}
		out.WriteRune(r)
	}
	return out.String()
}

// SearchText is what the directory search compares: handle and name without case.
func SearchText(handle, displayName string) string {
	return strings.ToLower(handle) + " " + strings.ToLower(displayName)
}

// NormalLogin is a login name as it is looked up and throttled.
func NormalLogin(login string) string { return strings.ToLower(strings.TrimSpace(login)) }
