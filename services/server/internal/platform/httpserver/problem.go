// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
)

// WriteError answers with the problem document of an error. Generated handlers and the
// handlers of modules call it for every failure. It must run behind the chain.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	if x := exchangeFrom(r.Context()); x != nil {
		x.fail(w, err)
		return
	}
	// Outside the chain there is no configuration, which only costs the base of the type.
	writeProblem(w, errs.As(err), problemContext{correlation: reqmeta.From(r.Context()).CorrelationID})
}

// fail writes the problem document and notes its cause for the operator.
func (x *exchange) fail(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		err = payloadTooLarge(tooLarge.Limit)
	}
	e := errs.As(err)
	x.code = e.Code
	if b, buffered := w.(*buffer); buffered {
		// Whether this answer ever leaves is not decided yet, so it is not logged yet.
		b.err = err
	} else {
		x.note(err)
	}
	if x.wrote {
		// The answer has begun; all that is left is not to pretend that it is complete.
		panic(http.ErrAbortHandler)
	}
	writeProblem(w, e, problemContext{
		base: x.chain.options.Config.PublicURL, correlation: x.meta.CorrelationID, retry: x.chain.retryAfter(e),
	})
}

// note logs what a failure was caused by, which the answer does not say.
func (x *exchange) note(err error) {
	e := errs.As(err)
	switch {
	case err == nil, errors.Is(err, errPanic):
	case e.Kind() == errs.KindInternal:
		x.chain.log.ErrorContext(x.r.Context(), "request failed", "code", e.Code, "err", err)
	case e.Kind() == errs.KindUnavailable && e.Cause != nil && !errors.Is(err, context.Canceled):
		// A client that went away is no fault of ours.
		x.chain.log.WarnContext(x.r.Context(), "request could not be served", "code", e.Code, "err", err)
	}
}

// retryAfter is the delay that an answer names; zero names none.
func (c *Chain) retryAfter(e *errs.Error) time.Duration {
	switch {
	case e.RetryAfter > 0:
		return e.RetryAfter
	case e.Code == errs.CodeMaintenance:
		return c.options.Config.MaintenanceRetryAfter
	case e.Kind() == errs.KindUnavailable:
		return c.options.Config.UnavailableRetryAfter
	case e.Kind() == errs.KindRateLimited, e.Code == errs.CodeRequestInProgress:
		return time.Second
	default:
		return 0
	}
}

type problemContext struct {
	base, correlation string
	retry             time.Duration
}

// extNonce is the extension of use_dpop_nonce that becomes a header.
const extNonce = "dpop_nonce"

func writeProblem(w http.ResponseWriter, e *errs.Error, p problemContext) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	h.Del("Content-Length")
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retry.Seconds()))))
	}
	status := e.Kind().Status()
	if status == http.StatusUnauthorized {
		challenge(h, e)
	}
	w.WriteHeader(status)
	// A client that is gone needs no answer.
	_, _ = w.Write(document(e, status, p))
}

// challenge says how to authenticate, as RFC 9449 and RFC 9470 word it.
func challenge(h http.Header, e *errs.Error) {
	switch e.Code {
	case errs.CodeUseDPoPNonce, errs.CodeInvalidDPoPProof:
		h.Set("WWW-Authenticate", `DPoP error="`+string(e.Code)+`", algs="ES256"`)
	case errs.CodeStepUpRequired:
		h.Set("WWW-Authenticate", `DPoP error="insufficient_user_authentication", algs="ES256"`)
	case errs.CodeTokenExpired:
		h.Set("WWW-Authenticate", `DPoP error="invalid_token", algs="ES256"`)
	default:
		h["Www-Authenticate"] = []string{`DPoP algs="ES256"`, "Bearer"}
	}
	if nonce, ok := e.Extensions[extNonce].(string); ok {
		h.Set("DPoP-Nonce", nonce)
	}
}

func document(e *errs.Error, status int, p problemContext) []byte {
	var b bytes.Buffer
	member := func(name string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			// An extension that cannot be written is left out; the code says enough.
			return
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(name))
		b.WriteByte(':')
		b.Write(text)
	}
	title := e.Message
	if title == "" {
		title = http.StatusText(status)
	}
	b.WriteByte('{')
	member("type", p.base+"/problems/"+string(e.Code))
	member("title", title)
	member("status", status)
	member("code", e.Code)
	member("correlation_id", p.correlation)
	if e.Reason != "" {
		member("reason", e.Reason)
	}
	if len(e.Fields) > 0 {
		member("errors", e.Fields)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		if name != extNonce {
			member(name, e.Extensions[name])
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}
