// SPDX-License-Identifier: Apache-2.0

// Package jsoncanon writes JSON in the canonical form of RFC 8785, so that two programs
// that hold the same data compute the same digest over it.
//
// Members are sorted by the UTF-16 code units of their names, numbers are written as
// ECMAScript writes a double, and strings escape only what must be escaped. Numbers that a
// double cannot hold exactly are not refused: the form is defined over doubles, and a
// caller that needs larger integers keeps them in strings.
package jsoncanon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrDuplicateName is returned for an object that names a member twice.
var ErrDuplicateName = errors.New("jsoncanon: duplicate member name")

// Marshal gives the canonical form of what encoding/json would write for v.
func Marshal(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return Transform(raw)
}

// Transform gives the canonical form of one JSON text. It fails for text that is no JSON,
// for bytes after it, for duplicate names and for numbers beyond the range of a double.
func Transform(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("jsoncanon: not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out bytes.Buffer
	out.Grow(len(text))
	if err := value(d, &out, 0); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("jsoncanon: more than one value")
	}
	return out.Bytes(), nil
}

// maxDepth bounds the recursion; encoding/json itself allows ten thousand levels.
const maxDepth = 512

func value(d *json.Decoder, out *bytes.Buffer, depth int) error {
	if depth > maxDepth {
		return errors.New("jsoncanon: nested too deeply")
	}
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("jsoncanon: %w", err)
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return object(d, out, depth)
		}
		return array(d, out, depth)
	case string:
		writeString(out, t)
	case json.Number:
		text, err := number(t)
		if err != nil {
			return err
		}
		out.WriteString(text)
	case bool:
		out.WriteString(strconv.FormatBool(t))
	default:
		out.WriteString("null")
	}
	return nil
}

func array(d *json.Decoder, out *bytes.Buffer, depth int) error {
	out.WriteByte('[')
	for first := true; d.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		if err := value(d, out, depth+1); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return closing(d)
}

type member struct {
	name  string
	units []uint16
	value []byte
}

func object(d *json.Decoder, out *bytes.Buffer, depth int) error {
	var members []member
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return fmt.Errorf("jsoncanon: %w", err)
		}
		name, ok := token.(string)
		if !ok {
			return errors.New("jsoncanon: member name is no string")
		}
		var b bytes.Buffer
		if err := value(d, &b, depth+1); err != nil {
			return err
		}
		members = append(members, member{name: name, units: utf16.Encode([]rune(name)), value: b.Bytes()})
	}
	slices.SortFunc(members, func(a, b member) int { return slices.Compare(a.units, b.units) })
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			if members[i-1].name == m.name {
				return ErrDuplicateName
			}
			out.WriteByte(',')
		}
		writeString(out, m.name)
		out.WriteByte(':')
		out.Write(m.value)
	}
	out.WriteByte('}')
	return closing(d)
}

func closing(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("jsoncanon: %w", err)
	}
	return nil
}

func writeString(out *bytes.Buffer, s string) {
	out.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			out.WriteByte('\\')
			out.WriteByte(byte(r))
		case '\b':
			out.WriteString(`\b`)
		case '\f':
			out.WriteString(`\f`)
		case '\n':
			out.WriteString(`\n`)
		case '\r':
			out.WriteString(`\r`)
		case '\t':
			out.WriteString(`\t`)
		default:
			if r < 0x20 {
				fmt.Fprintf(out, `\u%04x`, r)
			} else {
				out.WriteRune(r)
			}
		}
	}
	out.WriteByte('"')
}

// number writes a double as ECMAScript's Number::toString does: decimal notation between
// 1e-6 and 1e21, exponents without leading zeros beyond.
func number(n json.Number) (string, error) {
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) {
		return "", errors.New("jsoncanon: number beyond the range of a double")
	}
	if f == 0 {
		return "0", nil
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64), nil
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	sign := exponent[:1]
	return mantissa + "e" + sign + strings.TrimLeft(exponent[1:], "0"), nil
}
