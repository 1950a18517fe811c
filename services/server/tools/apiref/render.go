// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/OWNER/bothy/services/server/tools/internal/apidoc"
)

//go:embed templates
var templates embed.FS

// page is what a template gets: where it is and what all pages share.
type page struct {
	File, Title string
	Modules     []module
	Content     any
}

// frame is an op of the gateway, event an event type; both with their payload.
type frame struct {
	Name, Link, Action string
	Summary            template.HTML
	Payload            field
	Example            template.HTML
}

type event struct {
	frame
	Module, Receive   string
	Durable, Personal bool
}

type gatewayPage struct {
	Introduction []template.HTML
	Client       []frame
	Server       []frame
	Events       []event
	Closes       []closeCode
}

type startPage struct {
	Introduction []template.HTML
	Operations   int
	Errors       []errorCode
}

type typePage struct{ Types []typeEntry }

type typeEntry struct {
	Name   string
	Letter string
	field
}

// render gives every file of the reference by name.
func render(c *contract) (map[string][]byte, error) {
	t, err := template.New("").Funcs(template.FuncMap{"inline": inline, "lower": strings.ToLower, "segments": segments}).
		ParseFS(templates, "templates/*.html")
	if err != nil {
		return nil, err
	}
	modules := c.modules()
	codes, err := errorCodes()
	if err != nil {
		return nil, err
	}
	start := startPage{Introduction: paragraphs(c.rest.at("info", "description").text()), Operations: len(c.doc.Operations), Errors: codes}
	type job struct {
		template string
		page
	}
	jobs := []job{
		{"start", page{"index.html", "API reference", modules, start}},
		{"gateway", page{"gateway.html", "Gateway", modules, c.gatewayPage()}},
		{"types", page{"types.html", "Types", modules, c.typePage()}},
	}
	for _, m := range modules {
		jobs = append(jobs, job{"module", page{m.File, m.Name, modules, m}})
	}
	files := map[string][]byte{}
	for _, j := range jobs {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, j.template, j.page); err != nil {
			return nil, fmt.Errorf("%s: %w", j.File, err)
		}
		files[j.File] = tidy(b.Bytes())
	}
	style, err := templates.ReadFile("templates/reference.css")
	if err != nil {
		return nil, err
	}
	files["reference.css"] = bytes.Replace(style, []byte("/* colours */\n"), c.colourRules(), 1)
	return files, nil
}

// tidy drops the blank lines that template actions leave behind, outside preformatted text where lines matter.
func tidy(text []byte) []byte {
	var out []byte
	inPre := false
	for line := range bytes.Lines(text) {
		if !inPre && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !inPre {
			line = bytes.TrimLeft(line, " \t")
		}
		if open, end := bytes.LastIndex(line, []byte("<pre")), bytes.LastIndex(line, []byte("</pre>")); open >= 0 || end >= 0 {
			inPre = open > end
		}
		out = append(out, line...)
	}
	return out
}

// segment is a part of a path; parameters are set apart.
type segment struct {
	Text      string
	Parameter bool
}

func segments(path string) []segment {
	var out []segment
	for part := range strings.SplitAfterSeq(path, "/") {
		name, slash := strings.CutSuffix(part, "/")
		if strings.HasPrefix(name, "{") {
			out = append(out, segment{name, true})
			if slash {
				out = append(out, segment{"/", false})
			}
			continue
		}
		out = append(out, segment{part, false})
	}
	return out
}

func (c *contract) gatewayPage() gatewayPage {
	intro, _, _ := strings.Cut(c.async.at("info", "description").text(), "Close codes:")
	g := gatewayPage{Introduction: paragraphs(intro), Closes: c.closeCodes()}
	for key, m := range c.async.at("components", "messages").members() {
		client := strings.HasPrefix(key, "client")
		i := slices.IndexFunc(c.gateway.Ops, func(o apidoc.Op) bool { return o.Client == client && o.Name == m.at("name").text() })
		o := c.gateway.Ops[i]
		f := c.frame(o.Name, o.Type)
		f.Action, f.Summary = o.Action, inline(m.at("summary").text())
		if strings.HasPrefix(string(f.Summary), "Frame <code>") && f.Payload.Description != "" {
			f.Summary = f.Payload.Description
		}
		if client {
			f.Link = "client-" + o.Name
			g.Client = append(g.Client, f)
		} else {
			f.Link = "server-" + o.Name
			g.Server = append(g.Server, f)
		}
	}
	for _, e := range c.gateway.Events {
		f := c.frame(e.Name, e.Type)
		f.Link, f.Summary = "event-"+e.Name, f.Payload.Description
		g.Events = append(g.Events, event{f, e.Module, e.ReceiveAction, e.Kind == "durable", e.Personal})
	}
	return g
}

func (c *contract) frame(name, typeName string) frame {
	f := frame{Name: name, Payload: c.named(typeName)}
	if e := c.examples[typeName]; e.ok() {
		f.Example = e.markup()
	}
	return f
}

// named unfolds a type by its name.
func (c *contract) named(name string) field {
	schema := c.types[name]
	f := c.field("", schema, true, 0, []string{name})
	f.Type = []typePart{{name, "types.html#" + name}}
	return f
}

func (c *contract) typePage() typePage {
	var p typePage
	letter := ""
	for _, name := range c.typeNames() {
		// One level is enough where every type has an entry of its own.
		f := c.field("", c.types[name], true, maxDepth-1, []string{name})
		e := typeEntry{Name: name, field: f}
		if first := name[:1]; first != letter {
			letter, e.Letter = first, first
		}
		p.Types = append(p.Types, e)
	}
	return p
}

// colourRules turns the colours of the design into custom properties for both schemes.
func (c *contract) colourRules() []byte {
	var light, dark bytes.Buffer
	for name, v := range c.colours.members() {
		fmt.Fprintf(&light, "  --%s: %s;\n", name, v.at("light").text())
		fmt.Fprintf(&dark, "    --%s: %s;\n", name, v.at("dark").text())
	}
	return fmt.Appendf(nil, ":root {\n  color-scheme: light dark;\n%s}\n@media (prefers-color-scheme: dark) {\n  :root {\n%s  }\n}\n", &light, &dark)
}
