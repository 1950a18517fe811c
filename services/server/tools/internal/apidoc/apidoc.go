// SPDX-License-Identifier: Apache-2.0

// Package apidoc reads the contract files (openapi.yaml, asyncapi.yaml, the event schemas and the catalogue of
// actions) for the generators. It checks the form of what it reads: a generator never guesses at a missing member.
package apidoc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// Operation is one REST operation with what the server needs to know before it calls the handler.
type Operation struct {
	ID, Method, Path, Module  string
	Action, RateLimit, Body   string
	InBand, IgnoresKey, Match bool
	// OpenQuery operations are called by strangers who add parameters of their own.
	OpenQuery bool
	// Transfer operations answer with a stream and have the deadline of transfers.
	Transfer        bool
	ErrorCodes      []string
	RequestSchema   string
	RequestRequired bool
	Parameters      []Parameter
}

// Parameter is a query, path or header parameter of an operation.
type Parameter struct {
	Name     string         `json:"name"`
	In       string         `json:"in"`
	Required bool           `json:"required,omitempty"`
	Schema   map[string]any `json:"schema"`
}

// OpenAPI is the REST document.
type OpenAPI struct {
	// Raw is the whole document.
	Raw map[string]any
	// Operations stand in the order of their IDs.
	Operations []Operation
}

// Schemas are the components of the document.
func (d *OpenAPI) Schemas() map[string]any {
	return d.Raw["components"].(map[string]any)["schemas"].(map[string]any)
}

var methods = []string{"get", "post", "put", "patch", "delete"}

// LoadOpenAPI reads openapi.yaml.
func LoadOpenAPI(file string) (*OpenAPI, error) {
	raw, err := loadYAML(file)
	if err != nil {
		return nil, err
	}
	d := &OpenAPI{Raw: raw}
	for path, item := range raw["paths"].(map[string]any) {
		for _, m := range methods {
			op, ok := item.(map[string]any)[m].(map[string]any)
			if !ok {
				continue
			}
			o, err := d.operation(m, path, op)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", m, path, err)
			}
			d.Operations = append(d.Operations, o)
		}
	}
	sort.Slice(d.Operations, func(i, j int) bool { return d.Operations[i].ID < d.Operations[j].ID })
	return d, nil
}

func (d *OpenAPI) operation(method, path string, op map[string]any) (Operation, error) {
	o := Operation{Method: strings.ToUpper(method), Path: path}
	for member, into := range map[string]*string{"operationId": &o.ID, "x-action": &o.Action, "x-rate-limit": &o.RateLimit, "x-body-limit": &o.Body} {
		s, ok := op[member].(string)
		if !ok || s == "" {
			return o, fmt.Errorf("%s is missing", member)
		}
		*into = s
	}
	tags, _ := op["tags"].([]any)
	if len(tags) != 1 {
		return o, fmt.Errorf("%s needs exactly one tag: its module", o.ID)
	}
	o.Module = tags[0].(string)
	o.InBand, _ = op["x-authorized-in-band"].(bool)
	o.IgnoresKey, _ = op["x-ignores-idempotency-key"].(bool)
	o.OpenQuery, _ = op["x-open-query"].(bool)
	o.Transfer, _ = op["x-transfer"].(bool)
	codes, ok := op["x-error-codes"].([]any)
	if !ok {
		return o, fmt.Errorf("%s: x-error-codes is missing", o.ID)
	}
	for _, c := range codes {
		o.ErrorCodes = append(o.ErrorCodes, c.(string))
	}
	slices.Sort(o.ErrorCodes)
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		pm := d.Resolve(p.(map[string]any))
		q := Parameter{Name: pm["name"].(string), In: pm["in"].(string), Schema: pm["schema"].(map[string]any)}
		q.Required, _ = pm["required"].(bool)
		if q.Name == "If-Match" {
			o.Match = true
		}
		o.Parameters = append(o.Parameters, q)
	}
	if body, ok := op["requestBody"].(map[string]any); ok {
		o.RequestRequired, _ = body["required"].(bool)
		if plain, ok := body["content"].(map[string]any)["application/json"].(map[string]any); ok {
			o.RequestSchema = RefName(plain["schema"].(map[string]any)["$ref"].(string))
		}
	}
	if (o.Body == "json") != (o.RequestSchema != "") {
		return o, fmt.Errorf("%s: x-body-limit %s does not fit the request body", o.ID, o.Body)
	}
	return o, nil
}

// Resolve follows a reference inside the document.
func (d *OpenAPI) Resolve(m map[string]any) map[string]any {
	ref, ok := m["$ref"].(string)
	if !ok {
		return m
	}
	var at any = d.Raw
	for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		at = at.(map[string]any)[part]
	}
	return at.(map[string]any)
}

