// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// DecodeStrict decodes one JSON value and refuses members that v does not have.
func DecodeStrict(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	return exactNames(raw, reflect.TypeOf(v))
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// exactNames refuses members whose names differ from those of t in case alone. The decoder
// takes them, so that "token" and "Token" would be one member that stands there twice, and
// the check for repeated members could not see it.
func exactNames(raw []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler), bytes.Equal(bytes.TrimSpace(raw), []byte("null")):
		return nil
	case t.Kind() == reflect.Struct:
		return exactMembers(raw, t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return err
		}
		for _, item := range items {
			if err := exactNames(item, t.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

func exactMembers(raw []byte, t reflect.Type) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, there := members[name]
		if !there {
			continue
		}
		delete(members, name)
		if err := exactNames(value, field.Type); err != nil {
			return err
		}
	}
	for name := range members {
		return fmt.Errorf("unknown member %q", name)
	}
	return nil
}
