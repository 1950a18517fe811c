// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"errors"
	"strings"
)

// Siblings are ordered by keys that compare bytewise. A key is a fraction in base 62, so
// there is always one between two others and moving one element writes one row.

const (
	// MaxKey is the longest key; beyond it the siblings get new ones.
	MaxKey = 64

	digits    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	headWidth = 4
	firstKey  = "1000"
)

// ErrKeysFull means that no key short enough lies between two siblings.
var ErrKeysFull = errors.New("no short key between the siblings")

// KeyAfter gives the key of a new element at the end, behind last; empty means the first.
func KeyAfter(last string) (string, error) {
	if last == "" {
		return firstKey, nil
	}
	head := []byte((last + strings.Repeat("0", headWidth))[:headWidth])
	for i := headWidth - 1; i >= 0; i-- {
		if n := strings.IndexByte(digits, head[i]); n < len(digits)-1 {
			head[i] = digits[n+1]
			return string(head), nil
		}
		head[i] = '0'
	}
	return KeyBetween(last, "")
}

// KeyBetween gives a key behind before and in front of after. An empty before is the
// beginning, an empty after the end. It fails with ErrKeysFull.
func KeyBetween(before, after string) (string, error) {
	var key []byte
	bounded := after != ""
	for i := 0; i < MaxKey; i++ {
		low, high := 0, len(digits)
		if i < len(before) {
			low = strings.IndexByte(digits, before[i])
		}
		if bounded {
			high = 0
			if i < len(after) {
				high = strings.IndexByte(digits, after[i])
			}
		}
		switch {
		case high-low > 1:
			return string(append(key, digits[(low+high)/2])), nil
		case high-low == 1:
			bounded = false // One below the upper bound here, so what follows is free.
		}
		key = append(key, digits[low])
	}
	return "", ErrKeysFull
}

// FreshKeys gives n ascending keys for siblings whose old ones have grown too long.
func FreshKeys(n int) []string {
	out := make([]string, n)
	last := ""
	for i := range out {
		last, _ = KeyAfter(last) // The head counts to 14 million before it can fail.
		out[i] = last
	}
	return out
}
