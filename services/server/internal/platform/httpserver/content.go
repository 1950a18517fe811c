// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net/http"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver/jsonguard"
)

const mediaJSON = "application/json"

// contentStage checks the media type and guards JSON bodies. Behind it a body is
// well-formed and its strings are in normal form; the generated handlers then check it
// against the contract.
func (c *Chain) contentStage(op *Operation, rest next) next {
	if op.Body != BodyJSON {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		body, err := x.readBody(r)
		if err != nil {
			x.fail(w, err)
			return
		}
		if len(body) == 0 {
			// Whether a body is needed is a matter of the contract.
			withBody(r, nil)
			rest(x, w, r)
			return
		}
		media, err := mediaType(r.Header.Get("Content-Type"))
		if err != nil || media != mediaJSON {
			x.fail(w, errs.New(errs.CodeUnsupportedMediaType, "The body must be "+mediaJSON+" in UTF-8."))
			return
		}
		guarded, err := jsonguard.Check(body, c.options.Config.MaxJSONDepth)
		if err != nil {
			c.count("bothy.http.rejected", "bothy.reason", "json")
			x.fail(w, errs.New(errs.CodeMalformedRequest, "The body is no acceptable JSON: "+err.Error()+".").WithCause(err))
			return
		}
		withBody(r, guarded)
		rest(x, w, r)
	}
}
