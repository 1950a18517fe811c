// SPDX-License-Identifier: Apache-2.0

// Package schema checks requests against the OpenAPI document: parameters, and bodies as
// they came, without decoding them.
//
// The document is compiled once at the start into plain structs; a check walks the bytes of
// the body beside them and allocates only for faults. It covers the part of JSON Schema
// that request bodies of the contract use and refuses to compile anything else, so a
// keyword that would silently not be checked cannot enter the contract. Objects with named
// properties are closed unless the document opens them: requests are strict.
//
// Bodies must have passed package jsonguard, which guarantees that they are well-formed.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Document is a compiled OpenAPI document.
type Document struct {
	operations map[string]*Operation
}

// Operation holds what a request of one operation must look like.
type Operation struct {
	params map[string]*param
	// path and query are the parameters in the order of the document.
	path, query []*param
	bodies      map[string]*node
	// BodyRequired says that a request without a body is refused.
	BodyRequired bool
}

type param struct {
	name, in string
	required bool
	// list parameters repeat; with comma they are one text separated by commas.
	list, comma bool
	schema      *node
}

// Operation gives the checks of an operation; ok is false when the document has none.
func (d *Document) Operation(id string) (o *Operation, ok bool) {
	o, ok = d.operations[id]
	return o, ok
}

// MediaTypes lists what the body of a request may be, empty for operations without one.
func (o *Operation) MediaTypes() []string {
	out := make([]string, 0, len(o.bodies))
	for m := range o.bodies {
		out = append(out, m)
	}
	slices.Sort(out)
	return out
}

type object = map[string]any

// Compile reads an OpenAPI 3.1 document in JSON.
func Compile(document []byte) (*Document, error) {
	var doc object
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	c := &compiler{doc: doc, refs: map[string]*node{}}
	d := &Document{operations: map[string]*Operation{}}
	for path, item := range asObject(doc["paths"]) {
		item := asObject(item)
		for method, op := range item {
			op := asObject(op)
			id, _ := op["operationId"].(string)
			if id == "" {
				continue
			}
			o, err := c.operation(item, op)
			if err != nil {
				return nil, fmt.Errorf("compile %s %s (%s): %w", strings.ToUpper(method), path, id, err)
			}
			d.operations[id] = o
		}
	}
	return d, nil
}

