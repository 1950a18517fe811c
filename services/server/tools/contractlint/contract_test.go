// SPDX-License-Identifier: Apache-2.0

package contractlint_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/api/routes"
	"github.com/OWNER/bothy/services/server/api/ws"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/tools/internal/apidoc"
)

const docs = "../../../../docs/api"

func openAPI(t *testing.T) *apidoc.OpenAPI {
	t.Helper()
	doc, err := apidoc.LoadOpenAPI(filepath.Join(docs, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func gateway(t *testing.T) *apidoc.Gateway {
	t.Helper()
	gw, err := apidoc.LoadGateway(docs)
	if err != nil {
		t.Fatal(err)
	}
	return gw
}

func examples(doc *apidoc.OpenAPI) map[string]any {
	out := map[string]any{}
	for name, e := range doc.Raw["components"].(map[string]any)["examples"].(map[string]any) {
		out[name] = e.(map[string]any)["value"]
	}
	return out
}

// rateClasses reads the table of chapter 07, which owns the names.
func rateClasses(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/spec/07-access.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^\| (rl\.[a-z_]+) \|`).FindAllSubmatch(text, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

func TestEveryOperationNamesAKnownActionAndRateClass(t *testing.T) {
	classes := rateClasses(t)
	if len(classes) < 30 {
		t.Fatalf("found only %d rate classes in chapter 07", len(classes))
	}
	for _, o := range routes.Operations {
		if _, ok := authorize.SpecOf(authorize.Action(o.Action)); !ok {
			t.Errorf("%s: no action %s in the catalogue", o.ID, o.Action)
		}
		if !slices.Contains(classes, o.RateLimitClass) {
			t.Errorf("%s: no rate class %s", o.ID, o.RateLimitClass)
		}
	}
	for _, s := range authorize.Catalogue {
		if s.RateLimit != "" && !slices.Contains(classes, s.RateLimit) {
			t.Errorf("%s: no rate class %s", s.ID, s.RateLimit)
		}
	}
}

func TestEveryOpAndEventNamesAKnownAction(t *testing.T) {
	for _, o := range routes.Ops {
		if _, ok := authorize.SpecOf(authorize.Action(o.Action)); !ok {
			t.Errorf("op %s: no action %s", o.Name, o.Action)
		}
	}
	for _, e := range routes.Events {
		if _, ok := authorize.SpecOf(authorize.Action(e.ReceiveAction)); !ok {
			t.Errorf("event %s: no action %s", e.Type, e.ReceiveAction)
		}
	}
}

// questions are read, but too large for the query of an address.
var questions = map[string]bool{"previewAccess": true}

// returns are browsers that a provider sends back: by redirect, so with GET, and once.
var returns = map[string]bool{"oidcCallback": true}

func TestReadingOperationsCarryReadingActions(t *testing.T) {
	for _, o := range routes.Operations {
		if questions[o.ID] || returns[o.ID] {
			continue
		}
		s, _ := authorize.SpecOf(authorize.Action(o.Action))
		// A read that takes a body is a POST which can be repeated as it is.
		reads := !o.Writes() || o.IgnoresIdempotencyKey
		if s.Effect == authorize.EffectWrite && !o.Writes() || s.Effect != authorize.EffectWrite && !reads {
			t.Errorf("%s is %s, its action %s is a %s", o.ID, o.Method, o.Action, s.Effect)
		}
	}
}

func TestErrorCodesComeFromTheClosedList(t *testing.T) {
	known := errs.Codes()
	for _, o := range routes.Operations {
		for _, c := range o.ErrorCodes {
			if !slices.Contains(known, errs.Code(c)) {
				t.Errorf("%s: unknown code %s", o.ID, c)
			}
		}
		hasMatch := slices.Contains(o.ErrorCodes, string(errs.CodePreconditionRequired)) && slices.Contains(o.ErrorCodes, string(errs.CodeVersionConflict))
		if o.RequiresIfMatch && !hasMatch {
			t.Errorf("%s takes If-Match and names neither fault of it", o.ID)
		}
	}
	enum := openAPI(t).Schemas()["ErrorCode"].(map[string]any)["enum"].([]any)
	if len(enum) != len(known) {
		t.Errorf("the contract lists %d codes, the kernel %d", len(enum), len(known))
	}
	for _, c := range enum {
		if !slices.Contains(known, errs.Code(c.(string))) {
			t.Errorf("the kernel has no code %s", c)
		}
	}
}

func TestPathsDoNotOverlap(t *testing.T) {
	mux := http.NewServeMux()
	for _, o := range routes.Operations {
		mux.HandleFunc(o.Pattern(), func(http.ResponseWriter, *http.Request) {}) // panics on a conflict
	}
}

func TestEveryOperationHasProseAnExampleAndTheSharedError(t *testing.T) {
	doc := openAPI(t)
	for path, item := range doc.Raw["paths"].(map[string]any) {
		for method, v := range item.(map[string]any) {
			op := v.(map[string]any)
			name := method + " " + path
			if op["summary"] == nil || op["security"] == nil {
				t.Errorf("%s: summary or security is missing", name)
			}
			responses := op["responses"].(map[string]any)
			if d, ok := responses["default"].(map[string]any); !ok || d["$ref"] != "#/components/responses/Problem" {
				t.Errorf("%s: the default response is not Problem", name)
			}
			bodies := map[string]any{"request": op["requestBody"]}
			maps.Copy(bodies, responses)
			for where, b := range bodies {
				body, _ := b.(map[string]any)
				content, ok := body["content"].(map[string]any)
				if !ok {
					continue
				}
				if plain, ok := content["application/json"].(map[string]any); ok && plain["examples"] == nil {
					t.Errorf("%s: no example for %s", name, where)
				}
			}
		}
	}
}

func TestExamplesFitTheirSchemas(t *testing.T) {
	doc := openAPI(t)
	for name, v := range examples(doc) {
		t.Run(name, func(t *testing.T) { checkExample(t, name, v) })
	}
	for name, list := range gateway(t).Examples {
		if len(list) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, v := range list {
			t.Run("gateway "+name, func(t *testing.T) { checkExample(t, name, v) })
		}
	}
}

func checkExample(t *testing.T, schema string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := contract.Value(schema, raw); err != nil {
		t.Errorf("%v: %+v", err, errs.As(err).Fields)
	}
}

// A request is strict at every depth: each object a client sends names its members and takes no other. Free-form maps
// are exempt, since their keys are data.
func TestRequestsAreStrictAtEveryDepth(t *testing.T) {
	doc, gw := openAPI(t), gateway(t)
	schemas := maps.Clone(doc.Schemas())
	maps.Copy(schemas, gw.Schemas)
	var walk func(where string, v any, seen map[string]bool)
	walk = func(where string, v any, seen map[string]bool) {
		switch s := v.(type) {
		case []any:
			for _, e := range s {
				walk(where, e, seen)
			}
		case map[string]any:
			if ref, ok := s["$ref"].(string); ok {
				name := apidoc.RefName(ref)
				if !seen[name] {
					seen[name] = true
					walk(name, schemas[name], seen)
				}
				return
			}
			if s["properties"] != nil && s["additionalProperties"] != false {
				t.Errorf("%s takes unknown members", where)
			}
			for k, e := range s {
				if k != "x-go-type-import" {
					walk(where, e, seen)
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, o := range doc.Operations {
		if o.RequestSchema != "" {
			walk(o.ID, map[string]any{"$ref": o.RequestSchema}, seen)
		}
	}
	for _, o := range gw.Ops {
		if o.Client {
			walk("op "+o.Name, map[string]any{"$ref": o.Type}, seen)
		}
	}
}

// The Go types hold exactly what the document says: an example survives the way through them.
func TestComposedTypesMatchTheContract(t *testing.T) {
	all := examples(openAPI(t))
	for name, into := range map[string]any{
		"MessageWritten": &rest.MessageWritten{}, "Run": &rest.Run{}, "Self": &rest.Self{}, "User": &rest.User{},
		"UserCreated": &rest.UserCreated{}, "TokenCreated": &rest.TokenCreated{}, "GrantCreated": &rest.GrantCreated{},
		"AgentCreated": &rest.AgentCreated{}, "Snapshot": &rest.Snapshot{}, "RunStarted": &rest.RunStarted{},
		"UserListItemList": &rest.UserListItemList{}, "UpdateSelfRequest": &rest.UpdateSelfRequest{},
		"UpdateRunRequest": &rest.UpdateRunRequest{}, "CreateMessageRequest": &rest.CreateMessageRequest{},
	} {
		t.Run(name, func(t *testing.T) { roundTrip(t, all[name], into) })
	}
}

func TestGatewayTypesMatchTheContract(t *testing.T) {
	gw := gateway(t)
	for _, o := range gw.Ops {
		for _, v := range gw.Examples[o.Type] {
			decoded, err := decodeOp(o, marshal(t, v))
			if err != nil {
				t.Fatalf("%s: %v", o.Name, err)
			}
			same(t, o.Name, v, decoded)
		}
	}
	for _, e := range gw.Events {
		for _, v := range gw.Examples[e.Type] {
			decoded, err := ws.DecodeEvent(e.Name, marshal(t, v))
			if err != nil {
				t.Fatalf("%s: %v", e.Name, err)
			}
			same(t, e.Name, v, decoded)
		}
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func roundTrip(t *testing.T, example, into any) {
	t.Helper()
	if example == nil {
		t.Fatal("no example")
	}
	dec := json.NewDecoder(bytes.NewReader(marshal(t, example)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatal(err)
	}
	same(t, "", example, into)
}

func same(t *testing.T, name string, want, got any) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(marshal(t, want), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(marshal(t, got), &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s changed on the way through Go:\n%s\n%s", name, marshal(t, a), marshal(t, b))
	}
}

func TestEveryClientOpOfTheCatalogueIsDecoded(t *testing.T) {
	for _, o := range routes.Ops {
		if _, err := (ws.Frame{Op: o.Name, D: []byte(`{"nobody":1}`)}).DecodeClient(); errs.As(err).Code != errs.CodeValidationFailed {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
	for _, e := range routes.Events {
		if !strings.Contains(e.Type, ".") {
			t.Errorf("event type %s has no resource", e.Type)
		}
	}
}

func decodeOp(o apidoc.Op, d []byte) (any, error) {
	f := ws.Frame{Op: o.Name, D: d}
	if o.Client {
		return f.DecodeClient()
	}
	return f.DecodeServer()
}

// Bodies deeper than the default of http.max_json_depth are refused before a handler; no example may be one.
func TestRequestExamplesStayBelowTheDepthLimit(t *testing.T) {
	const limit = 32
	var depth func(v any) int
	depth = func(v any) int {
		deepest := 0
		switch s := v.(type) {
		case map[string]any:
			for _, e := range s {
				deepest = max(deepest, depth(e))
			}
		case []any:
			for _, e := range s {
				deepest = max(deepest, depth(e))
			}
		default:
			return 0
		}
		return deepest + 1
	}
	for name, v := range examples(openAPI(t)) {
		if d := depth(v); d >= limit {
			t.Errorf("%s is nested %d levels deep", name, d)
		}
	}
}
