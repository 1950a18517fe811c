// SPDX-License-Identifier: Apache-2.0

package errs

// Code is a public error code. The list is closed: chapters add reasons, never codes.
type Code string

// The public codes, in the order of their statuses.
const (
	CodeValidationFailed     Code = "validation_failed"
	CodeMalformedRequest     Code = "malformed_request"
	CodeCursorInvalid        Code = "cursor_invalid"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeTokenExpired         Code = "token_expired"
	CodeInvalidDPoPProof     Code = "invalid_dpop_proof"
	CodeUseDPoPNonce         Code = "use_dpop_nonce"
	CodeStepUpRequired       Code = "step_up_required"
	CodeForbidden            Code = "forbidden"
	CodeScopeMissing         Code = "scope_missing"
	CodeChannelReadOnly      Code = "channel_read_only"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeConflict             Code = "conflict"
	CodeAlreadyStarted       Code = "already_started"
	CodeRequestInProgress    Code = "request_in_progress"
	CodeFingerprintMismatch  Code = "fingerprint_mismatch"
	CodeI1Violation          Code = "i1_violation"
	CodeLastOwner            Code = "last_owner"
	CodeMessageDeleted       Code = "message_deleted"
	CodeResyncRequired       Code = "resync_required"
	CodeFlowExpired          Code = "flow_expired"
	CodeVersionConflict      Code = "version_conflict"
	CodePayloadTooLarge      Code = "payload_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeRangeNotSatisfiable  Code = "range_not_satisfiable"
	CodeIdempotencyKeyReuse  Code = "idempotency_key_reuse"
	CodePreconditionRequired Code = "precondition_required"
	CodeRateLimited          Code = "rate_limited"
	CodeInternal             Code = "internal_error"
	CodeUnavailable          Code = "unavailable"
	CodeMaintenance          Code = "maintenance"
	CodeSetupRequired        Code = "setup_required"
)

// Kind groups codes that are handled alike; each has one HTTP status.
type Kind string

// The kinds of errors.
const (
	KindBadRequest           Kind = "bad_request"
	KindUnauthenticated      Kind = "unauthenticated"
	KindStepUpRequired       Kind = "step_up_required"
	KindForbidden            Kind = "forbidden"
	KindNotFound             Kind = "not_found"
	KindMethodNotAllowed     Kind = "method_not_allowed"
	KindConflict             Kind = "conflict"
	KindInvariantViolation   Kind = "invariant_violation"
	KindGone                 Kind = "gone"
	KindPreconditionFailed   Kind = "precondition_failed"
	KindTooLarge             Kind = "too_large"
	KindUnsupportedMediaType Kind = "unsupported_media_type"
	KindRangeNotSatisfiable  Kind = "range_not_satisfiable"
	KindUnprocessable        Kind = "unprocessable"
	KindPreconditionRequired Kind = "precondition_required"
	KindRateLimited          Kind = "rate_limited"
	KindInternal             Kind = "internal"
	KindUnavailable          Kind = "unavailable"
)

var kindOf = map[Code]Kind{
	CodeValidationFailed: KindBadRequest, CodeMalformedRequest: KindBadRequest, CodeCursorInvalid: KindBadRequest,
	CodeUnauthenticated: KindUnauthenticated, CodeTokenExpired: KindUnauthenticated,
	CodeInvalidDPoPProof: KindUnauthenticated, CodeUseDPoPNonce: KindUnauthenticated,
	CodeStepUpRequired: KindStepUpRequired,
	CodeForbidden:      KindForbidden, CodeScopeMissing: KindForbidden, CodeChannelReadOnly: KindForbidden,
	CodeNotFound: KindNotFound, CodeMethodNotAllowed: KindMethodNotAllowed,
	CodeConflict: KindConflict, CodeAlreadyStarted: KindConflict, CodeRequestInProgress: KindConflict,
	CodeFingerprintMismatch: KindConflict,
	CodeI1Violation:         KindInvariantViolation, CodeLastOwner: KindInvariantViolation,
	CodeMessageDeleted: KindGone, CodeResyncRequired: KindGone, CodeFlowExpired: KindGone,
	CodeVersionConflict: KindPreconditionFailed, CodePayloadTooLarge: KindTooLarge,
	CodeUnsupportedMediaType: KindUnsupportedMediaType, CodeRangeNotSatisfiable: KindRangeNotSatisfiable,
	CodeIdempotencyKeyReuse: KindUnprocessable, CodePreconditionRequired: KindPreconditionRequired,
	CodeRateLimited: KindRateLimited, CodeInternal: KindInternal,
	CodeUnavailable: KindUnavailable, CodeMaintenance: KindUnavailable, CodeSetupRequired: KindUnavailable,
}

var statusOf = map[Kind]int{
	KindBadRequest: 400, KindUnauthenticated: 401, KindStepUpRequired: 401, KindForbidden: 403,
	KindNotFound: 404, KindMethodNotAllowed: 405, KindConflict: 409, KindInvariantViolation: 409,
	KindGone: 410, KindPreconditionFailed: 412, KindTooLarge: 413, KindUnsupportedMediaType: 415,
	KindRangeNotSatisfiable: 416, KindUnprocessable: 422, KindPreconditionRequired: 428,
	KindRateLimited: 429, KindInternal: 500, KindUnavailable: 503,
}

// Kind is the kind of a code. An unknown code is internal, so a typing error never turns
// into a wrong promise to a client.
func (c Code) Kind() Kind {
	if k, ok := kindOf[c]; ok {
		return k
	}
	return KindInternal
}

// Status is the HTTP status of a kind.
func (k Kind) Status() int { return statusOf[k] }

// Codes lists every public code.
func Codes() []Code {
	out := make([]Code, 0, len(kindOf))
	for c := range kindOf {
		out = append(out, c)
	}
	return out
}
