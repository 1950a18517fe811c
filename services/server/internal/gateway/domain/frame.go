// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// ErrMalformed means that a text is no frame.
var ErrMalformed = errors.New("malformed frame")

// maxIDLength bounds what a client can have echoed.
const maxIDLength = 64

// Frame is one message in either direction.
type Frame struct {
	Op string `json:"op"`
	// ID is echoed in the answer or the error of the frame.
	ID string          `json:"id,omitempty"`
	D  json.RawMessage `json:"d,omitempty"`
}

// ParseFrame reads a frame strictly: one object with an op, no member twice, no deeper than
// maxDepth, valid UTF-8, an id that is short, nothing behind it.
func ParseFrame(text []byte, maxDepth int) (Frame, error) {
	if !utf8.Valid(text) {
		return Frame{}, fmt.Errorf("invalid UTF-8: %w", ErrMalformed)
	}
	if err := checkStructure(text, maxDepth); err != nil {
		return Frame{}, err
	}
	var f Frame
	if err := DecodeStrict(text, &f); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	switch {
	case f.Op == "":
		return Frame{}, fmt.Errorf("no op: %w", ErrMalformed)
	case utf8.RuneCountInString(f.ID) > maxIDLength:
		return Frame{}, fmt.Errorf("id longer than %d: %w", maxIDLength, ErrMalformed)
	}
	return f, nil
}

// level is one open object or array of the text being checked.
type level struct {
	keys   map[string]struct{} // nil for an array
	expect bool                // the next string is a key
}

// checkStructure walks the tokens, because the decoder accepts repeated members and takes
// the last, which two readers of one text could see differently.
func checkStructure(text []byte, maxDepth int) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	var open []level
	for first := true; ; first = false {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			if first || len(open) > 0 {
				return fmt.Errorf("text ends early: %w", ErrMalformed)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if first && token != json.Delim('{') {
			return fmt.Errorf("no object: %w", ErrMalformed)
		}
		if !first && len(open) == 0 {
			return fmt.Errorf("text behind the object: %w", ErrMalformed)
		}
		if open, err = step(open, token, maxDepth); err != nil {
			return err
		}
	}
}

func step(open []level, token json.Token, maxDepth int) ([]level, error) {
	if delim, ok := token.(json.Delim); ok {
		switch delim {
		case '{', '[':
			open = value(open)
			if len(open) >= maxDepth {
				return nil, fmt.Errorf("deeper than %d: %w", maxDepth, ErrMalformed)
			}
			if delim == '{' {
				return append(open, level{keys: map[string]struct{}{}, expect: true}), nil
			}
			return append(open, level{}), nil
		default:
			return open[:len(open)-1], nil
		}
	}
	if n := len(open); n > 0 && open[n-1].expect {
		key, _ := token.(string)
		if _, twice := open[n-1].keys[key]; twice {
			return nil, fmt.Errorf("member %q twice: %w", key, ErrMalformed)
		}
		open[n-1].keys[key] = struct{}{}
		open[n-1].expect = false
		return open, nil
	}
	return value(open), nil
}

// value notes that a value stands where one was awaited: behind it an object awaits a key.
func value(open []level) []level {
	if n := len(open); n > 0 && open[n-1].keys != nil {
		open[n-1].expect = true
	}
	return open
}
