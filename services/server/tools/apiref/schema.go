// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// field is one line of a nested list: a member of an object, or the thing itself.
type field struct {
	Name        string
	Type        []typePart
	Required    bool
	Nullable    bool
	Limits      []string
	Values      []string
	Description template.HTML
	Children    []field
}

// typePart is a word of a type; one that names a type of the contract is a link.
type typePart struct{ Text, Link string }

// maxDepth is how deep types are unfolded in place. Deeper ones are a link to their own entry.
const maxDepth = 3

// typeShape is what a schema amounts to once references, null and allOf are followed.
type typeShape struct {
	schema   node
	name     string // of the type in the contract; empty for one without a name
	nullable bool
}

// follow goes from a schema to the type it stands for.
func (c *contract) follow(schema node) typeShape {
	s := typeShape{schema: schema}
	if ref := schema.at("$ref").text(); ref != "" {
		s.name = refName(ref)
		s.schema = c.types[s.name]
		return s
	}
	if alternatives := schema.at("oneOf").items(); len(alternatives) == 2 {
		for i, a := range alternatives {
			if a.at("type").text() == "null" {
				s = c.follow(alternatives[1-i])
				s.nullable = true
				return s
			}
		}
	}
	if slices.Contains(schema.at("type").texts(), "null") {
		s.nullable = true
	}
	return s
}

func refName(ref string) string {
	return strings.TrimSuffix(ref[strings.LastIndexByte(ref, '/')+1:], ".json")
}

// field describes one member. Types already on the way are not unfolded again.
func (c *contract) field(name string, schema node, required bool, depth int, on []string) field {
	s := c.follow(schema)
	f := field{Name: name, Required: required, Nullable: s.nullable, Type: c.typeWords(schema)}
	f.Description = inline(schema.at("description").text())
	if f.Description == "" {
		f.Description = inline(s.schema.at("description").text())
	}
	f.Values = s.schema.at("enum").texts()
	f.Limits = limits(s.schema)
	if s.name != "" {
		if slices.Contains(on, s.name) {
			return f
		}
		on = append(slices.Clone(on), s.name)
	}
	if depth < maxDepth {
		f.Children = c.children(s.schema, depth+1, on)
	}
	return f
}

// children are the members of an object, of the items of a list, of the values of a map, or of all alternatives.
func (c *contract) children(schema node, depth int, on []string) []field {
	var out []field
	required := schema.at("required").texts()
	for name, p := range schema.at("properties").members() {
		out = append(out, c.field(name, p, slices.Contains(required, name), depth, on))
	}
	for _, part := range schema.at("allOf").items() {
		out = append(out, c.children(c.follow(part).schema, depth, on)...)
	}
	for _, inner := range []node{schema.at("items"), schema.at("additionalProperties")} {
		if !inner.isMap() {
			continue
		}
		s := c.follow(inner)
		if s.name != "" {
			if slices.Contains(on, s.name) {
				continue
			}
			on = append(slices.Clone(on), s.name)
		}
		out = append(out, c.children(s.schema, depth, on)...)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		for _, a := range schema.at(key).items() {
			if a.at("type").text() != "null" {
				f := c.field("", a, true, depth, on)
				out = append(out, f)
			}
		}
	}
	return out
}

func (c *contract) typeWords(schema node) []typePart {
	if ref := schema.at("$ref").text(); ref != "" {
		name := refName(ref)
		return []typePart{{name, "types.html#" + name}}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		var words []typePart
		for _, a := range schema.at(key).items() {
			if a.at("type").text() == "null" {
				continue
			}
			if len(words) > 0 {
				words = append(words, typePart{Text: " or "})
			}
			words = append(words, c.typeWords(a)...)
		}
		if words != nil {
			return words
		}
	}
	if parts := schema.at("allOf").items(); len(parts) == 1 {
		return c.typeWords(parts[0])
	}
	kinds := schema.at("type").texts()
	if kind := schema.at("type").text(); kind != "" {
		kinds = []string{kind}
	}
	kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "null" })
	switch {
	case len(kinds) == 0 && schema.at("properties").ok(), len(kinds) == 0 && schema.at("allOf").ok():
		return []typePart{{Text: "object"}}
	case len(kinds) == 0:
		return []typePart{{Text: "any value"}}
	case kinds[0] == "array":
		return append([]typePart{{Text: "list of "}}, c.typeWords(schema.at("items"))...)
	case kinds[0] == "object" && schema.at("additionalProperties").isMap() && !schema.at("properties").ok():
		return append([]typePart{{Text: "map of "}}, c.typeWords(schema.at("additionalProperties"))...)
	}
	return []typePart{{Text: strings.Join(scalarWords(kinds, schema.at("format").text()), " or ")}}
}

var formats = map[string]string{"uuid": "UUID", "date-time": "time", "uri": "URI", "int64": "integer", "int32": "integer", "email": "e-mail address", "byte": "base64"}

func scalarWords(kinds []string, format string) []string {
	if word := formats[format]; word != "" && len(kinds) == 1 {
		return []string{word}
	}
	return kinds
}

// limits says in words what a validator would refuse.
func limits(s node) []string {
	var out []string
	bounds := func(low, high, unit string) {
		l, h := s.at(low).text(), s.at(high).text()
		switch {
		case l != "" && l == h:
			out = append(out, fmt.Sprintf("exactly %s%s", l, unit))
		case l != "" && h != "":
			out = append(out, fmt.Sprintf("%s to %s%s", l, h, unit))
		case l != "":
			out = append(out, fmt.Sprintf("at least %s%s", l, unit))
		case h != "":
			out = append(out, fmt.Sprintf("at most %s%s", h, unit))
		}
	}
	bounds("minLength", "maxLength", " characters")
	bounds("minimum", "maximum", "")
	bounds("minItems", "maxItems", " items")
	if p := s.at("pattern").text(); p != "" {
		out = append(out, "pattern "+p)
	}
	if v := s.at("const"); v.ok() {
		out = append(out, "always "+v.json())
	}
	if d := s.at("default"); d.ok() {
		out = append(out, "default "+d.json())
	}
	return out
}
