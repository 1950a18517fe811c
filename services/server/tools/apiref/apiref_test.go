// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

func contractOfTheServer(t *testing.T) *contract {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..")
	c, err := load(sources{
		api: filepath.Join(root, "docs", "api"), actions: filepath.Join(root, "docs", "spec", "actions.yaml"),
		tokens: filepath.Join(root, "design", "tokens", "color.json"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pages(t *testing.T) (*contract, map[string][]byte) {
	t.Helper()
	c := contractOfTheServer(t)
	files, err := render(c)
	if err != nil {
		t.Fatal(err)
	}
	return c, files
}

func TestEverythingOfTheContractHasItsPlace(t *testing.T) {
	c, files := pages(t)
	has := func(file, id string) {
		t.Helper()
		if !bytes.Contains(files[file], []byte(`id="`+id+`"`)) {
			t.Errorf("%s has no place %s", file, id)
		}
	}
	for _, o := range c.doc.Operations {
		file := "module-" + o.Module + ".html"
		has(file, o.ID)
		if !bytes.Contains(files["index.html"], []byte(`href="`+file+"#"+o.ID+`"`)) {
			t.Errorf("the index does not lead to %s", o.ID)
		}
	}
	for _, o := range c.gateway.Ops {
		has("gateway.html", map[bool]string{true: "client-", false: "server-"}[o.Client]+o.Name)
	}
	for _, e := range c.gateway.Events {
		has("gateway.html", "event-"+e.Name)
	}
	for name := range c.types {
		has("types.html", name)
	}
	for _, code := range errs.Codes() {
		has("index.html", "error-"+string(code))
	}
	for _, number := range []string{"4000", "4007", "4014", "4018"} {
		has("gateway.html", "close-"+number)
	}
}

var (
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	identity  = regexp.MustCompile(`\sid="([^"]*)"`)
	forbidden = regexp.MustCompile(`(?i)<script|<style|\sstyle=|\son[a-z]+=|javascript:|<iframe|@import|url\(`)
)

func TestPagesNeedNothingButThemselves(t *testing.T) {
	_, files := pages(t)
	places := map[string]map[string]bool{}
	for name, text := range files {
		if m := forbidden.Find(text); m != nil {
			t.Errorf("%s contains %q", name, m)
		}
		places[name] = map[string]bool{}
		for _, m := range identity.FindAllSubmatch(text, -1) {
			if places[name][string(m[1])] {
				t.Errorf("%s has the place %s twice", name, m[1])
			}
			places[name][string(m[1])] = true
		}
	}
	for name, text := range files {
		for _, m := range reference.FindAllSubmatch(text, -1) {
			file, id, _ := strings.Cut(string(m[1]), "#")
			switch file {
			case "":
				file = name
			case "./":
				file = "index.html"
			}
			if files[file] == nil || id != "" && !places[file][id] {
				t.Errorf("%s leads to %s, which is not there", name, m[1])
			}
		}
	}
}

func TestTheWayAnOperationIsShown(t *testing.T) {
	c := contractOfTheServer(t)
	var op operation
	for _, m := range c.modules() {
		for _, o := range m.Operations {
			if o.ID == "createMessage" {
				op = o
			}
		}
	}
	if op.Credentials != sessionOrToken || op.Scope != "messaging.write" || op.Right != "write on the thread" || op.Who != "person, agent or app" {
		t.Errorf("%+v", op)
	}
	for _, want := range []string{
		`curl "$BOTHY/api/v1/threads/`, "-X POST", `-H "Authorization: Bearer $TOKEN"`, "-H 'Content-Type: application/json'", `"client_msg_id": "`,
	} {
		if !strings.Contains(op.Curl, want) {
			t.Errorf("%s\nlacks %s", op.Curl, want)
		}
	}
	if strings.Contains(op.Curl, "{thread_id}") {
		t.Errorf("a parameter has no value:\n%s", op.Curl)
	}
	if op.Request.Children[0].Name != "client_msg_id" || !op.Request.Children[0].Required || op.Request.Children[2].Required {
		t.Errorf("members are not in the order of the contract: %+v", op.Request.Children)
	}
	if len(op.Responses) != 1 || op.Responses[0].Status != "201, 200" {
		t.Errorf("equal answers do not stand together: %+v", op.Responses)
	}
}

func TestSchemasBecomeWords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schema.yaml")
	text := `
thing:
  type: object
  required: [id]
  properties:
    id: {type: string, format: uuid}
    parent: {oneOf: [{$ref: '#/x/Thing'}, {type: 'null'}]}
    names: {type: array, maxItems: 3, items: {type: string}}
    counts: {type: object, additionalProperties: {type: integer}}
    state: {type: [string, 'null'], enum: [open, closed]}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := readNode(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &contract{types: map[string]node{"Thing": doc.at("thing")}}
	var got []string
	for _, f := range c.named("Thing").Children {
		words := f.Name
		if f.Nullable {
			words += "?"
		}
		if f.Required {
			words += "!"
		}
		for _, p := range f.Type {
			words += " " + p.Text
		}
		got = append(got, strings.Join(append([]string{words}, append(f.Limits, f.Values...)...), "|"))
	}
	want := "id! UUID, parent? Thing, names list of  string|at most 3 items, counts map of  integer, state? string|open|closed"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

func TestProseIsNeverMarkupOfItsOwn(t *testing.T) {
	got := string(inline("a <b> `x < y` **must**"))
	if got != "a &lt;b&gt; <code>x &lt; y</code> <strong>must</strong>" {
		t.Error(got)
	}
}

func TestAWrittenReferenceHoldsNoPageOfTheOneBefore(t *testing.T) {
	out := t.TempDir()
	old := filepath.Join(out, "module-gone.html")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..", "..", "..")
	if err := run(sources{filepath.Join(root, "docs", "api"), filepath.Join(root, "docs", "spec", "actions.yaml"), filepath.Join(root, "design", "tokens", "color.json")}, out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Error("the page of a module that is gone is still there")
	}
	if _, err := os.Stat(filepath.Join(out, "index.html")); err != nil {
		t.Error(err)
	}
}
