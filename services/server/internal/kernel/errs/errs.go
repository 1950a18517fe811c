// SPDX-License-Identifier: Apache-2.0

// Package errs has the closed list of public error codes and the one error type that
// carries them. The kind follows from the code and the status from the kind, so a caller
// chooses a code and nothing else. Every other error is internal: it reaches the log
// with its whole chain and the client as internal_error.
package errs

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Error is a failure with a public meaning. Build it with New or one of the helpers.
type Error struct {
	// Code is stable; clients branch on it.
	Code Code
	// Message is a sentence for a person that says what to do. It may change.
	Message string
	// Reason narrows the code where a chapter defines reasons; empty otherwise.
	Reason string
	// Fields names each fault of a request, with validation_failed alone.
	Fields []Field
	// RetryAfter says when a repetition can succeed; zero means the default of the code.
	RetryAfter time.Duration
	// Extensions are further members of the problem document, by name.
	Extensions map[string]any
	// Cause is for the log, never for the answer.
	Cause error
}

// Field is one fault in the body or the parameters of a request.
type Field struct {
	// Pointer is a JSON pointer into the body, or "query:<name>", "path:<name>",
	// "header:<name>" for a parameter.
	Pointer string `json:"pointer"`
	// Code is a stable word for the fault, for example too_long.
	Code string `json:"code"`
	// Message says what is allowed.
	Message string `json:"message"`
}

// Error implements error, with the cause for the log.
func (e *Error) Error() string {
	text := string(e.Code)
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Kind is the kind of the error's code.
func (e *Error) Kind() Kind { return e.Code.Kind() }

// New makes an error with a message for a person.
func New(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// WithReason returns a copy with the reason set.
func (e *Error) WithReason(reason string) *Error {
	c := *e
	c.Reason = reason
	return &c
}

// WithCause returns a copy with the cause set.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// WithRetryAfter returns a copy with the delay set.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// With returns a copy with one further member of the problem document.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Extensions = make(map[string]any, len(e.Extensions)+1)
	for k, v := range e.Extensions {
		c.Extensions[k] = v
	}
	c.Extensions[name] = value
	return &c
}

// NotFound is the one answer for a thing that is missing or hidden; it names nothing, so
// both look alike.
func NotFound() *Error { return New(CodeNotFound, "There is no such thing, or you may not see it.") }

// Forbidden refuses something the caller may see but not do.
func Forbidden(reason string) *Error {
	return New(CodeForbidden, "Your rights do not allow this.").WithReason(reason)
}

// Conflict refuses something the present state does not allow.
func Conflict(reason, message string) *Error { return New(CodeConflict, message).WithReason(reason) }

// Internal wraps a failure that no caller can mend.
func Internal(cause error) *Error {
	return New(CodeInternal, "The server could not do this. Try again, and tell the operator the correlation ID if it persists.").WithCause(cause)
}

// Unavailable wraps a failure that passes by itself.
func Unavailable(cause error) *Error {
	return New(CodeUnavailable, "The server cannot do this just now. Try again shortly.").WithCause(cause)
}

// Validation collects faults of a request. The zero value is ready for use.
type Validation struct{ fields []Field }

// Add notes a fault at a JSON pointer.
func (v *Validation) Add(pointer, code, message string) {
	v.fields = append(v.fields, Field{Pointer: pointer, Code: code, Message: message})
}

// Addf is Add with a formatted message.
func (v *Validation) Addf(pointer, code, format string, args ...any) {
	v.Add(pointer, code, fmt.Sprintf(format, args...))
}

// Err is nil without faults and validation_failed with all of them otherwise.
func (v *Validation) Err() error {
	if len(v.fields) == 0 {
		return nil
	}
	return &Error{Code: CodeValidationFailed, Message: "The request has faults; see errors.", Fields: v.fields}
}

// Invalid is validation_failed for a single fault.
func Invalid(pointer, code, message string) *Error {
	return &Error{
		Code: CodeValidationFailed, Message: "The request has faults; see errors.",
		Fields: []Field{{Pointer: pointer, Code: code, Message: message}},
	}
}

// As gives the public error in a chain. Errors without one become internal; an ended
// context becomes unavailable, because the work may succeed when repeated.
func As(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Unavailable(err)
	default:
		return Internal(err)
	}
}

// Is reports whether the public error in the chain has the code.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
