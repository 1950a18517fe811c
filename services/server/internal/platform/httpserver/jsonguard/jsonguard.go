// SPDX-License-Identifier: Apache-2.0

// Package jsonguard checks a JSON text before anything decodes it and brings its string
// values into Unicode normal form C.
//
// Decoders disagree about duplicate names, lone surrogates and bytes that are no UTF-8, and
// two parts of a program that disagree about a request are a hole. What passes here means
// the same to every decoder: one value, UTF-8, every name once per object, no NUL
// character, bounded nesting. A text that needs no change is returned as it came, without
// a copy.
package jsonguard

import (
	"bytes"
	"errors"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The faults. None of them quotes the text.
var (
	ErrSyntax    = errors.New("not one well-formed JSON value")
	ErrUTF8      = errors.New("not valid UTF-8")
	ErrSurrogate = errors.New("an escape for half a character")
	ErrNUL       = errors.New("a NUL character")
	ErrDuplicate = errors.New("a member named twice in one object")
	ErrDepth     = errors.New("nested too deeply")
)

// Check returns the text with every string value in normal form C. Arrays and objects may
// be nested maxDepth deep. Names of members are checked and left as they are: they are
// compared with a schema, whose names are plain.
func Check(text []byte, maxDepth int) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, ErrUTF8
	}
	s := scanner{b: text, max: maxDepth}
	s.space()
	if err := s.value(0); err != nil {
		return nil, err
	}
	s.space()
	if s.i != len(s.b) {
		return nil, ErrSyntax
	}
	return s.rewritten(), nil
}

type scanner struct {
	b       []byte
	i       int
	max     int
	changes []change
	// names holds the names of all open objects, the innermost at the end.
	names [][]byte
}

type change struct {
	from, to int
	text     []byte
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// next skips space and gives the byte there, zero at the end.
func (s *scanner) next() byte {
	s.space()
	if s.i == len(s.b) {
		return 0
	}
	return s.b[s.i]
}

func (s *scanner) value(depth int) error {
	switch c := s.next(); {
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == '"':
		_, err := s.text(true)
		return err
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	default:
		return ErrSyntax
	}
}

func (s *scanner) literal(word string) error {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return ErrSyntax
	}
	s.i += len(word)
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) accept(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) number() error {
	s.accept('-')
	if !s.accept('0') && !s.digits() {
		return ErrSyntax
	}
	if s.accept('.') && !s.digits() {
		return ErrSyntax
	}
	if s.accept('e') || s.accept('E') {
		if !s.accept('+') {
			s.accept('-')
		}
		if !s.digits() {
			return ErrSyntax
		}
	}
	return nil
}

func (s *scanner) array(depth int) error {
	if depth > s.max {
		return ErrDepth
	}
	s.i++
	if s.next() == ']' {
		s.i++
		return nil
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.i++
		case ']':
			s.i++
			return nil
		default:
			return ErrSyntax
		}
	}
}

func (s *scanner) object(depth int) error {
	if depth > s.max {
		return ErrDepth
	}
	s.i++
	first := len(s.names)
	defer func() { s.names = s.names[:first] }()
	if s.next() == '}' {
		s.i++
		return nil
	}
	var seen map[string]struct{}
	for {
		if s.next() != '"' {
			return ErrSyntax
		}
		name, err := s.text(false)
		if err != nil {
			return err
		}
		if seen, err = s.note(first, seen, name); err != nil {
			return err
		}
		if s.next() != ':' {
			return ErrSyntax
		}
		s.i++
		if err := s.value(depth); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.i++
		case '}':
			s.i++
			return nil
		default:
			return ErrSyntax
		}
	}
}

// fewNames is up to where comparing one by one beats a map.
const fewNames = 16

// note remembers a name of the innermost object and refuses it the second time.
func (s *scanner) note(first int, seen map[string]struct{}, name []byte) (map[string]struct{}, error) {
	if seen == nil {
		for _, other := range s.names[first:] {
			if bytes.Equal(other, name) {
				return nil, ErrDuplicate
			}
		}
		s.names = append(s.names, name)
		if len(s.names)-first == fewNames {
			seen = make(map[string]struct{}, 2*fewNames)
			for _, other := range s.names[first:] {
				seen[string(other)] = struct{}{}
			}
		}
		return seen, nil
	}
	if _, twice := seen[string(name)]; twice {
		return nil, ErrDuplicate
	}
	seen[string(name)] = struct{}{}
	return seen, nil
}

// text reads a string and gives its decoded form. A value that is not in normal form is
// noted for rewriting.
func (s *scanner) text(isValue bool) ([]byte, error) {
	s.i++
	from := s.i
	escaped, ascii := false, true
	for {
		if s.i == len(s.b) {
			return nil, ErrSyntax
		}
		switch c := s.b[s.i]; {
		case c == '"':
			raw := s.b[from:s.i]
			s.i++
			if escaped {
				decoded, err := unescape(raw)
				if err != nil {
					return nil, err
				}
				raw, ascii = decoded, false
			}
			if isValue && !ascii && !norm.NFC.IsNormal(raw) {
				s.changes = append(s.changes, change{from, s.i - 1, quote(norm.NFC.Bytes(raw))})
			}
			return raw, nil
		case c == '\\':
			escaped = true
			s.i += 2
			if s.i > len(s.b) {
				return nil, ErrSyntax
			}
		case c < 0x20:
			return nil, ErrSyntax
		default:
			ascii = ascii && c < 0x80
			s.i++
		}
	}
}

// unescape decodes the inside of a string that holds at least one backslash.
func unescape(raw []byte) ([]byte, error) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		if i+1 == len(raw) {
			return nil, ErrSyntax
		}
		if raw[i+1] != 'u' {
			c := simpleEscape(raw[i+1])
			if c == 0 {
				return nil, ErrSyntax
			}
			out, i = append(out, c), i+2
			continue
		}
		r, n, err := unicodeEscape(raw[i:])
		if err != nil {
			return nil, err
		}
		out, i = utf8.AppendRune(out, r), i+n
	}
	return out, nil
}

func simpleEscape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default:
		return 0
	}
}

// unicodeEscape decodes \uXXXX, or two of them for a character beyond the first plane.
func unicodeEscape(b []byte) (r rune, n int, err error) {
	r, ok := hex4(b)
	switch {
	case !ok:
		return 0, 0, ErrSyntax
	case r == 0:
		return 0, 0, ErrNUL
	case !utf16.IsSurrogate(r):
		return r, 6, nil
	}
	low, ok := hex4(b[6:])
	if !ok {
		return 0, 0, ErrSurrogate
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, 0, ErrSurrogate
	}
	return r, 12, nil
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// quote gives the inside of a JSON string for text that is valid UTF-8.
func quote(text []byte) []byte {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(text))
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return out
}

func (s *scanner) rewritten() []byte {
	if len(s.changes) == 0 {
		return s.b
	}
	out := make([]byte, 0, len(s.b))
	at := 0
	for _, c := range s.changes {
		out = append(append(out, s.b[at:c.from]...), c.text...)
		at = c.to
	}
	return append(out, s.b[at:]...)
}
