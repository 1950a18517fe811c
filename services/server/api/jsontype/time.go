// SPDX-License-Identifier: Apache-2.0

// Package jsontype has the scalar types of the contract that the standard library writes
// differently: times in UTC with milliseconds, and members of a merge patch that may be
// absent, null or a value. The generated packages use it; it knows no operation.
package jsontype

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Layout is RFC 3339 in UTC with exactly three decimals.
const Layout = "2006-01-02T15:04:05.000Z"

// Time is a point in time as the contract writes it. Finer parts than a millisecond are cut
// off, so a value compares equal after a trip through a client.
type Time struct{ time.Time }

// At makes a Time.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// AtPtr makes an optional Time; nil stays nil.
func AtPtr(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	at := At(*t)
	return &at
}

// Ptr gives the time behind an optional Time; nil stays nil.
func (t *Time) Ptr() *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(Layout)+2)
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, Layout)
	return append(b, '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler. It takes any RFC 3339 time whose
// year has four digits in UTC as well, but for the year 1 and what is before: the zero time
// of many programs lies there, and stands for "never" in ours. An end that somebody sent must
// not become none.
func (t *Time) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("read a time: %w", err)
	}
	return t.Bind(s)
}

// Bind reads a parameter of a query, for the generated router.
func (t *Time) Bind(s string) error {
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("read a time: %w", err)
	}
	if year := parsed.UTC().Year(); year < 2 || year > 9999 {
		return fmt.Errorf("read a time: the year %d is none that is meant", year)
	}
	*t = At(parsed)
	return nil
}

// Nullable is a member of a merge patch. The zero value is an absent member, which leaves
// the resource as it is; null clears, a value sets.
type Nullable[T any] struct {
	// Set is false when the member was absent.
	Set bool
	// Null is true when the member was null. Value is then the zero value.
	Null  bool
	Value T
}

// Of makes a member that sets a value.
func Of[T any](v T) Nullable[T] { return Nullable[T]{Set: true, Value: v} }

// Null makes a member that clears.
func Null[T any]() Nullable[T] { return Nullable[T]{Set: true, Null: true} }

// Ptr is the value, or nil for an absent member and for null.
func (n Nullable[T]) Ptr() *T {
	if !n.Set || n.Null {
		return nil
	}
	return &n.Value
}

// IsZero makes encoders leave an absent member out.
func (n Nullable[T]) IsZero() bool { return !n.Set }

// MarshalJSON implements json.Marshaler.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	if !n.Set || n.Null {
		return []byte("null"), nil
	}
	return json.Marshal(n.Value)
}

// UnmarshalJSON implements json.Unmarshaler. It runs only for a member that is present.
func (n *Nullable[T]) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*n = Null[T]()
		return nil
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*n = Of(v)
	return nil
}
