// SPDX-License-Identifier: Apache-2.0

package register

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	// plainWord is the form of an unquoted value that every YAML version reads as the same string.
	plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./~*-]*$`)
	// yamlWord lists the words that some YAML version reads as a boolean or null.
	yamlWord = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)

	packageName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	groupName   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	sqlName     = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	dottedName  = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)
	directory   = regexp.MustCompile(`^[a-z][a-z0-9_-]*(/[a-z][a-z0-9_-]*)*$`)
)

// Parse checks the text of a register. dirs are the directories of the Go module, relative and with slashes.
// The error joins every fault found.
func Parse(data []byte, dirs []string) (*Register, error) {
	root, err := document(data)
	if err != nil {
		return nil, err
	}
	p := &parser{}
	reg := p.register(root)
	if len(p.faults) == 0 {
		p.check(reg, dirs)
	}
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults...)
	}
	return reg, nil
}

func document(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("not a YAML document: %w", err)
	}
	var next yaml.Node
	if err := dec.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	if len(doc.Content) != 1 {
		return nil, errors.New("empty document")
	}
	return doc.Content[0], nil
}

type parser struct {
	faults []error
}

func (p *parser) fault(n *yaml.Node, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...)))
}

// entry is one key of a mapping with its value.
type entry struct {
	key     string
	keyNode *yaml.Node
	value   *yaml.Node
}

func (p *parser) mapping(n *yaml.Node, what string) []entry {
	if n.Kind != yaml.MappingNode || n.Style&yaml.TaggedStyle != 0 || n.Anchor != "" {
		p.fault(n, "%s must be a plain mapping", what)
		return nil
	}
	var out []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := p.text(n.Content[i], "a key of "+what)
		if !ok {
			continue
		}
		if seen[key] {
			p.fault(n.Content[i], "%s has the key %q twice", what, key)
			continue
		}
		seen[key] = true
		out = append(out, entry{key: key, keyNode: n.Content[i], value: n.Content[i+1]})
	}
	return out
}

// text accepts a scalar only in a form that no YAML reader takes for anything but this string.
func (p *parser) text(n *yaml.Node, what string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		p.fault(n, "%s must be a string", what)
	case n.Anchor != "" || n.Style&yaml.TaggedStyle != 0:
		p.fault(n, "%s must be a plain string without tag or anchor", what)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		p.fault(n, "%s must stand on one line", what)
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return n.Value, true
	case !plainWord.MatchString(n.Value) || yamlWord.MatchString(n.Value):
		p.fault(n, "%s: %q is not read as a string by every YAML reader; quote it", what, n.Value)
	default:
		return n.Value, true
	}
	return "", false
}

// list reads a sequence of different names of one form.
func (p *parser) list(n *yaml.Node, what string, form *regexp.Regexp) []string {
	if n.Kind != yaml.SequenceNode || n.Style&yaml.TaggedStyle != 0 || n.Anchor != "" {
		p.fault(n, "%s must be a plain list", what)
		return nil
	}
	out := make([]string, 0, len(n.Content))
	for _, c := range n.Content {
		v, ok := p.text(c, "an entry of "+what)
		if !ok {
			continue
		}
		if form != nil && !form.MatchString(v) {
			p.fault(c, "%s: %q has not the form of such a name", what, v)
			continue
		}
		if slices.Contains(out, v) {
			p.fault(c, "%s names %q twice", what, v)
			continue
		}
		out = append(out, v)
	}
	return out
}

func (p *parser) register(root *yaml.Node) *Register {
	reg := &Register{}
	found := map[string]bool{}
	for _, e := range p.mapping(root, "the register") {
		found[e.key] = true
		switch e.key {
		case "version":
			p.version(e.value)
		case "exclude":
			reg.Exclude = p.list(e.value, "exclude", directory)
		case "kernel":
			p.kernel(reg, e.value)
		case "platform":
			for _, pk := range p.mapping(e.value, "platform") {
				reg.Platform = append(reg.Platform, p.platform(pk))
			}
		case "wire":
			reg.Wire = p.single(e)
		case "cmd":
			reg.Cmd = p.single(e)
		case "api":
			reg.API = p.single(e)
		case "testsupport":
			for _, f := range p.mapping(e.value, "testsupport") {
				if f.key != "paths" {
					p.fault(f.keyNode, "testsupport has no field %q", f.key)
					continue
				}
				reg.TestSupport = p.list(f.value, "testsupport.paths", directory)
			}
		case "migrations":
			reg.Migrations = &Migrations{}
			for _, f := range p.mapping(e.value, "migrations") {
				if f.key != "used_by" {
					p.fault(f.keyNode, "migrations has no field %q", f.key)
					continue
				}
				reg.Migrations.UsedBy = p.list(f.value, "migrations.used_by", packageName)
			}
		case "functions":
			p.functions(reg, e.value)
		case "modules":
			for _, m := range p.mapping(e.value, "modules") {
				reg.Modules = append(reg.Modules, p.module(m))
			}
		case "vendors":
			for _, v := range p.mapping(e.value, "vendors") {
				p.form(v.keyNode, "vendor group", groupName)
				reg.Vendors = append(reg.Vendors, VendorGroup{Name: v.key, Paths: p.list(v.value, "vendors."+v.key, nil)})
			}
		default:
			p.fault(e.keyNode, "the register has no field %q", e.key)
		}
	}
	for _, must := range []string{"version", "kernel", "platform", "wire", "cmd", "modules", "vendors"} {
		if !found[must] {
			p.fault(root, "the field %q is missing", must)
		}
	}
	return reg
}

func (p *parser) form(n *yaml.Node, what string, form *regexp.Regexp) {
	if !form.MatchString(n.Value) {
		p.fault(n, "%s %q has not the form of such a name", what, n.Value)
	}
}

func (p *parser) version(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.Style != 0 || n.Anchor != "" || n.Value != "1" {
		p.fault(n, "version must be the decimal number 1")
	}
}

func (p *parser) kernel(reg *Register, n *yaml.Node) {
	for _, f := range p.mapping(n, "kernel") {
		switch f.key {
		case "core":
			reg.KernelCore = p.list(f.value, "kernel.core", packageName)
		case "ports":
			reg.KernelPorts = p.list(f.value, "kernel.ports", packageName)
		default:
			p.fault(f.keyNode, "kernel has no field %q", f.key)
		}
	}
}

func (p *parser) platform(e entry) Package {
	p.form(e.keyNode, "platform package", packageName)
	pk := Package{Name: e.key}
	for _, f := range p.mapping(e.value, "platform."+e.key) {
		switch f.key {
		case "depends_on":
			pk.DependsOn = p.list(f.value, "platform."+e.key+".depends_on", packageName)
		case "vendors":
			pk.Vendors = p.list(f.value, "platform."+e.key+".vendors", groupName)
		default:
			p.fault(f.keyNode, "platform.%s has no field %q", e.key, f.key)
		}
	}
	return pk
}

func (p *parser) single(e entry) *Package {
	pk := &Package{Name: e.key}
	for _, f := range p.mapping(e.value, e.key) {
		if f.key != "vendors" {
			p.fault(f.keyNode, "%s has no field %q", e.key, f.key)
			continue
		}
		pk.Vendors = p.list(f.value, e.key+".vendors", groupName)
	}
	return pk
}

func (p *parser) functions(reg *Register, n *yaml.Node) {
	for _, f := range p.mapping(n, "functions") {
		p.form(f.keyNode, "SQL function", sqlName)
		if owner, ok := p.text(f.value, "the owner of "+f.key); ok {
			reg.Functions = append(reg.Functions, Function{Name: f.key, Owner: owner})
		}
	}
}

func (p *parser) module(e entry) Module {
	p.form(e.keyNode, "module", packageName)
	m := Module{Name: e.key, Responsibility: sentence(e.keyNode.HeadComment)}
	lists := map[string]struct {
		to   *[]string
		form *regexp.Regexp
	}{
		"tables":           {&m.Tables, sqlName},
		"actions":          {&m.Actions, dottedName},
		"events":           {&m.Events, dottedName},
		"ephemeral_events": {&m.EphemeralEvents, dottedName},
		"ws_ops":           {&m.WSOps, dottedName},
		"depends_on":       {&m.DependsOn, packageName},
		"adapter_vendors":  {&m.AdapterVendors, groupName},
	}
	for _, f := range p.mapping(e.value, "modules."+e.key) {
		l, ok := lists[f.key]
		if !ok {
			p.fault(f.keyNode, "modules.%s has no field %q", e.key, f.key)
			continue
		}
		*l.to = p.list(f.value, "modules."+e.key+"."+f.key, l.form)
	}
	return m
}

// sentence joins the last paragraph of a YAML comment into one line.
func sentence(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	var words []string
	for _, line := range strings.Split(paragraphs[len(paragraphs)-1], "\n") {
		words = append(words, strings.Fields(strings.TrimLeft(line, "# "))...)
	}
	return strings.Join(words, " ")
}
