// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

const id = "0199c2a0-000b-7000-8000-00000000000b"

// server answers the operations the tests call; any other call is a nil dereference and fails the test.
type server struct {
	rest.StrictServerInterface
	update rest.UpdateSpaceRequestObject
}

func (s *server) UpdateSpace(_ context.Context, r rest.UpdateSpaceRequestObject) (rest.UpdateSpaceResponseObject, error) {
	s.update = r
	return rest.UpdateSpace200JSONResponse{Headers: rest.UpdateSpace200ResponseHeaders{ETag: rest.ETag(4)}}, nil
}

func (s *server) ListSpaces(context.Context, rest.ListSpacesRequestObject) (rest.ListSpacesResponseObject, error) {
	return nil, errs.Conflict("name_taken", "Choose another name.")
}

func (s *server) DisableUser(_ context.Context, r rest.DisableUserRequestObject) (rest.DisableUserResponseObject, error) {
	if r.Body != nil {
		return nil, errs.Conflict("body", "There was a body.")
	}
	return nil, errs.Conflict("no_body", "There was none.")
}

type harness struct {
	server
	handler http.Handler
	err     *errs.Error
}

func newHarness() *harness {
	h := &harness{}
	answer := func(w http.ResponseWriter, _ *http.Request, err error) {
		h.err = errs.As(err)
		w.WriteHeader(h.err.Kind().Status())
	}
	strict := rest.NewStrictHandlerWithOptions(&h.server, nil, rest.StrictHTTPServerOptions{RequestErrorHandlerFunc: answer, ResponseErrorHandlerFunc: answer})
	h.handler = rest.HandlerWithOptions(strict, rest.StdHTTPServerOptions{ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
		answer(w, r, rest.BindError(r, err))
	}})
	return h
}

func (h *harness) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.err = nil
	h.handler.ServeHTTP(w, r)
	return w
}

func TestRequestsAreCheckedBeforeTheHandler(t *testing.T) {
	match := []string{"If-Match", `"3"`}
	for name, c := range map[string]struct {
		method, target, body string
		headers              []string
		code                 errs.Code
		pointer, fault       string
	}{
		"unknown member":       {"PATCH", "/spaces/" + id, `{"nme":"a"}`, match, errs.CodeValidationFailed, "/nme", "unknown_member"},
		"wrong type":           {"PATCH", "/spaces/" + id, `{"name":1}`, match, errs.CodeValidationFailed, "/name", "wrong_type"},
		"null where forbidden": {"PATCH", "/spaces/" + id, `{"name":null}`, match, errs.CodeValidationFailed, "/name", "wrong_type"},
		"no JSON":              {"PATCH", "/spaces/" + id, `{`, match, errs.CodeMalformedRequest, "", ""},
		"two documents":        {"PATCH", "/spaces/" + id, `{}{}`, match, errs.CodeMalformedRequest, "", ""},
		"invalid UTF-8":        {"PATCH", "/spaces/" + id, "{\"name\":\"\xff\"}", match, errs.CodeMalformedRequest, "", ""},
		"no body":              {"PATCH", "/spaces/" + id, ``, match, errs.CodeMalformedRequest, "", ""},
		"no If-Match":          {"PATCH", "/spaces/" + id, `{}`, nil, errs.CodePreconditionRequired, "", ""},
		"path of another form": {"PATCH", "/spaces/general", `{}`, match, errs.CodeValidationFailed, "path:space_id", "malformed"},
		"limit too large":      {"GET", "/spaces?limit=201", ``, nil, errs.CodeValidationFailed, "query:limit", "too_large"},
		"limit no number":      {"GET", "/spaces?limit=ten", ``, nil, errs.CodeValidationFailed, "query:limit", "malformed"},
		"unknown parameter":    {"GET", "/spaces?limt=1", ``, nil, errs.CodeValidationFailed, "query:limt", "unknown_parameter"},
		"word not in the list": {"GET", "/channels?kind=voice", ``, nil, errs.CodeValidationFailed, "query:kind", "not_allowed"},
		"required parameter":   {"GET", "/directory", ``, nil, errs.CodeValidationFailed, "query:query", "required"},
		"NUL in a parameter":   {"GET", "/directory?query=a%00", ``, nil, errs.CodeValidationFailed, "query:query", "malformed"},
		"no UTF-8 in one":      {"GET", "/directory?query=%ff", ``, nil, errs.CodeValidationFailed, "query:query", "malformed"},
		"error of a handler":   {"GET", "/spaces", ``, nil, errs.CodeConflict, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness()
			h.do(c.method, c.target, c.body, c.headers...)
			if h.err == nil || h.err.Code != c.code {
				t.Fatalf("got %v, want %s", h.err, c.code)
			}
			if c.pointer == "" {
				return
			}
			if len(h.err.Fields) != 1 || h.err.Fields[0].Pointer != c.pointer || h.err.Fields[0].Code != c.fault {
				t.Errorf("got %+v, want %s at %s", h.err.Fields, c.fault, c.pointer)
			}
		})
	}
}

func TestAMergePatchReachesTheHandlerAsItWasSent(t *testing.T) {
	h := newHarness()
	w := h.do("PATCH", "/spaces/"+id, `{"icon":null,"description":""}`, "If-Match", `"3"`)
	if h.err != nil || w.Code != http.StatusOK || w.Header().Get("ETag") != `"4"` {
		t.Fatalf("got %d %v %v", w.Code, w.Header(), h.err)
	}
	body := h.update.Body
	if body.Name != nil || body.Description == nil || !body.Icon.Null || body.Color.Set {
		got, _ := json.Marshal(body)
		t.Errorf("got %s", got)
	}
	if v, err := rest.ParseIfMatch(h.update.Params.IfMatch); v != 3 || err != nil {
		t.Errorf("If-Match came as %q: %d, %v", h.update.Params.IfMatch, v, err)
	}
}

func TestAnOptionalBodyMayBeLeftOut(t *testing.T) {
	h := newHarness()
	for body, reason := range map[string]string{``: "no_body", `{}`: "body"} {
		h.do("POST", "/users/"+id+"/disable", body, "If-Match", `"1"`)
		if h.err == nil || h.err.Reason != reason {
			t.Errorf("body %q: got %v", body, h.err)
		}
	}
}

func TestParseIfMatchTakesOneStrongETag(t *testing.T) {
	for _, bad := range []string{``, `3`, `"03"`, `"-1"`, `W/"3"`, `*`, `"3","4"`, `"a"`, `"`} {
		if v, err := rest.ParseIfMatch(bad); errs.As(err) == nil || errs.As(err).Code != errs.CodeValidationFailed {
			t.Errorf("%q: got %d, %v", bad, v, err)
		}
	}
}

func FuzzParseIfMatch(f *testing.F) {
	f.Add(`"3"`)
	f.Fuzz(func(t *testing.T, header string) {
		if v, err := rest.ParseIfMatch(header); err == nil && rest.ETag(v) != header {
			t.Errorf("%q was read as %d", header, v)
		}
	})
}
