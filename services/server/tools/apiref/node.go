// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"iter"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// node is a value of a YAML or JSON document that keeps the order of its members, which readers of a reference rely on:
// the author of a schema put the important members first.
type node struct{ y *yaml.Node }

func readNode(file string) (node, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return node{}, err
	}
	var y yaml.Node
	if err := yaml.Unmarshal(text, &y); err != nil {
		return node{}, fmt.Errorf("%s: %w", file, err)
	}
	if y.Kind != yaml.DocumentNode || len(y.Content) == 0 {
		return node{}, fmt.Errorf("%s is empty", file)
	}
	return node{y.Content[0]}, nil
}

func (n node) ok() bool       { return n.y != nil }
func (n node) isMap() bool    { return n.y != nil && n.y.Kind == yaml.MappingNode }
func (n node) isList() bool   { return n.y != nil && n.y.Kind == yaml.SequenceNode }
func (n node) isString() bool { return n.y != nil && n.y.Kind == yaml.ScalarNode && n.y.Tag == "!!str" }

// text is the value of a scalar as it is written, or nothing.
func (n node) text() string {
	if n.y == nil || n.y.Kind != yaml.ScalarNode {
		return ""
	}
	return n.y.Value
}

// at walks along member names. What is missing gives a node that is not ok.
func (n node) at(path ...string) node {
	for _, key := range path {
		found := node{}
		for k, v := range n.members() {
			if k == key {
				found = v
				break
			}
		}
		n = found
	}
	return n
}

func (n node) members() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		if !n.isMap() {
			return
		}
		for i := 0; i+1 < len(n.y.Content); i += 2 {
			if !yield(n.y.Content[i].Value, node{n.y.Content[i+1]}) {
				return
			}
		}
	}
}

func (n node) items() []node {
	if !n.isList() {
		return nil
	}
	out := make([]node, len(n.y.Content))
	for i, c := range n.y.Content {
		out[i] = node{c}
	}
	return out
}

func (n node) texts() []string {
	var out []string
	for _, item := range n.items() {
		out = append(out, item.text())
	}
	return out
}

// find gives the first string below n whose member has that name.
func (n node) find(name string) string {
	for k, v := range n.members() {
		if k == name && v.isString() {
			return v.text()
		}
		if s := v.find(name); s != "" {
			return s
		}
	}
	for _, item := range n.items() {
		if s := item.find(name); s != "" {
			return s
		}
	}
	return ""
}

// json is the value as indented JSON in the order of the document.
func (n node) json() string {
	var b strings.Builder
	n.write(&b, "", func(_, text string) string { return text })
	return b.String()
}

// markup is json with a class for each kind of value. It is safe HTML.
func (n node) markup() template.HTML {
	var b strings.Builder
	n.write(&b, "", func(class, text string) string {
		return `<span class="` + class + `">` + html.EscapeString(text) + `</span>`
	})
	return template.HTML(b.String()) // #nosec G203 -- every text went through EscapeString
}

func (n node) write(b *strings.Builder, indent string, paint func(class, text string) string) {
	deeper := indent + "  "
	switch {
	case n.isMap() && len(n.y.Content) == 0:
		b.WriteString("{}")
	case n.isMap():
		b.WriteString("{\n")
		first := true
		for k, v := range n.members() {
			if !first {
				b.WriteString(",\n")
			}
			first = false
			b.WriteString(deeper + paint("k", quoted(k)) + ": ")
			v.write(b, deeper, paint)
		}
		b.WriteString("\n" + indent + "}")
	case n.isList() && len(n.y.Content) == 0:
		b.WriteString("[]")
	case n.isList():
		b.WriteString("[\n")
		for i, v := range n.items() {
			if i > 0 {
				b.WriteString(",\n")
			}
			b.WriteString(deeper)
			v.write(b, deeper, paint)
		}
		b.WriteString("\n" + indent + "]")
	case n.isString() || n.y.Tag == "!!timestamp":
		b.WriteString(paint("s", quoted(n.text())))
	case n.y.Tag == "!!null":
		b.WriteString(paint("n", "null"))
	default:
		b.WriteString(paint("n", n.text()))
	}
}

func quoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}
