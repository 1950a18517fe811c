// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net/http"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver/jsonguard"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver/schema"
)

const mediaJSON = "application/json"

// contentStage checks the media type and guards JSON bodies. Behind it a body is
// well-formed and its strings are in normal form.
func (c *Chain) contentStage(op *Operation, rest next) next {
	if op.Body != BodyJSON {
		return rest
	}
	accepted, required := []string{mediaJSON}, false
	if s := c.schemaOf(op); s != nil && len(s.MediaTypes()) > 0 {
		accepted, required = s.MediaTypes(), s.BodyRequired
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		body, err := x.readBody(r)
		if err != nil {
			x.fail(w, err)
			return
		}
		if len(body) == 0 {
			if required {
				x.fail(w, errs.Invalid("", "required", "A body is required."))
				return
			}
			withBody(r, nil)
			rest(x, w, r)
			return
		}
		media, err := mediaType(r.Header.Get("Content-Type"))
		if err != nil || !slices.Contains(accepted, media) {
			x.fail(w, errs.New(errs.CodeUnsupportedMediaType, "The body must be "+accepted[0]+" in UTF-8."))
			return
		}
		guarded, err := jsonguard.Check(body, c.options.Config.MaxJSONDepth)
		if err != nil {
			c.count("bothy.http.rejected", "bothy.reason", "json")
			x.fail(w, errs.New(errs.CodeMalformedRequest, "The body is no acceptable JSON: "+err.Error()+".").WithCause(err))
			return
		}
		withBody(r, guarded)
		x.guarded = guarded
		rest(x, w, r)
	}
}

// schemaStage checks parameters and body against the contract.
func (c *Chain) schemaStage(op *Operation, rest next) next {
	s := c.schemaOf(op)
	if s == nil {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		faults := s.CheckParams(r.PathValue, r.URL.RawQuery)
		if op.Body == BodyJSON && len(x.guarded) > 0 {
			media, _ := mediaType(r.Header.Get("Content-Type"))
			faults = append(faults, s.CheckBody(media, x.guarded)...)
		}
		if len(faults) > 0 {
			x.fail(w, &errs.Error{
				Code: errs.CodeValidationFailed, Message: "The request has faults; see errors.", Fields: faults,
			})
			return
		}
		rest(x, w, r)
	}
}

func (c *Chain) schemaOf(op *Operation) *schema.Operation {
	if c.options.Schema == nil {
		return nil
	}
	s, _ := c.options.Schema.Operation(op.ID)
	return s
}
