// SPDX-License-Identifier: Apache-2.0

// Package domain has the rules of instance: what a setting may hold, what a signing key is
// for and how it lives.
package domain

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
)

// SettingType is how the value of a setting is written.
type SettingType string

// The types of settings. A duration is written as whole milliseconds.
const (
	TypeBool       SettingType = "bool"
	TypeInt        SettingType = "int"
	TypeString     SettingType = "string"
	TypeDuration   SettingType = "duration"
	TypeEnum       SettingType = "enum"
	TypeStringList SettingType = "string_list"
)

// Setting is one entry of the registry.
type Setting struct {
	Key    string
	Module string
	Type   SettingType
	// Default is a bool, int64, string, time.Duration or []string, as Type says.
	Default any
	// Min and Max bound numbers, milliseconds of durations and the length of texts.
	Min, Max *int64
	// Values are those of an enum.
	Values []string
	// Sensitive settings need a fresh proof of the owner.
	Sensitive bool
	// Check refuses further values; its error is a code.
	Check func(value any) error
}

// Parse reads the value of the setting as written in JSON; the error is a code and says what
// is allowed.
func (s Setting) Parse(raw json.RawMessage) (any, *Fault) {
	v, ok := s.decode(raw)
	if !ok {
		return nil, &Fault{"wrong_type", "The value must be of type " + string(s.Type) + "."}
	}
	if f := s.inRange(v); f != nil {
		return nil, f
	}
	if s.Check != nil {
		if err := s.Check(v); err != nil {
			return nil, &Fault{"invalid", err.Error()}
		}
	}
	return v, nil
}

// Fault is what is wrong with a value.
type Fault struct{ Code, Message string }

func (s Setting) decode(raw json.RawMessage) (any, bool) {
	switch s.Type {
	case TypeBool:
		return decodeAs[bool](raw)
	case TypeInt:
		return decodeAs[int64](raw)
	case TypeDuration:
		v, ok := decodeAs[int64](raw)
		ms, _ := v.(int64)
		if !ok || ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
			return nil, false
		}
		return time.Duration(ms) * time.Millisecond, true
	case TypeString, TypeEnum:
		return decodeAs[string](raw)
	case TypeStringList:
		return decodeAs[[]string](raw)
	default:
		return nil, false
	}
}

func decodeAs[T any](raw json.RawMessage) (any, bool) {
	var v *T
	if err := json.Unmarshal(raw, &v); err != nil || v == nil {
		return nil, false
	}
	return *v, true
}

func (s Setting) inRange(v any) *Fault {
	switch x := v.(type) {
	case int64:
		return s.bounded(x, "out_of_range", "")
	case time.Duration:
		return s.bounded(x.Milliseconds(), "out_of_range", " milliseconds")
	case string:
		if s.Type == TypeEnum {
			if !slices.Contains(s.Values, x) {
				return &Fault{"unknown_value", fmt.Sprintf("The value must be one of %v.", s.Values)}
			}
			return nil
		}
		if err := textcheck.Name(x); err != nil {
			return &Fault{err.Error(), "The value must be one line of plain text."}
		}
		return s.bounded(int64(utf8.RuneCountInString(x)), "wrong_length", " characters")
	case []string:
		return s.bounded(int64(len(x)), "wrong_length", " entries")
	}
	return nil
}

func (s Setting) bounded(n int64, code, unit string) *Fault {
	if s.Min != nil && n < *s.Min || s.Max != nil && n > *s.Max {
		return &Fault{code, fmt.Sprintf("The value must lie between %s and %s%s.", bound(s.Min), bound(s.Max), unit)}
	}
	return nil
}

func bound(p *int64) string {
	if p == nil {
		return "any"
	}
	return fmt.Sprint(*p)
}

// Written gives a value in the form it is written in.
func Written(v any) any {
	if d, ok := v.(time.Duration); ok {
		return d.Milliseconds()
	}
	return v
}

// Registry holds all settings by key.
type Registry struct{ byKey map[string]Setting }

// NewRegistry makes a registry. Two settings of one key, or a default that its own rules
// refuse, are mistakes in the program and panic.
func NewRegistry(settings ...Setting) *Registry {
	r := &Registry{byKey: make(map[string]Setting, len(settings))}
	for _, s := range settings {
		if _, twice := r.byKey[s.Key]; twice {
			panic("instance: the setting " + s.Key + " is registered twice")
		}
		raw, err := json.Marshal(Written(s.Default))
		if err != nil {
			panic(fmt.Sprintf("instance: the default of %s: %v", s.Key, err))
		}
		if _, f := s.Parse(raw); f != nil {
			panic("instance: the default of " + s.Key + ": " + f.Message)
		}
		r.byKey[s.Key] = s
	}
	return r
}

// Get finds a setting.
func (r *Registry) Get(key string) (Setting, bool) {
	s, ok := r.byKey[key]
	return s, ok
}

// All lists the settings by key.
func (r *Registry) All() []Setting {
	out := make([]Setting, 0, len(r.byKey))
	for _, s := range r.byKey {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Setting) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return out
}

// Values reads a stored document. What it does not name, or what the rules no longer allow,
// has its default.
func (r *Registry) Values(document map[string]json.RawMessage) map[string]any {
	out := make(map[string]any, len(r.byKey))
	for key, s := range r.byKey {
		out[key] = s.Default
		if raw, ok := document[key]; ok {
			if v, f := s.Parse(raw); f == nil {
				out[key] = v
			}
		}
	}
	return out
}
