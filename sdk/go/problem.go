// SPDX-License-Identifier: Apache-2.0

package bothy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
)

// Problem is a fault the server answered. Find it with errors.As, or ask with HasCode and Reason.
type Problem struct {
	Status int
	Code   api.ErrorCode
	// Reason narrows the code where the operation documents reasons, else it is empty.
	Reason string
	// Title says in one sentence what to do. It is for people and may change.
	Title string
	// CorrelationID is what the operator of the instance can look up.
	CorrelationID string
	// Errors names every fault of the request, with validation_failed.
	Errors []api.ProblemField
	// Current is the present state of the resource where the operation documents it.
	Current json.RawMessage
	// RetryAfter is how long the server asked to wait.
	RetryAfter time.Duration
}

// Error implements error.
func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", p.Status, p.Code)
	if p.Reason != "" {
		fmt.Fprintf(&b, " (%s)", p.Reason)
	}
	if p.Title != "" {
		b.WriteString(": " + p.Title)
	}
	for _, e := range p.Errors {
		fmt.Fprintf(&b, "; %s %s: %s", e.Pointer, e.Code, e.Message)
	}
	if p.CorrelationID != "" {
		fmt.Fprintf(&b, " [%s]", p.CorrelationID)
	}
	return b.String()
}

// temporary is true when the same request may succeed a little later.
func (p *Problem) temporary() bool {
	switch {
	case p.Code == api.ErrorCodeRequestInProgress, p.Code == api.ErrorCodeRateLimited:
		return true
	case p.Code == api.ErrorCodeSetupRequired, p.Code == api.ErrorCodeMaintenance:
		// Both end by a person's hand, not within the patience of a call.
		return false
	}
	return p.Status == http.StatusRequestTimeout || p.Status == http.StatusTooManyRequests || p.Status >= http.StatusInternalServerError
}

// HasCode is true when the error is a Problem with one of the codes.
func HasCode(err error, codes ...api.ErrorCode) bool {
	var p *Problem
	if !errors.As(err, &p) {
		return false
	}
	for _, code := range codes {
		if p.Code == code {
			return true
		}
	}
	return false
}

// Reason is the reason of a Problem, or "".
func Reason(err error) string {
	var p *Problem
	if errors.As(err, &p) {
		return p.Reason
	}
	return ""
}

// readProblem reads the fault of an answer. What something between client and server answered instead of the
// server becomes a problem of the code that fits its status.
func readProblem(res *http.Response) *Problem {
	const limit = 1 << 20
	p := &Problem{Status: res.StatusCode, RetryAfter: retryAfter(res.Header)}
	text, _ := io.ReadAll(io.LimitReader(res.Body, limit))
	var body struct {
		Code          api.ErrorCode      `json:"code"`
		Reason        string             `json:"reason"`
		Title         string             `json:"title"`
		CorrelationID string             `json:"correlation_id"`
		Errors        []api.ProblemField `json:"errors"`
		Current       json.RawMessage    `json:"current"`
	}
	if json.Unmarshal(text, &body) == nil && body.Code != "" {
		p.Code, p.Reason, p.Title, p.CorrelationID = body.Code, body.Reason, body.Title, body.CorrelationID
		p.Errors, p.Current = body.Errors, body.Current
		return p
	}
	p.Title = "answer without a problem document"
	switch {
	case p.Status == http.StatusTooManyRequests:
		p.Code = api.ErrorCodeRateLimited
	case p.Status == http.StatusInternalServerError:
		p.Code = api.ErrorCodeInternalError
	case p.Status > http.StatusInternalServerError:
		p.Code = api.ErrorCodeUnavailable
	case p.Status == http.StatusUnauthorized:
		p.Code = api.ErrorCodeUnauthenticated
	case p.Status == http.StatusForbidden:
		p.Code = api.ErrorCodeForbidden
	case p.Status == http.StatusNotFound:
		p.Code = api.ErrorCodeNotFound
	case p.Status == http.StatusRequestEntityTooLarge:
		p.Code = api.ErrorCodePayloadTooLarge
	default:
		p.Code = api.ErrorCodeMalformedRequest
	}
	return p
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	const longest = 3600
	return time.Duration(min(seconds, longest)) * time.Second
}
