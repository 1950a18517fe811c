// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// object is a JSON object whose members are taken out one by one; what is left at the end
// was not expected. Faults carry the pointer of the member.
type object struct {
	pointer string
	members map[string]json.RawMessage
	faults  *errs.Validation
}

// readObject reads one object; ok is false, with a fault, for anything else.
func readObject(raw json.RawMessage, pointer string, faults *errs.Validation) (object, bool) {
	o := object{pointer: pointer, members: map[string]json.RawMessage{}, faults: faults}
	d := json.NewDecoder(bytes.NewReader(raw))
	first, err := d.Token()
	if err != nil || first != json.Delim('{') {
		faults.Add(pointer, "type", "Expected an object.")
		return o, false
	}
	for d.More() {
		key, err := d.Token()
		name, isText := key.(string)
		if err != nil || !isText {
			faults.Add(pointer, "malformed", "The object cannot be read.")
			return o, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			faults.Add(pointer+"/"+escape(name), "malformed", "The value cannot be read.")
			return o, false
		}
		if _, twice := o.members[name]; twice {
			faults.Add(pointer+"/"+escape(name), "duplicate", "The member stands there twice.")
		}
		o.members[name] = value
	}
	if _, err := d.Token(); err != nil {
		faults.Add(pointer, "malformed", "The object does not end.")
		return o, false
	}
	if _, err := d.Token(); err == nil {
		faults.Add(pointer, "malformed", "Something follows the object.")
		return o, false
	}
	return o, true
}

func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func (o object) take(name string) (json.RawMessage, bool) {
	raw, ok := o.members[name]
	delete(o.members, name)
	return raw, ok
}

// done notes every member that nothing has taken.
func (o object) done() {
	rest := make([]string, 0, len(o.members))
	for name := range o.members {
		rest = append(rest, name)
	}
	slices.Sort(rest)
	for _, name := range rest {
		o.faults.Add(o.pointer+"/"+escape(name), "unknown", "There is no such member.")
	}
}

// text takes a string that passes check; empty without one.
func (o object) text(name string, check func(string) string) string {
	raw, ok := o.take(name)
	if !ok {
		return ""
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || string(raw) == "null" {
		o.faults.Add(o.pointer+"/"+name, "type", "Expected a text.")
		return ""
	}
	if fault := check(s); fault != "" {
		o.faults.Add(o.pointer+"/"+name, "invalid", fault)
		return ""
	}
	return s
}

func (o object) required(name string, check func(string) string) string {
	if _, ok := o.members[name]; !ok {
		o.faults.Add(o.pointer+"/"+name, "required", "The member is required.")
		return ""
	}
	return o.text(name, check)
}

func (o object) boolean(name string) bool {
	raw, ok := o.take(name)
	if !ok {
		return false
	}
	var b *bool
	if err := json.Unmarshal(raw, &b); err != nil || b == nil {
		o.faults.Add(o.pointer+"/"+name, "type", "Expected true or false.")
		return false
	}
	return *b
}

// texts takes a list of distinct texts; nil when absent.
func (o object) texts(name string, limit int, check func(string) string) []string {
	raw, ok := o.take(name)
	if !ok {
		return nil
	}
	at := o.pointer + "/" + name
	var list []*string
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		o.faults.Add(at, "type", "Expected a list of texts.")
		return nil
	}
	if len(list) > limit {
		o.faults.Addf(at, "too_long", "At most %d items.", limit)
		return nil
	}
	out := make([]string, 0, len(list))
	for i, s := range list {
		item := fmt.Sprintf("%s/%d", at, i)
		switch {
		case s == nil:
			o.faults.Add(item, "type", "Expected a text.")
		case check(*s) != "":
			o.faults.Add(item, "invalid", check(*s))
		case slices.Contains(out, *s):
			o.faults.Add(item, "duplicate", "The value stands there twice.")
		default:
			out = append(out, *s)
		}
	}
	return out
}
