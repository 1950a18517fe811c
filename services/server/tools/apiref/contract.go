// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/OWNER/bothy/services/server/tools/internal/apidoc"
)

// sources are the files a reference is made from.
type sources struct{ api, actions, tokens string }

// contract is everything the pages show. The checked form of apidoc says what there is; the ordered documents beside it
// say in which order the authors wrote it.
type contract struct {
	rest     node
	async    node
	doc      *apidoc.OpenAPI
	gateway  *apidoc.Gateway
	actions  map[string]apidoc.Action
	types    map[string]node
	examples map[string]node
	colours  node
}

func load(in sources) (*contract, error) {
	c := &contract{actions: map[string]apidoc.Action{}, types: map[string]node{}, examples: map[string]node{}}
	var err error
	if c.doc, err = apidoc.LoadOpenAPI(filepath.Join(in.api, "openapi.yaml")); err != nil {
		return nil, err
	}
	if c.gateway, err = apidoc.LoadGateway(in.api); err != nil {
		return nil, err
	}
	actions, err := apidoc.LoadActions(in.actions)
	if err != nil {
		return nil, err
	}
	for _, a := range actions {
		c.actions[a.ID] = a
	}
	if c.rest, err = readNode(filepath.Join(in.api, "openapi.yaml")); err != nil {
		return nil, err
	}
	if c.async, err = readNode(filepath.Join(in.api, "asyncapi.yaml")); err != nil {
		return nil, err
	}
	if c.colours, err = readNode(in.tokens); err != nil {
		return nil, err
	}
	for name, schema := range c.rest.at("components", "schemas").members() {
		c.types[name] = schema
	}
	return c, c.loadSchemaFiles(in.api)
}

// loadSchemaFiles adds the types that exist only on the gateway and the examples of all of them.
func (c *contract) loadSchemaFiles(api string) error {
	files, err := filepath.Glob(filepath.Join(api, "schemas", "*", "*.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		schema, err := readNode(file)
		if err != nil {
			return err
		}
		name := schema.at("title").text()
		if ref := schema.at("$ref").text(); ref != "" {
			name = refName(ref)
		} else {
			c.types[name] = schema
		}
		if list := schema.at("examples").items(); len(list) > 0 {
			c.examples[name] = list[0]
		}
		for def, s := range schema.at("$defs").members() {
			c.types[def] = s
		}
	}
	for _, e := range c.gateway.Events {
		if !c.types[e.Type].ok() {
			return fmt.Errorf("event %s: there is no type %s", e.Name, e.Type)
		}
	}
	return nil
}

// resolve follows a reference inside the REST document.
func (c *contract) resolve(n node) node {
	ref := n.at("$ref").text()
	if ref == "" {
		return n
	}
	return c.rest.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// typeNames lists the types in the order of the alphabet.
func (c *contract) typeNames() []string {
	names := make([]string, 0, len(c.types))
	for name := range c.types {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// modules lists the tags in the order of the document, each with its operations in the order of the paths.
func (c *contract) modules() []module {
	var out []module
	for _, tag := range c.rest.at("tags").items() {
		m := module{Name: tag.at("name").text(), Description: inline(tag.at("description").text())}
		m.File = "module-" + m.Name + ".html"
		for path, item := range c.rest.at("paths").members() {
			for method, op := range item.members() {
				if i := slices.IndexFunc(c.doc.Operations, func(o apidoc.Operation) bool {
					return o.Path == path && strings.EqualFold(o.Method, method) && o.Module == m.Name
				}); i >= 0 {
					m.Operations = append(m.Operations, c.operation(c.doc.Operations[i], op, m.File))
				}
			}
		}
		if len(m.Operations) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// closeCode is a way the gateway ends a connection.
type closeCode struct{ Number, Meaning string }

var closeCodePattern = regexp.MustCompile(`(4\d{3}) ([^,.(]+(?:\([^)]*\))?)`)

// closeCodes reads the list in the description of the gateway.
func (c *contract) closeCodes() []closeCode {
	_, list, _ := strings.Cut(c.async.at("info", "description").text(), "Close codes:")
	var out []closeCode
	for _, m := range closeCodePattern.FindAllStringSubmatch(list, -1) {
		out = append(out, closeCode{m[1], strings.TrimSpace(m[2])})
	}
	return out
}
