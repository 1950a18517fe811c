// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
)

// Documented is what the key table of the specification says about a key.
type Documented struct {
	Name, Default string
	// Loose says that the table describes the default in words, which are not compared.
	Loose bool
}

// ParseTable reads the key table of a specification in Markdown: rows of keys in
// backquotes, type, defaults in the same order separated by semicolons, range and owner.
func ParseTable(markdown string) map[string]Documented {
	out := map[string]Documented{}
	for line := range strings.Lines(markdown) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || !strings.Contains(cells[0], "`") {
			continue
		}
		names := backquoted(cells[0])
		defaults := strings.Split(cells[2], ";")
		for i, name := range names {
			if !validName(name) {
				continue
			}
			d := Documented{Name: name, Loose: len(defaults) != len(names) && len(defaults) != 1}
			if !d.Loose {
				d.Default, d.Loose = plainDefault(defaults[min(i, len(defaults)-1)])
			}
			out[name] = d
		}
	}
	return out
}

func backquoted(cell string) []string {
	var out []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return out
}

// plainDefault gives the default as text; loose means that it is told in words.
func plainDefault(cell string) (text string, loose bool) {
	text = strings.TrimSpace(strings.Trim(strings.TrimSpace(cell), "`"))
	text, _, _ = strings.Cut(text, " (")
	switch {
	case text == "empty", strings.HasPrefix(text, "none"):
		return "", false
	case strings.Contains(text, "…"), strings.Contains(text, " of "), strings.Contains(text, "table"):
		return "", true
	default:
		return text, false
	}
}

// Differences compares the bound keys with a key table: keys that the table lacks and
// defaults that differ. Keys of the table that are not bound are planned, see Planned.
func (s *Schema) Differences(table map[string]Documented) []string {
	var out []string
	for _, name := range s.names() {
		k := s.keys[name]
		d, known := table[name]
		switch {
		case !known && !strings.HasPrefix(name, "ratelimit.class."):
			out = append(out, name+": is not in the table")
		case known && !d.Loose && !k.sameDefault(d.Default):
			out = append(out, fmt.Sprintf("%s: default %q, the table says %q", name, k.Default, d.Default))
		}
	}
	return out
}

func (k *Key) sameDefault(documented string) bool {
	switch k.kind {
	case kindInt, kindBytes, kindDuration:
		a, errA := k.parseInteger(k.Default)
		b, errB := k.parseInteger(documented)
		return errA == nil && errB == nil && a == b
	case kindList:
		a, errA := listItems(k.Default)
		b, errB := listItems(documented)
		return errA == nil && errB == nil && slices.Equal(a, b)
	default:
		return k.Default == documented
	}
}

// Planned lists the keys of a table that nothing uses yet.
func (s *Schema) Planned(table map[string]Documented) []string {
	var out []string
	for name := range table {
		if s.keys[name] == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
