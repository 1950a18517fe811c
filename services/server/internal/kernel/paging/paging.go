// SPDX-License-Identifier: Apache-2.0

// Package paging has the words of keyset paging that every list shares: the limit, and a
// cursor that a client hands back unread.
package paging

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

const (
	// DefaultLimit is the number of items of a page when the caller names none.
	DefaultLimit = 50
	// MaxLimit is the largest page.
	MaxLimit = 200
)

// ErrCursor means that a cursor was not made by Encode for the list it is used with.
var ErrCursor = errors.New("cursor cannot be read")

// Limit is the page size for a request: absent means the default, and the bounds are
// 1 and MaxLimit. Values outside are refused by the contract before this is asked.
func Limit(requested *int) int {
	switch {
	case requested == nil:
		return DefaultLimit
	case *requested < 1:
		return 1
	case *requested > MaxLimit:
		return MaxLimit
	default:
		return *requested
	}
}

// Encode writes the position behind the last item of a page. The list's name is part of
// the cursor, so that one list's cursor is refused by another.
func Encode[T any](list string, position T) (string, error) {
	raw, err := json.Marshal(envelope[T]{List: list, Position: position})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// Decode reads a cursor of the named list; it returns ErrCursor for anything else.
func Decode[T any](list, cursor string) (T, error) {
	var e envelope[T]
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return e.Position, ErrCursor
	}
	if err := json.Unmarshal(raw, &e); err != nil || e.List != list || holdsNUL(raw) {
		var none T
		return none, ErrCursor
	}
	return e.Position, nil
}

// holdsNUL finds what no position has, because the database stores none, and what it would
// refuse as a parameter.
func holdsNUL(raw []byte) bool {
	words := json.NewDecoder(bytes.NewReader(raw))
	for {
		word, err := words.Token()
		if err != nil {
			return false
		}
		if text, ok := word.(string); ok && strings.ContainsRune(text, 0) {
			return true
		}
	}
}

type envelope[T any] struct {
	List     string `json:"l"`
	Position T      `json:"p"`
}
