// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// errorCode is a line of the table of errors.
type errorCode struct {
	Code    string
	Status  int
	Meaning string
}

var meanings = map[errs.Code]string{
	errs.CodeValidationFailed:     "The request has faults; `errors` names each with a JSON pointer. Correct it before sending again.",
	errs.CodeMalformedRequest:     "The body or a parameter cannot be read at all.",
	errs.CodeCursorInvalid:        "The cursor is not one of this list. Begin at the first page.",
	errs.CodeUnauthenticated:      "There is no valid credential. Log in or give a token.",
	errs.CodeTokenExpired:         "The access token is over. Refresh it and repeat.",
	errs.CodeInvalidDPoPProof:     "The proof of the device does not fit the request, the token or the time.",
	errs.CodeUseDPoPNonce:         "Repeat with a proof that holds the nonce of the header `DPoP-Nonce`.",
	errs.CodeStepUpRequired:       "The action asks for a fresh login.",
	errs.CodeForbidden:            "The caller sees the thing and may not do this.",
	errs.CodeScopeMissing:         "The token lacks the scope of the operation.",
	errs.CodeChannelReadOnly:      "Nobody writes in this channel at present.",
	errs.CodeNotFound:             "There is no such thing, or the caller may not see it. Both look the same.",
	errs.CodeMethodNotAllowed:     "The path does not take this method; the header `Allow` lists those it takes.",
	errs.CodeConflict:             "The state of the thing does not allow it; `reason` says why.",
	errs.CodeAlreadyStarted:       "The run has been started by another adapter.",
	errs.CodeRequestInProgress:    "A request with this `Idempotency-Key` is still at work. Ask again shortly.",
	errs.CodeFingerprintMismatch:  "The fingerprint is not the one that is known.",
	errs.CodeI1Violation:          "An agent would gain a right that the person behind it does not have.",
	errs.CodeLastOwner:            "The instance would be without an active owner.",
	errs.CodeMessageDeleted:       "The message has been deleted.",
	errs.CodeResyncRequired:       "The position is out of reach. Load the snapshot and go on from there.",
	errs.CodeFlowExpired:          "The login flow is over. Begin a new one.",
	errs.CodeVersionConflict:      "The thing has changed since the version in `If-Match`. Read it and decide anew.",
	errs.CodePayloadTooLarge:      "The body is larger than the limit of the instance.",
	errs.CodeUnsupportedMediaType: "The body must be `application/json`.",
	errs.CodeRangeNotSatisfiable:  "The range lies outside the thing.",
	errs.CodeIdempotencyKeyReuse:  "The same key came with another request.",
	errs.CodePreconditionRequired: "The change needs the header `If-Match`.",
	errs.CodeRateLimited:          "Too many requests. `Retry-After` says when to go on.",
	errs.CodeInternal:             "The server failed. Tell the operator the `correlation_id`.",
	errs.CodeUnavailable:          "The server cannot do this just now. `Retry-After` says when to ask again.",
	errs.CodeMaintenance:          "The instance takes no writes at present.",
	errs.CodeSetupRequired:        "The instance has no owner yet.",
}

// errorCodes lists the closed list in the order of the statuses. A code without a meaning is an error, so that the list
// and the reference cannot drift apart.
func errorCodes() ([]errorCode, error) {
	var out []errorCode
	for _, code := range errs.Codes() {
		if meanings[code] == "" {
			return nil, fmt.Errorf("the error code %s has no meaning in the reference", code)
		}
		out = append(out, errorCode{string(code), code.Kind().Status(), meanings[code]})
	}
	slices.SortFunc(out, func(a, b errorCode) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code))
	})
	return out, nil
}
