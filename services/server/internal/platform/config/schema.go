// SPDX-License-Identifier: Apache-2.0

// Package config fills the Config structs of modules and platform packages from defaults, a
// YAML file, the environment and the command line, in that order.
//
// A struct states its keys with tags and plain Go types, so its package needs no import of
// this one:
//
//	Interval time.Duration `key:"sync.log_poll_interval" default:"1s" min:"100ms" max:"30s" doc:"..."`
//
// The tags are key, default, min, max, enum (comma-separated), type (bytes, path, ref,
// origin, address, url, identifier, date, clock), required and doc; min and max of a list of
// durations are those of its items. A field without key is left alone unless it is a struct,
// whose fields are then bound too. A map of pointers to structs with the tag prefix binds
// "<prefix>.<map key>.<key>" for the entries it holds.
// Without the tag default the present value of the field is the default, so a package can
// also state its defaults in a function. A key that ends in _ref is a reference to a secret.
//
// The loader is strict and complete: unknown keys and unknown BOTHY_ variables are faults,
// and all faults are reported together. A fault names key and source and what is allowed,
// never the value, because a value may be a secret that went to the wrong place.
package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Schema is the set of known keys with their targets.
type Schema struct {
	keys      map[string]*Key
	elsewhere map[string]string
	checks    []crossCheck
}

// Key is one known key.
type Key struct {
	// Name is the dotted name, Owner the package whose struct holds it.
	Name, Owner string
	// Type is the word of the reference: duration, bytes, int, bool, enum, list and so on.
	Type string
	// Default is the text of the default in the form of the environment.
	Default string
	// Min and Max are the borders as text; empty for none. Enum lists the allowed words.
	Min, Max string
	Enum     []string
	// Required means that the empty value is refused.
	Required bool
	Doc      string

	kind   kind
	elem   string
	target reflect.Value
}

type crossCheck struct {
	name  string
	keys  []string
	check func() error
	warn  bool
}

// NewSchema makes an empty schema.
func NewSchema() *Schema {
	return &Schema{keys: map[string]*Key{}, elsewhere: map[string]string{}}
}

// Bind adds the keys of a Config struct, which Load will fill. It panics for a struct whose
// tags are wrong and for a key that exists already: both are faults of the program.
func (s *Schema) Bind(owner string, target any) {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("config: %s: Bind wants a pointer to a struct, not %T", owner, target))
	}
	s.bindStruct(owner, "", v.Elem())
}

// Check adds a condition over several keys, which runs when each key for itself is right.
// The error of fn must not hold values.
func (s *Schema) Check(name string, keys []string, fn func() error) {
	s.checks = append(s.checks, crossCheck{name: name, keys: keys, check: fn})
}

// Warn is Check for a condition that only warns.
func (s *Schema) Warn(name string, keys []string, fn func() error) {
	s.checks = append(s.checks, crossCheck{name: name, keys: keys, check: fn, warn: true})
}

// Elsewhere declares a name that is no key of the file and says where it is changed.
func (s *Schema) Elsewhere(name, hint string) { s.elsewhere[name] = hint }

// Keys lists the keys by name.
func (s *Schema) Keys() []Key {
	out := make([]Key, 0, len(s.keys))
	for _, name := range s.names() {
		out = append(out, *s.keys[name])
	}
	return out
}

func (s *Schema) names() []string {
	out := make([]string, 0, len(s.keys))
	for name := range s.keys {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (s *Schema) bindStruct(owner, prefix string, v reflect.Value) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if !field.IsExported() {
			continue
		}
		if p, ok := field.Tag.Lookup("prefix"); ok {
			s.bindMap(owner, p, value)
			continue
		}
		name, ok := field.Tag.Lookup("key")
		switch {
		case ok:
			s.bindField(owner, prefix+name, field, value)
		case value.Kind() == reflect.Struct:
			s.bindStruct(owner, prefix, value)
		}
	}
}

func (s *Schema) bindMap(owner, prefix string, v reflect.Value) {
	if v.Kind() != reflect.Map || v.Type().Elem().Kind() != reflect.Pointer {
		panic("config: prefix " + prefix + " wants a map of pointers to structs")
	}
	for _, k := range v.MapKeys() {
		s.bindStruct(owner, prefix+"."+k.String()+".", v.MapIndex(k).Elem())
	}
}

func (s *Schema) bindField(owner, name string, field reflect.StructField, value reflect.Value) {
	fail := func(format string, args ...any) {
		panic(fmt.Sprintf("config: %s, key %s: ", owner, name) + fmt.Sprintf(format, args...))
	}
	if _, twice := s.keys[name]; twice {
		fail("bound twice")
	}
	if !validName(name) {
		fail("name needs at least one dot and segments of a-z, 0-9 and single underscores")
	}
	k := &Key{
		Name: name, Owner: owner, Default: field.Tag.Get("default"), Doc: field.Tag.Get("doc"),
		Min: field.Tag.Get("min"), Max: field.Tag.Get("max"), Required: field.Tag.Get("required") == "true", target: value,
	}
	if enum := field.Tag.Get("enum"); enum != "" {
		k.Enum = strings.Split(enum, ",")
	}
	format := field.Tag.Get("type")
	if format == "" && strings.HasSuffix(name, "_ref") {
		format = "ref"
	}
	if err := k.classify(field.Type, format); err != nil {
		fail("%v", err)
	}
	if k.Default == "" && !value.IsZero() {
		k.Default = k.text()
	}
	if k.Default != "" || !k.Required {
		if err := k.set(k.Default); err != nil {
			fail("default: %v", err)
		}
	}
	s.keys[name] = k
}

func validName(name string) bool {
	segments := strings.Split(name, ".")
	for _, seg := range segments {
		if seg == "" || strings.Contains(seg, "__") || strings.HasPrefix(seg, "_") || strings.HasSuffix(seg, "_") ||
			strings.Trim(seg, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return false
		}
	}
	return len(segments) > 1
}

// EnvName is the variable of a key: BOTHY_ and the name in upper case, with two underscores
// for each dot.
func EnvName(key string) string {
	return "BOTHY_" + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
}

// KeyName is the inverse of EnvName; ok is false for a variable that no key can have.
func KeyName(env string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(env, "BOTHY_")
	if !ok || strings.ToUpper(rest) != rest {
		return "", false
	}
	key = strings.ReplaceAll(strings.ToLower(rest), "__", ".")
	return key, validName(key) && EnvName(key) == env
}

var durationType = reflect.TypeFor[time.Duration]()