func asObject(v any) object {
	o, _ := v.(object)
	return o
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

type compiler struct {
	doc  object
	refs map[string]*node
}

func (c *compiler) operation(item, op object) (*Operation, error) {
	o := &Operation{params: map[string]*param{}, bodies: map[string]*node{}}
	for _, p := range append(slices.Clone(asList(item["parameters"])), asList(op["parameters"])...) {
		if err := c.param(o, p); err != nil {
			return nil, err
		}
	}
	body, err := c.resolve(asObject(op["requestBody"]))
	if err != nil {
		return nil, err
	}
	o.BodyRequired, _ = body["required"].(bool)
	for mediaType, content := range asObject(body["content"]) {
		n, err := c.node(asObject(asObject(content)["schema"]))
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		o.bodies[strings.ToLower(mediaType)] = n
	}
	return o, nil
}

// resolve follows the reference of a parameter, body or schema within the document.
func (c *compiler) resolve(o object) (object, error) {
	for range 16 {
		ref, ok := o["$ref"].(string)
		if !ok {
			return o, nil
		}
		target := any(c.doc)
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			target = asObject(target)[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		if o = asObject(target); o == nil {
			return nil, fmt.Errorf("reference %s leads nowhere", ref)
		}
	}
	return nil, errors.New("references lead in a circle")
}

func (c *compiler) param(o *Operation, v any) error {
	p, err := c.resolve(asObject(v))
	if err != nil {
		return err
	}
	out := &param{}
	out.name, _ = p["name"].(string)
	out.in, _ = p["in"].(string)
	out.required, _ = p["required"].(bool)
	if out.in != "path" && out.in != "query" {
		// Headers are read by the stages that know what they mean.
		return nil
	}
	if out.schema, err = c.node(asObject(p["schema"])); err != nil {
		return fmt.Errorf("parameter %s: %w", out.name, err)
	}
	if out.schema.types == typeArray {
		explode, set := p["explode"].(bool)
		out.list, out.comma = true, set && !explode
	}
	o.params[out.in+":"+out.name] = out
	if out.in == "path" {
		o.path = append(o.path, out)
	} else {
		o.query = append(o.query, out)
	}
	return nil
}

type types uint8

const (
	typeNull types = 1 << iota
	typeBool
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
	typeAny = typeNull | typeBool | typeInteger | typeNumber | typeString | typeArray | typeObject
)

var typeNames = []struct {
	bit  types
	name string
}{
	{typeNull, "null"}, {typeBool, "boolean"}, {typeInteger, "integer"}, {typeNumber, "number"},
	{typeString, "string"}, {typeArray, "array"}, {typeObject, "object"},
}

// node is one compiled schema.
type node struct {
	types  types
	enum   []string // scalars as JSON texts; strings without quotes in enumText
	format string

	minLength, maxLength int // -1 for none
	pattern              *regexp.Regexp
	minimum, maximum     *float64
	exclusiveMin         *float64
	exclusiveMax         *float64
	minItems, maxItems   int
	unique               bool
	items                *node

	props         map[string]*prop
	required      []*prop
	closed        bool
	additional    *node
	minProps      int
	maxProps      int
	propertyNames *node

	choices       []*node
	discriminator string
	mapping       map[string]*node
}

type prop struct {
	name  string
	index int
	node  *node
}

// maxProps is how many named properties the seen-set of an object has room for.
const maxNamedProps = 128

// ignored are keywords that say nothing about what is allowed.
var ignored = []string{
	"description", "title", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "$comment",
	"contentEncoding", "contentMediaType", "externalDocs",
}

func (c *compiler) node(s object) (*node, error) {
	if s == nil {
		return &node{types: typeAny, minLength: -1, maxLength: -1, minItems: -1, maxItems: -1, minProps: -1, maxProps: -1}, nil
	}
	if ref, ok := s["$ref"].(string); ok && len(s) <= 2 {
		if n, done := c.refs[ref]; done {
			return n, nil
		}
		n := &node{}
		// Noted before it is filled, so that a schema may contain itself.
		c.refs[ref] = n
		target, err := c.resolve(s)
		if err != nil {
			return nil, err
		}
		filled, err := c.node(target)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
		*n = *filled
		return n, nil
	}
	n := &node{minLength: -1, maxLength: -1, minItems: -1, maxItems: -1, minProps: -1, maxProps: -1}
	if err := c.fill(n, s); err != nil {
		return nil, err
	}
	if n.types == 0 {
		n.types = typeAny
		if n.props != nil {
			n.types = typeObject
		}
	}
	n.finish()
	return n, nil
}

// fill adds the keywords of s to n; with allOf several schemas fill one node.
func (c *compiler) fill(n *node, s object) error {
	s, err := c.resolve(s)
	if err != nil {
		return err
	}
	for keyword, v := range s {
		if slices.Contains(ignored, keyword) || strings.HasPrefix(keyword, "x-") {
			continue
		}
		if err := c.keyword(n, keyword, v); err != nil {
			return fmt.Errorf("%s: %w", keyword, err)
		}
	}
	return nil
}

func (c *compiler) keyword(n *node, keyword string, v any) (err error) {
	switch keyword {
	case "$ref":
		return nil
	case "allOf":
		for _, part := range asList(v) {
			if err := c.fill(n, asObject(part)); err != nil {
				return err
			}
		}
	case "oneOf", "anyOf":
		for _, part := range asList(v) {
			choice, err := c.node(asObject(part))
			if err != nil {
				return err
			}
			n.choices = append(n.choices, choice)
		}
	case "discriminator":
		return c.discriminate(n, asObject(v))
	case "type":
		return n.setTypes(v)
	case "enum":
		for _, e := range asList(v) {
			n.enum = append(n.enum, scalar(e))
		}
	case "const":
		n.enum = []string{scalar(v)}
	case "format":
		n.format, _ = v.(string)
	case "pattern":
		text, _ := v.(string)
		if n.pattern, err = regexp.Compile(text); err != nil {
			return err
		}
	case "minimum":
		n.minimum = number(v)
	case "maximum":
		n.maximum = number(v)
	case "exclusiveMinimum":
		n.exclusiveMin = number(v)
	case "exclusiveMaximum":
		n.exclusiveMax = number(v)
	case "minLength":
		n.minLength = whole(v)
	case "maxLength":
		n.maxLength = whole(v)
	case "minItems":
		n.minItems = whole(v)
	case "maxItems":
		n.maxItems = whole(v)
	case "minProperties":
		n.minProps = whole(v)
	case "maxProperties":
		n.maxProps = whole(v)
	case "uniqueItems":
		n.unique, _ = v.(bool)
	case "items":
		n.items, err = c.node(asObject(v))
	case "propertyNames":
		n.propertyNames, err = c.node(asObject(v))
	case "properties":
		return c.properties(n, asObject(v))
	case "required":
		for _, name := range asList(v) {
			text, _ := name.(string)
			n.required = append(n.required, &prop{name: text})
		}
	case "additionalProperties":
		return c.additionalProperties(n, v)
	default:
		return errors.New("keyword is not supported in requests")
	}
	return err
}

func (c *compiler) properties(n *node, props object) error {
	if n.props == nil {
		n.props = make(map[string]*prop, len(props))
	}
	for name, s := range props {
		child, err := c.node(asObject(s))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n.props[name] = &prop{name: name, index: len(n.props), node: child}
	}
	if len(n.props) > maxNamedProps {
		return fmt.Errorf("more than %d properties", maxNamedProps)
	}
	return nil
}

func (c *compiler) additionalProperties(n *node, v any) (err error) {
	if allowed, isBool := v.(bool); isBool {
		if n.closed = !allowed; allowed {
			n.additional, err = c.node(nil)
		}
		return err
	}
	n.additional, err = c.node(asObject(v))
	return err
}

func (c *compiler) discriminate(n *node, v object) error {
	n.discriminator, _ = v["propertyName"].(string)
	n.mapping = map[string]*node{}
	for value, ref := range asObject(v["mapping"]) {
		target, err := c.node(object{"$ref": ref})
		if err != nil {
			return err
		}
		n.mapping[value] = target
	}
	return nil
}

// finish joins the required names with their properties and closes the object.
func (n *node) finish() {
	for i, r := range n.required {
		if p, known := n.props[r.name]; known {
			n.required[i] = p
			continue
		}
		// A required member without a schema of its own still has to be there.
		p := &prop{name: r.name, index: len(n.props), node: &node{types: typeAny, minLength: -1, maxLength: -1, minItems: -1, maxItems: -1, minProps: -1, maxProps: -1}}
		if n.props == nil {
			n.props = map[string]*prop{}
		}
		n.props[r.name], n.required[i] = p, p
	}
	slices.SortFunc(n.required, func(a, b *prop) int { return strings.Compare(a.name, b.name) })
	if n.props != nil && n.additional == nil {
		n.closed = true
	}
}

func (n *node) setTypes(v any) error {
	names := asList(v)
	if names == nil {
		names = []any{v}
	}
	for _, name := range names {
		found := false
		for _, t := range typeNames {
			if t.name == name {
				n.types |= t.bit
				found = true
			}
		}
		if !found {
			return fmt.Errorf("unknown type %v", name)
		}
	}
	return nil
}

// scalar is a value as the check compares it: strings as they are, others as JSON. The
// first byte keeps the string "1" apart from the number 1.
func scalar(v any) string {
	if s, ok := v.(string); ok {
		return `"` + s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

func number(v any) *float64 {
	f, ok := v.(float64)
	if !ok {
		return nil
	}
	return &f
}

func whole(v any) int {
	f, ok := v.(float64)
	if !ok {
		return -1
	}
	return int(f)
}
