// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net/http"
	"slices"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver/jsonguard"
)

const mediaJSON = "application/json"

// contentStage checks the media type and guards JSON bodies. Behind it a body is
// well-formed and its strings are in normal form; the generated handlers then check it
// against the contract.
func (c *Chain) contentStage(op *Operation, rest next) next {
	switch op.Body {
	case BodyReport:
		return c.reportStage(op, rest)
	case BodyNone, BodyTransfer:
		return rest
	case BodyJSON:
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

// reportStage checks the media type and the size of a body that its handler reads as it is.
func (c *Chain) reportStage(op *Operation, rest next) next {
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		media, err := mediaType(r.Header.Get("Content-Type"))
		if err != nil || !slices.Contains(op.Media, media) {
			x.fail(w, errs.New(errs.CodeUnsupportedMediaType, "The body must be "+strings.Join(op.Media, " or ")+"."))
			return
		}
		body, err := x.readBody(r)
		if err != nil {
			x.fail(w, err)
			return
		}
		withBody(r, body)
		rest(x, w, r)
	}
}