// RefName is the last part of a reference.
func RefName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// Op is an op of the gateway with the schema of its d.
type Op struct {
	Name, Action, Type string
	Client             bool
}

// Event is an event type with the schema of its data.
type Event struct {
	Name          string
	Module        string `yaml:"module"`
	Kind          string `yaml:"kind"`
	Personal      bool   `yaml:"personal"`
	ReceiveAction string `yaml:"receive_action"`
	Type          string
}

// Gateway is the contract of the WebSocket.
type Gateway struct {
	Ops    []Op
	Events []Event
	// Schemas are the schemas that exist only for the gateway, by type name. References to REST schemas begin with
	// "openapi.yaml#".
	Schemas map[string]any
	// Examples are the examples of each schema file, by type name.
	Examples map[string][]any
}

// LoadGateway reads asyncapi.yaml and the schemas below schemas/.
func LoadGateway(dir string) (*Gateway, error) {
	raw, err := loadYAML(filepath.Join(dir, "asyncapi.yaml"))
	if err != nil {
		return nil, err
	}
	g := &Gateway{Schemas: map[string]any{}, Examples: map[string][]any{}}
	messages := raw["components"].(map[string]any)["messages"].(map[string]any)
	for key, m := range messages {
		msg := m.(map[string]any)
		ref := msg["payload"].(map[string]any)["properties"].(map[string]any)["d"].(map[string]any)["$ref"].(string)
		op := Op{Name: msg["name"].(string), Client: strings.HasPrefix(key, "client")}
		op.Action, _ = msg["x-action"].(string)
		if op.Client == (op.Action == "") {
			return nil, fmt.Errorf("%s: client frames, and only they, need x-action", key)
		}
		if op.Type, err = g.load(dir, ref); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		g.Ops = append(g.Ops, op)
	}
	sort.Slice(g.Ops, func(i, j int) bool {
		if g.Ops[i].Client != g.Ops[j].Client {
			return g.Ops[i].Client
		}
		return g.Ops[i].Name < g.Ops[j].Name
	})
	for name, v := range raw["x-events"].(map[string]any) {
		e := Event{Name: name}
		b, err := yaml.Marshal(v)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(b, &e); err != nil {
			return nil, err
		}
		if e.Module == "" || e.ReceiveAction == "" || e.Kind != "durable" && e.Kind != "ephemeral" {
			return nil, fmt.Errorf("event %s: module, kind or receive_action is missing", name)
		}
		ref := v.(map[string]any)["data"].(map[string]any)["$ref"].(string)
		if e.Type, err = g.load(dir, ref); err != nil {
			return nil, fmt.Errorf("event %s: %w", name, err)
		}
		g.Events = append(g.Events, e)
	}
	sort.Slice(g.Events, func(i, j int) bool { return g.Events[i].Name < g.Events[j].Name })
	return g, nil
}

// load reads a schema file once and gives the name of its type: the title, or the REST schema it stands for.
func (g *Gateway) load(dir, ref string) (string, error) {
	if strings.Contains(ref, "openapi.yaml#") {
		return RefName(ref), nil
	}
	file := filepath.Join(dir, filepath.FromSlash(strings.SplitN(ref, "#", 2)[0]))
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	name, _ := s["title"].(string)
	if to, ok := s["$ref"].(string); ok {
		name = RefName(to)
	}
	if name == "" {
		return "", fmt.Errorf("%s: neither title nor $ref", file)
	}
	examples, _ := s["examples"].([]any)
	g.Examples[name] = append(g.Examples[name], examples...)
	if _, ok := s["$ref"]; ok {
		return name, nil
	}
	defs, _ := s["$defs"].(map[string]any)
	for _, drop := range []string{"$schema", "title", "$defs", "examples"} {
		delete(s, drop)
	}
	g.Schemas[name] = local(s)
	for n, d := range defs {
		if other, ok := g.Schemas[n]; ok && fmt.Sprint(other) != fmt.Sprint(local(d)) {
			return "", fmt.Errorf("%s: %s is defined twice", file, n)
		}
		g.Schemas[n] = local(d)
	}
	return name, nil
}

// local turns references between files into references inside one document.
func local(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			if ref, ok := e.(string); ok && k == "$ref" {
				switch {
				case strings.Contains(ref, "openapi.yaml#"):
					out[k] = "openapi.yaml#/components/schemas/" + RefName(ref)
				default:
					out[k] = "#/components/schemas/" + strings.TrimSuffix(RefName(ref), ".json")
				}
				continue
			}
			out[k] = local(e)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = local(e)
		}
		return out
	default:
		return v
	}
}

func loadYAML(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var raw map[string]any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return raw, nil
}
