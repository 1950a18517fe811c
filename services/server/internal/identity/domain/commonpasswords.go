// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"hash/fnv"
	"strings"
	"sync"
)

// The list of common passwords is composed from the habits behind every published list:
// a well-known word, perhaps two or three of them or one of them twice, with letters
// replaced by digits in the usual way, and an ending that a rule of composition once asked
// for (a year, counting digits, an exclamation mark). Rows of the keyboard stand beside the
// words. Composing it keeps the list readable: adding a word adds all its variants, and no
// foreign collection of real people's passwords enters the repository.

var commonWords = strings.Fields(`
	password passwort motdepasse contrasena senha passw0rd pass secret geheim login welcome willkommen bienvenue
	letmein iloveyou loveyou sunshine princess football baseball basketball monkey dragon master superman batman
	shadow michael jennifer jessica daniel andrew joshua matthew thomas robert charlie jordan hunter ranger
	trustno whatever freedom flower summer winter spring autumn sommer herbst january february march april
	june july august september october november december monday tuesday wednesday thursday friday saturday
	sunday admin administrator root user guest default changeme test testing temp temporary computer internet
	server database google facebook amazon apple samsung microsoft windows linux company office business
	chocolate cookie coffee pepper ginger banana orange cheese soccer hockey tennis yankees chelsea liverpool
	arsenal barcelona madrid london berlin paris newyork america germany deutschland england france canada
	starwars pokemon naruto minecraft matrix mustang ferrari porsche mercedes harley corvette killer hello
	hallo bonjour access nothing qwerty qwertz azerty asdfgh zxcvbn qazwsx abc123 abcdef
`)

// keyboardRows are typed along the keyboard, forwards and backwards.
var keyboardRows = strings.Fields(`
	qwertyuiop qwertzuiop azertyuiop asdfghjkl qsdfghjklm zxcvbnm yxcvbnm 1234567890 0987654321
	1q2w3e4r5t6y 1qaz2wsx3edc 4rfv5tgb6yhn qazwsxedcrfv zaq12wsxcde3 1qazxsw23edc q1w2e3r4t5y6
`)

var commonEndings = strings.Fields(`
	1 12 123 1234 12345 123456 1234567 12345678 123456789 1234567890 123123 321 4321 54321 654321 987654321
	0 00 000 007 01 10 11 111 1111 11111 111111 222 333 666 69 777 7777 88 888 99 999 9999 100 101 2580
	! !! !!! !1 1! 123! 1234! 12345! @ @1 @123 # #1 $ ? . _ - abc xyz qwe asd
`)

const (
	// commonMinLength is the shortest entry kept: an operator may lower the minimum length
	// of passwords, but hardly below this.
	commonMinLength = 10

	firstYear = 1950
	lastYear  = 2035
)

// common holds the hashes of the list, a fifth of the memory of its texts. Two texts with
// one hash would refuse a password for nothing, which nobody will live to see.
var common = sync.OnceValue(func() map[uint64]struct{} {
	list := make(map[uint64]struct{}, 1<<16)
	composeCommon(func(text string) { list[hash64(text)] = struct{}{} })
	return list
})

func isCommon(folded string) bool {
	_, known := common()[hash64(folded)]
	return known
}

func hash64(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // a hash never fails
	return h.Sum64()
}

// composeCommon hands every entry over, some more than once.
func composeCommon(yield func(text string)) {
	add := func(parts ...string) {
		if text := strings.Join(parts, ""); len(text) >= commonMinLength {
			yield(text)
		}
	}
	bases := make([]string, 0, 3*len(commonWords))
	for _, word := range commonWords {
		bases = append(bases, word)
		if leet := leetSpelling(word); leet != word {
			bases = append(bases, leet)
		}
	}
	for _, row := range keyboardRows {
		bases = append(bases, row, reversed(row))
	}
	for _, base := range bases {
		add(base)
		add(base, base)
		add(base, base, base)
		for _, ending := range commonEndings {
			add(base, ending)
		}
		for year := firstYear; year <= lastYear; year++ {
			add(base, decimal(year))
			add(base, decimal(year), "!")
		}
	}
	for _, first := range commonWords {
		for _, second := range commonWords {
			add(first, second)
		}
	}
}

// leetSpelling replaces letters the way most people do.
func leetSpelling(word string) string {
	return strings.NewReplacer("a", "@", "e", "3", "i", "1", "o", "0", "s", "$").Replace(word)
}

func reversed(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

func decimal(n int) string {
	var b [4]byte
	for i := 3; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return string(b[:])
}
