// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver/jsonguard"
)

const document = `{
 "paths": {
  "/things/{thing_id}": {
   "parameters": [{"$ref": "#/components/parameters/Thing"}],
   "post": {
    "operationId": "writeThing",
    "parameters": [
     {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 200}},
     {"name": "state", "in": "query", "schema": {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["open", "closed"]}}},
     {"name": "If-Match", "in": "header", "schema": {"type": "string"}}
    ],
    "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}
   }
  }
 },
 "components": {
  "parameters": {"Thing": {"name": "thing_id", "in": "path", "required": true, "schema": {"type": "string", "format": "uuid"}}},
  "schemas": {
   "Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "format": "uuid"}}},
   "Thing": {
    "allOf": [{"$ref": "#/components/schemas/Base"}, {"type": "object", "required": ["name"], "properties": {
     "name": {"type": "string", "minLength": 1, "maxLength": 5},
     "kind": {"type": "string", "enum": ["a", "b"]},
     "count": {"type": "integer", "minimum": 0, "maximum": 10},
     "ratio": {"type": "number", "exclusiveMinimum": 0},
     "at": {"type": ["string", "null"], "format": "date-time"},
     "on": {"type": "boolean"},
     "tags": {"type": "array", "maxItems": 2, "uniqueItems": true, "items": {"type": "string", "pattern": "^[a-z]+$"}},
     "map": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
     "any": {"type": "object", "additionalProperties": true},
     "sub": {"oneOf": [{"$ref": "#/components/schemas/Thing"}, {"type": "null"}]},
     "act": {"oneOf": [{"$ref": "#/components/schemas/Go"}, {"$ref": "#/components/schemas/Stop"}],
      "discriminator": {"propertyName": "do", "mapping": {"go": "#/components/schemas/Go", "stop": "#/components/schemas/Stop"}}},
     "a/b~": {"type": "string"}
    }}]
   },
   "Go": {"type": "object", "required": ["do", "far"], "properties": {"do": {"const": "go"}, "far": {"type": "integer"}}},
   "Stop": {"type": "object", "required": ["do"], "properties": {"do": {"const": "stop"}}}
  }
 }
}`

func operation(t testing.TB) *Operation {
	t.Helper()
	d, err := Compile([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	o, ok := d.Operation("writeThing")
	if !ok {
		t.Fatal("operation is missing")
	}
	return o
}

func show(fields []errs.Field) string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.Pointer + " " + f.Code
	}
	return strings.Join(out, "; ")
}

