// SPDX-License-Identifier: Apache-2.0

// Command contractgen prepares the contract for the tools that cannot read it as it stands, and writes the parts of
// the generated code that no other tool makes:
//
//   - contract.gen.json, the schemas the server checks requests and frames against,
//   - a document with the gateway types alone, for oapi-codegen,
//   - one document with all types, for openapi-typescript, and the same with plain types, for the SDK,
//   - the Go and TypeScript tables that join ops and event types with their payload types.
//
// Usage: contractgen -api docs/api -contract FILE -gateway FILE -bundle FILE -sdk FILE -go FILE -ts FILE
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/format"
	"os"
	"strings"

	"github.com/OWNER/bothy/services/server/tools/internal/apidoc"
)

func main() {
	var p paths
	flag.StringVar(&p.api, "api", "", "folder of openapi.yaml and asyncapi.yaml")
	flag.StringVar(&p.contract, "contract", "", "JSON file of the schemas for the server")
	flag.StringVar(&p.gateway, "gateway", "", "OpenAPI document of the gateway types")
	flag.StringVar(&p.bundle, "bundle", "", "OpenAPI document of all types")
	flag.StringVar(&p.sdk, "sdk", "", "OpenAPI document of all types with plain Go types")
	flag.StringVar(&p.golang, "go", "", "Go file of the gateway tables")
	flag.StringVar(&p.ts, "ts", "", "TypeScript file of the gateway tables")
	flag.Parse()
	if err := run(p); err != nil {
		fmt.Fprintln(os.Stderr, "contractgen:", err)
		os.Exit(1)
	}
}

type paths struct{ api, contract, gateway, bundle, sdk, golang, ts string }

func run(p paths) error {
	doc, err := apidoc.LoadOpenAPI(p.api + "/openapi.yaml")
	if err != nil {
		return err
	}
	gw, err := apidoc.LoadGateway(p.api)
	if err != nil {
		return err
	}
	for name := range gw.Schemas {
		if _, ok := doc.Schemas()[name]; ok {
			return fmt.Errorf("%s is defined in openapi.yaml and in a schema file", name)
		}
	}
	tables, err := format.Source(goTables(gw))
	if err != nil {
		return fmt.Errorf("format the gateway tables: %w", err)
	}
	if err := os.WriteFile(p.golang, tables, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(p.ts, tsTables(gw), 0o644); err != nil {
		return err
	}
	if err := writeJSON(p.gateway, gatewayDocument(gw)); err != nil {
		return err
	}
	if err := writeJSON(p.bundle, bundle(doc, gw)); err != nil {
		return err
	}
	if err := writeJSON(p.sdk, plainTypes(bundle(doc, gw))); err != nil {
		return err
	}
	return writeJSON(p.contract, contract(doc, gw))
}

func writeJSON(file string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// gatewayDocument holds the gateway types; REST types stay references to a document of their own, which oapi-codegen
// maps to the package rest.
func gatewayDocument(gw *apidoc.Gateway) map[string]any {
	return map[string]any{
		"openapi": "3.1.0", "info": map[string]any{"title": "Bothy gateway types", "version": "1"}, "paths": map[string]any{},
		"components": map[string]any{"schemas": gw.Schemas},
	}
}

// bundle is openapi.yaml with the gateway types among its components.
func bundle(doc *apidoc.OpenAPI, gw *apidoc.Gateway) map[string]any {
	out := map[string]any{}
	for k, v := range doc.Raw {
		out[k] = v
	}
	components := map[string]any{}
	for k, v := range doc.Raw["components"].(map[string]any) {
		components[k] = v
	}
	components["schemas"] = allSchemas(doc, gw)
	delete(components, "examples")
	out["components"] = components
	return without(out, "examples", "example").(map[string]any)
}

// plainTypes drops the Go types of the server. Raw JSON stays raw.
func plainTypes(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		raw := t["x-go-type"] == "json.RawMessage"
		for k, e := range t {
			if !raw && (strings.HasPrefix(k, "x-go-type") || k == "x-omitzero") {
				continue
			}
			out[k] = plainTypes(e)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = plainTypes(e)
		}
		return out
	default:
		return v
	}
}

func allSchemas(doc *apidoc.OpenAPI, gw *apidoc.Gateway) map[string]any {
	all := map[string]any{}
	for k, v := range doc.Schemas() {
		all[k] = v
	}
	for k, v := range gw.Schemas {
		all[k] = inOneDocument(v)
	}
	return all
}

// contract is what the server checks against: schemas without prose, and per operation its body and parameters.
func contract(doc *apidoc.OpenAPI, gw *apidoc.Gateway) map[string]any {
	ops := map[string]any{}
	for _, o := range doc.Operations {
		entry := map[string]any{}
		if o.RequestSchema != "" {
			entry["body"] = o.RequestSchema
			entry["body_required"] = o.RequestRequired
		}
		var params []apidoc.Parameter
		for _, p := range o.Parameters {
			if p.In != "header" {
				params = append(params, p)
			}
		}
		if params != nil {
			entry["parameters"] = params
		}
		if o.OpenQuery {
			entry["open_query"] = true
		}
		ops[o.ID] = entry
	}
	return map[string]any{
		"components": map[string]any{"schemas": without(allSchemas(doc, gw), "description", "x-go-type", "x-go-type-import", "x-go-type-skip-optional-pointer", "x-omitzero")},
		"operations": without(plain(ops), "description"),
	}
}

// plain turns typed values into the maps of encoding/json, so that they can be walked.
func plain(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}

// inOneDocument points references to openapi.yaml into the same document.
func inOneDocument(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			if ref, ok := e.(string); ok && k == "$ref" {
				out[k] = "#/components/schemas/" + apidoc.RefName(ref)
				continue
			}
			out[k] = inOneDocument(e)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = inOneDocument(e)
		}
		return out
	default:
		return v
	}
}

// without drops keywords. Below "properties" the keys are names of members, never keywords.
func without(v any, drop ...string) any {
	return prune(v, drop, false)
}

func prune(v any, drop []string, names bool) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			if !names && contains(drop, k) {
				continue
			}
			out[k] = prune(e, drop, !names && (k == "properties" || k == "schemas" || k == "operations"))
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = prune(e, drop, false)
		}
		return out
	default:
		return v
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
