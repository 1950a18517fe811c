// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
)

// Code says why a request had no answer.
type Code string

// The codes.
const (
	CodeURLNotAllowed    Code = "url_not_allowed"
	CodeDNS              Code = "dns"
	CodeAddressBlocked   Code = "address_blocked"
	CodeConnect          Code = "connect"
	CodeTLS              Code = "tls"
	CodeTimeout          Code = "timeout"
	CodeResponseTooLarge Code = "response_too_large"
	CodeRedirect         Code = "redirect"
	// CodeBusy means that the host already has as many requests as allowed.
	CodeBusy Code = "busy"
)

// Error is the failure of a request. Its text is safe to show: it names neither the address
// nor anything of the request.
type Error struct {
	Code Code
	// Cause is for the log of a developer; it never leaves the process.
	Cause error
}

// Error implements error.
func (e *Error) Error() string { return "egress: " + string(e.Code) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// CodeOf is the code of a failure, empty for an error that is none of this package.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// classify gives a transport failure its code.
func classify(ctx context.Context, err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var certificate *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var network net.Error
	switch {
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return &Error{Code: CodeTimeout, Cause: err}
	case errors.As(err, &certificate), errors.As(err, &unknown), errors.As(err, &record), errors.As(err, &alert):
		return &Error{Code: CodeTLS, Cause: err}
	default:
		return &Error{Code: CodeConnect, Cause: err}
	}
}