func TestBodies(t *testing.T) {
	o := operation(t)
	const id = `"id":"0199c2a0-0016-7000-8000-000000000016"`
	for _, c := range []struct{ name, body, want string }{
		{"smallest", `{` + id + `,"name":"n"}`, ""},
		{"everything", `{` + id + `,"name":"n\u00e9","kind":"a","count":10,"ratio":0.5,"at":null,"on":true,"tags":["a","b"],"map":{"x":1},"any":{"y":[{}]},"sub":null,"act":{"far":1,"do":"go"},"a/b~":""}`, ""},
		{"required", `{}`, "/id required; /name required"},
		{"unknown", `{` + id + `,"name":"n","Name":1,"x":{"y":[1]}}`, "/Name unknown_member; /x unknown_member"},
		{"types", `{"id":1,"name":[],"on":"true","tags":{},"count":"1"}`, "/id wrong_type; /name wrong_type; /on wrong_type; /tags wrong_type; /count wrong_type"},
		{"null is no value", `{` + id + `,"name":null}`, "/name wrong_type"},
		{"lengths count characters", `{` + id + `,"name":"ééééé"}`, ""},
		{"too long", `{` + id + `,"name":"éééééé"}`, "/name too_long"},
		{"too short", `{` + id + `,"name":""}`, "/name too_short"},
		{"enum", `{` + id + `,"name":"n","kind":"c"}`, "/kind not_allowed"},
		{"range", `{` + id + `,"name":"n","count":11,"ratio":0}`, "/count out_of_range; /ratio out_of_range"},
		{"whole", `{` + id + `,"name":"n","count":1.5}`, "/count wrong_type"},
		{"whole with exponent", `{` + id + `,"name":"n","count":1e0}`, "/count wrong_type"},
		{"beyond 64 bits", `{` + id + `,"name":"n","count":92233720368547758080}`, "/count wrong_type"},
		{"beyond a double", `{` + id + `,"name":"n","ratio":1e999}`, "/ratio out_of_range"},
		{"formats", `{"id":"0199C2A0-0016-7000-8000-000000000016","name":"n","at":"today"}`, "/id bad_format; /at bad_format"},
		{"lists", `{` + id + `,"name":"n","tags":["a","a","B"]}`, "/tags not_unique; /tags/2 bad_format; /tags too_many"},
		{"maps", `{` + id + `,"name":"n","map":{"a":1,"b":"x","c":2}}`, "/map/b wrong_type; /map too_many"},
		{"deep pointer", `{` + id + `,"name":"n","sub":{` + id + `,"name":"m","sub":{"name":"o","a/b~":1}}}`, "/sub/sub/a~1b~0 wrong_type; /sub/sub/id required"},
		{"no alternative", `{` + id + `,"name":"n","sub":5}`, "/sub wrong_type"},
		{"discriminator", `{` + id + `,"name":"n","act":{"do":"go"}}`, "/act/far required"},
		{"unknown discriminator", `{` + id + `,"name":"n","act":{"do":"fly"}}`, "/act/do not_allowed"},
		{"another value", `[1]`, " wrong_type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, err := jsonguard.Check([]byte(c.body), 32)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(o.CheckBody("application/json", body)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	o := operation(t)
	const id = "0199c2a0-0016-7000-8000-000000000016"
	for _, c := range []struct{ name, id, query, want string }{
		{"fine", id, "limit=5&state=open&state=closed", ""},
		{"none", id, "", ""},
		{"path", "x", "", "path:thing_id bad_format"},
		{"range", id, "limit=0", "query:limit out_of_range"},
		{"type", id, "limit=a", "query:limit wrong_type"},
		{"empty", id, "limit=", "query:limit wrong_type"},
		{"repeated", id, "limit=1&limit=2", "query:limit repeated"},
		{"enum", id, "state=x", "query:state not_allowed"},
		{"too many", id, "state=open&state=open&state=open", "query:state too_many"},
		{"unknown", id, "limits=1", "query:limits unknown_parameter"},
		{"broken", id, "a=%zz", "query: malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(o.CheckParams(func(string) string { return c.id }, c.query)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAKeywordThatIsNotCheckedIsRefused(t *testing.T) {
	bad := strings.Replace(document, `"uniqueItems": true`, `"contains": {}`, 1)
	if _, err := Compile([]byte(bad)); err == nil || !strings.Contains(err.Error(), "contains") {
		t.Errorf("%v", err)
	}
}

// contract compiles the document of the project.
func contract(t testing.TB) *Document {
	t.Helper()
	text, err := os.ReadFile("../../../../../../docs/api/openapi.yaml")
	if err != nil {
		t.Skip("the contract is not beside the source")
	}
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Compile(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheContractCompiles(t *testing.T) {
	o, ok := contract(t).Operation("createMessage")
	if !ok {
		t.Fatal("createMessage is missing")
	}
	got := show(o.CheckBody("application/json", []byte(`{"client_msg_id":"x","contnet":"hi"}`)))
	if got != "/client_msg_id bad_format; /contnet unknown_member; /content required" {
		t.Error(got)
	}
}

func FuzzCheckBody(f *testing.F) {
	o := operation(f)
	f.Add([]byte(`{"id":"0199c2a0-0016-7000-8000-000000000016","name":"n","sub":{"act":{"do":"go"}},"tags":["a"]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		body, err := jsonguard.Check(in, 32)
		if err != nil {
			return
		}
		// Accepted means that the decoder of a handler accepts it too.
		if len(o.CheckBody("application/json", body)) > 0 { // refused, as it should be
			return
		}
		var v struct {
			Name  string         `json:"name"`
			Count int            `json:"count"`
			Tags  []string       `json:"tags"`
			Map   map[string]int `json:"map"`
			At    *string        `json:"at"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	})
}

func BenchmarkCreateMessage(b *testing.B) {
	o, ok := contract(b).Operation("createMessage")
	if !ok {
		b.Skip("no contract")
	}
	text := []byte(`{"client_msg_id":"0199c2a0-0016-7000-8000-000000000016","content":"` + strings.Repeat("Schönes Wetter heute, or is it? ", 12) + `","notify":"normal"}`)
	b.ReportAllocs()
	for b.Loop() {
		if f := o.CheckBody("application/json", text); f != nil {
			b.Fatal(f)
		}
	}
}
