// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"strings"
)

// Entry is one effective value.
type Entry struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source Source `json:"source"`
}

// Entries gives the effective values by name; with changed only those that no default set.
// References appear as they are, never what they refer to.
func (l *Loaded) Entries(changed bool) []Entry {
	var out []Entry
	for _, name := range l.schema.names() {
		source := l.sources[name]
		if changed && source == SourceDefault {
			continue
		}
		out = append(out, Entry{name, l.schema.keys[name].text(), source})
	}
	return out
}

// Print writes one line per effective value: "key: value  # source".
func (l *Loaded) Print(w io.Writer, changed bool) error {
	for _, e := range l.Entries(changed) {
		if _, err := fmt.Fprintf(w, "%s: %s  # %s\n", e.Key, e.Value, e.Source); err != nil {
			return fmt.Errorf("print configuration: %w", err)
		}
	}
	return nil
}

// Refs lists the references that are set, by key, for the check that resolves them.
func (l *Loaded) Refs() []Entry {
	var out []Entry
	for _, e := range l.Entries(false) {
		if l.schema.keys[e.Key].Type == "ref" && e.Value != "" {
			out = append(out, e)
		}
	}
	return out
}

// Reference writes the page for operators: every key with its variable, type, default,
// range and meaning, grouped by the first word of the name. Call it on a schema that has
// not been loaded, as it shows the defaults.
func (s *Schema) Reference(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Configuration reference\n\nGenerated from the schema. A key is set in the file, nested by its dots, or by its variable.\n")
	section := ""
	for _, k := range s.Keys() {
		if first, _, _ := strings.Cut(k.Name, "."); first != section {
			section = first
			fmt.Fprintf(&b, "\n## %s\n\n| Key | Type | Default | Allowed | Owner | Meaning |\n| --- | --- | --- | --- | --- | --- |\n", section)
		}
		fmt.Fprintf(&b, "| `%s`<br>`%s` | %s | %s | %s | %s | %s |\n",
			k.Name, EnvName(k.Name), k.Type, k.defaultText(), k.allowed(), k.Owner, escape(k.Doc))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write configuration reference: %w", err)
	}
	return nil
}

func (k Key) defaultText() string {
	switch {
	case k.Default != "":
		return "`" + escape(k.Default) + "`"
	case k.Required:
		return "none, required"
	default:
		return "empty"
	}
}

func (k Key) allowed() string {
	switch {
	case k.Enum != nil:
		return strings.Join(k.Enum, ", ")
	case (k.Min != "" || k.Max != "") && k.kind == kindList:
		return "each " + strings.TrimPrefix(k.rangeError().Error(), "must be ")
	case k.Min != "" || k.Max != "":
		return strings.TrimPrefix(k.rangeError().Error(), "must be ")
	default:
		return ""
	}
}

func escape(s string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s) }
