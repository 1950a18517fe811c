// SPDX-License-Identifier: Apache-2.0

// Package contract checks requests and frames against the schemas of the API documents, before any handler sees them.
// It promises that what passes has no unknown member and no value of a wrong form; every fault is reported at once,
// with a JSON pointer. Limits that are configuration (the size of a message, for example) are not known here.
package contract

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

//go:embed contract.gen.json
var document []byte

const location = "contract.json"

type set struct {
	// operations are keyed by ID in lower case: generated code spells an ID as a Go name, so
	// that getJwks becomes getJWKS there.
	operations map[string]*operation
	schemas    map[string]*jsonschema.Schema
}

func (s *set) operation(id string) *operation { return s.operations[strings.ToLower(id)] }

type operation struct {
	Body         string      `json:"body"`
	BodyRequired bool        `json:"body_required"`
	Parameters   []parameter `json:"parameters"`
	// OpenQuery lets unknown query parameters pass.
	OpenQuery bool `json:"open_query"`
}

type parameter struct {
	Name     string         `json:"name"`
	In       string         `json:"in"`
	Required bool           `json:"required"`
	Schema   map[string]any `json:"schema"`

	compiled *jsonschema.Schema
	array    bool
	kind     string
}

// loaded compiles everything once. The document is part of the program, so a fault in it is a bug that the tests of
// this package meet first.
var loaded = sync.OnceValue(func() *set {
	s, err := load()
	if err != nil {
		panic(fmt.Sprintf("contract: %v", err))
	}
	return s
})

// Prepare compiles the schemas now instead of with the first request; call it when the program starts.
func Prepare() { loaded() }

func load() (*set, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	var text struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
		Operations map[string]*operation `json:"operations"`
	}
	if err := json.Unmarshal(document, &text); err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: "uuid", Validate: canonicalID})
	if err := c.AddResource(location, doc); err != nil {
		return nil, fmt.Errorf("add the document: %w", err)
	}
	s := &set{operations: make(map[string]*operation, len(text.Operations)), schemas: map[string]*jsonschema.Schema{}}
	for name := range text.Components.Schemas {
		if s.schemas[name], err = c.Compile(location + "#/components/schemas/" + name); err != nil {
			return nil, fmt.Errorf("compile %s: %w", name, err)
		}
	}
	for id, op := range text.Operations {
		s.operations[strings.ToLower(id)] = op
		for i := range op.Parameters {
			p := &op.Parameters[i]
			at := fmt.Sprintf("%s#/operations/%s/parameters/%d/schema", location, id, i)
			if p.compiled, err = c.Compile(at); err != nil {
				return nil, fmt.Errorf("compile parameter %s of %s: %w", p.Name, id, err)
			}
			p.kind, _ = p.Schema["type"].(string)
			p.array = p.kind == "array"
		}
	}
	return s, nil
}

func canonicalID(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	_, err := ids.Parse(s)
	return err
}

// Body checks the body of a request to an operation. It returns malformed_request for what is no JSON document, with
// io.EOF as its cause when there is no body at all, and validation_failed with every fault otherwise.
func Body(operationID string, raw []byte) error {
	op := loaded().operation(operationID)
	if op == nil || op.Body == "" {
		return fmt.Errorf("contract: operation %q has no body", operationID)
	}
	return Value(op.Body, raw)
}

// Value checks a JSON text against a schema by its name.
func Value(schema string, raw []byte) error {
	s := loaded().schemas[schema]
	if s == nil {
		return fmt.Errorf("contract: no schema %q", schema)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return errs.New(errs.CodeMalformedRequest, "The request needs a JSON body.").WithCause(io.EOF)
	}
	if !utf8.Valid(raw) {
		return errs.New(errs.CodeMalformedRequest, "The body is not valid UTF-8.")
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return errs.New(errs.CodeMalformedRequest, "The body is not one JSON document.").WithCause(err)
	}
	return faults(s.Validate(v), "")
}

// Parameters checks the path and query parameters of a request. Unknown query parameters are faults too.
func Parameters(operationID string, r *http.Request) error {
	op := loaded().operation(operationID)
	if op == nil {
		return fmt.Errorf("contract: no operation %q", operationID)
	}
	var all errs.Validation
	query := r.URL.Query()
	for i := range op.Parameters {
		p := &op.Parameters[i]
		pointer := p.In + ":" + p.Name
		values := query[p.Name]
		if p.In == "path" {
			values = []string{r.PathValue(p.Name)}
		}
		delete(query, p.Name)
		switch {
		case len(values) > 1:
			all.Add(pointer, "repeated", "Give the parameter once.")
		case len(values) == 1 && !isText(values[0]):
			all.Add(pointer, "malformed", "The value must be UTF-8 without NUL.")
		case len(values) == 1:
			collect(&all, p.compiled.Validate(p.value(values[0])), pointer)
		case p.Required:
			all.Add(pointer, "required", "The parameter is required.")
		}
	}
	for name := range query {
		if op.OpenQuery {
			break
		}
		all.Add("query:"+name, "unknown_parameter", "The operation has no such parameter.")
	}
	return all.Err()
}

// isText holds a parameter to what jsonguard holds a body to: the database stores no NUL and nothing but UTF-8.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// value reads the text of a parameter as its schema means it. What cannot be read stays a string, so that the schema
// names the fault.
func (p *parameter) value(text string) any {
	if p.array {
		parts := strings.Split(text, ",")
		out := make([]any, len(parts))
		for i, part := range parts {
			out[i] = part
		}
		return out
	}
	switch p.kind {
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.Number(strconv.FormatInt(n, 10))
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	return text
}

// faults turns the answer of the validator into one validation_failed; nil stays nil.
func faults(err error, prefix string) error {
	var all errs.Validation
	collect(&all, err, prefix)
	return all.Err()
}

func collect(all *errs.Validation, err error, prefix string) {
	if err == nil {
		return
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		all.Add(prefix, "invalid", "The value does not fit the contract.")
		return
	}
	leaves(all, ve, prefix)
}
