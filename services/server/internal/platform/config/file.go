// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// file reads one YAML document whose nesting follows the dots of the names. What YAML can
// do beyond that (anchors, aliases, tags, several documents) is refused, because two
// readers of such a file may see two configurations.
func (l *loader) file(name string, text []byte) {
	if name == "" {
		return
	}
	source := Source("file " + name)
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		// The message of the parser may quote the text, so it is not passed on.
		l.problem("(file)", source, "is no valid YAML")
		return
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		l.problem("(file)", source, "must be a single document")
		return
	}
	if len(doc.Content) == 0 {
		return
	}
	l.node("", doc.Content[0], source)
}

func (l *loader) node(name string, n *yaml.Node, source Source) {
	if reason := refused(n); reason != "" {
		l.problem(orFile(name), source, reason)
		return
	}
	if k, known := l.schema.keys[name]; known {
		text, err := leaf(k, n)
		if err != nil {
			l.problem(name, source, err.Error())
			return
		}
		l.apply(name, source, text)
		return
	}
	if n.Kind != yaml.MappingNode {
		if name == "" {
			l.problem("(file)", source, "must hold a mapping")
		} else if n.Tag != "!!null" || !l.schema.isSection(name) {
			l.unknown(name, source)
		}
		return
	}
	if _, elsewhere := l.schema.elsewhere[name]; elsewhere {
		l.unknown(name, source)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		child := strings.TrimPrefix(name+"."+key, ".")
		switch {
		case refused(n.Content[i]) != "" || n.Content[i].Kind != yaml.ScalarNode:
			l.problem(orFile(name), source, "has a key that is no plain word")
		case seen[key]:
			l.problem(printable(child), source, "stands twice")
		default:
			l.node(printable(child), n.Content[i+1], source)
		}
		seen[key] = true
	}
}

// isSection reports whether known keys begin with the name, so an empty section is no fault.
func (s *Schema) isSection(name string) bool {
	for known := range s.keys {
		if strings.HasPrefix(known, name+".") {
			return true
		}
	}
	return false
}

func orFile(name string) string {
	if name == "" {
		return "(file)"
	}
	return name
}

// printable keeps a name that is no possible key out of the messages: it may be a value
// that slipped to the wrong side of a colon.
func printable(name string) string {
	if len(name) <= 100 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == "" {
		return name
	}
	return "(unprintable name)"
}

func refused(n *yaml.Node) string {
	switch {
	case n.Anchor != "" || n.Kind == yaml.AliasNode:
		return "must not use anchors or aliases"
	case n.Style&yaml.TaggedStyle != 0:
		return "must not use tags"
	case n.Tag == "!!merge":
		return "must not use merge keys"
	default:
		return ""
	}
}

// leaf gives the text of a value in the form of the environment.
func leaf(k *Key, n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return "", errors.New("has no value; leave the key out to get the default")
	case k.kind == kindJSON:
		return jsonLeaf(n)
	case n.Kind == yaml.ScalarNode && k.kind != kindList:
		return n.Value, nil
	case n.Kind == yaml.ScalarNode && n.Value == "":
		return "", nil
	case k.kind == kindList && n.Kind == yaml.SequenceNode:
		items := make([]string, len(n.Content))
		for i, c := range n.Content {
			if c.Kind != yaml.ScalarNode || refused(c) != "" || c.Tag == "!!null" {
				return "", errors.New("must be a list of plain values")
			}
			items[i] = c.Value
		}
		out, err := json.Marshal(items)
		return string(out), err
	case k.kind == kindList:
		return "", errors.New("must be a list")
	default:
		return "", errors.New("must be a single value")
	}
}

func jsonLeaf(n *yaml.Node) (string, error) {
	if reason := refusedDeep(n); reason != "" {
		return "", errors.New(reason)
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return "", errors.New("is no valid value")
	}
	out, err := json.Marshal(v)
	if err != nil {
		return "", errors.New("must use words as the names of its members")
	}
	return string(out), nil
}

func refusedDeep(n *yaml.Node) string {
	if reason := refused(n); reason != "" {
		return reason
	}
	for _, c := range n.Content {
		if reason := refusedDeep(c); reason != "" {
			return reason
		}
	}
	return ""
}
