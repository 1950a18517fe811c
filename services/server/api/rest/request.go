// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// checkParams is called by the generated handlers before anything else.
func checkParams(r *http.Request, operationID string) error {
	return contract.Parameters(operationID, r)
}

// decodeBody is called by the generated handlers. It reads the whole body, which the chain has limited, checks it
// against the contract and then decodes it. An absent body is an error that wraps io.EOF.
func decodeBody(r *http.Request, operationID string, into any) error {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return errs.New(errs.CodePayloadTooLarge, "The body is larger than the instance takes.").WithCause(err)
		}
		return errs.New(errs.CodeMalformedRequest, "The body could not be read.").WithCause(err)
	}
	if err := contract.Body(operationID, raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return errs.Invalid("", "invalid", "The body does not fit the contract.").WithCause(err)
	}
	return nil
}

// BindError turns what the generated router reports about a request into a public error. Pass it to the error handler
// of StdHTTPServerOptions; errors of the strict handler are public already.
func BindError(r *http.Request, err error) error {
	var header *RequiredHeaderError
	if errors.As(err, &header) && header.ParamName == "If-Match" {
		return errs.New(errs.CodePreconditionRequired, "Name the version the change was made from in If-Match.")
	}
	var format *InvalidParamFormatError
	var required *RequiredParamError
	var repeated *TooManyValuesForParamError
	switch {
	case errors.As(err, &format):
		return errs.Invalid(place(r, format.ParamName), "malformed", "The value has the wrong form.").WithCause(err)
	case errors.As(err, &required):
		return errs.Invalid(place(r, required.ParamName), "required", "The parameter is required.")
	case errors.As(err, &repeated):
		return errs.Invalid("header:"+repeated.ParamName, "repeated", "Send the header once.")
	default:
		return errs.New(errs.CodeMalformedRequest, "The request could not be read.").WithCause(err)
	}
}

func place(r *http.Request, name string) string {
	if r.PathValue(name) != "" {
		return "path:" + name
	}
	return "query:" + name
}

// ETag writes a version as the header of an answer.
func ETag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// ParseIfMatch reads the version a change was made from. Anything but one strong ETag of this API is a fault of the
// request.
func ParseIfMatch(header string) (int64, error) {
	n := len(header)
	if n >= 3 && header[0] == '"' && header[n-1] == '"' {
		if v, err := strconv.ParseInt(header[1:n-1], 10, 64); err == nil && v >= 0 && strconv.FormatInt(v, 10) == header[1:n-1] {
			return v, nil
		}
	}
	return 0, errs.Invalid("header:If-Match", "malformed", fmt.Sprintf("Send one ETag as the API wrote it, for example %s.", ETag(3)))
}

// Choice is the way out that a request takes; both are empty when it takes none.
func (r *ResolveI1) Choice() struct{ Strategy, Digest string } {
	if r == nil {
		return struct{ Strategy, Digest string }{}
	}
	return struct{ Strategy, Digest string }{string(r.Strategy), r.Digest}
}
