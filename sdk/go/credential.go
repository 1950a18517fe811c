// SPDX-License-Identifier: Apache-2.0

package bothy

import (
	"context"
	"net/http"
)

// Credential is what a client proves itself with.
type Credential interface {
	// Sign puts the credential on a request. publicURL is the address a proof has to name.
	Sign(ctx context.Context, req *http.Request, publicURL string) error
	// Answer hears the headers of every answer, and its problem or nil. It returns true when the same request
	// would fare better at once, with Sign called anew.
	Answer(header http.Header, p *Problem) bool
	// Identify gives what the first frame of the gateway needs: the token, and unless it is an API token, a proof
	// for GET and the URL with the nonce. renew asks for a fresh token even if the present one looks valid.
	Identify(ctx context.Context, publicURL, nonce string, renew bool) (token, proof string, err error)
}

// APIToken is the secret of an agent, app or script.
type APIToken string

// Sign implements Credential.
func (t APIToken) Sign(_ context.Context, req *http.Request, _ string) error {
	req.Header.Set("Authorization", "Bearer "+string(t))
	return nil
}

// Answer implements Credential. Nothing renews an API token.
func (APIToken) Answer(http.Header, *Problem) bool { return false }

// Identify implements Credential. A token that was refused stays refused.
func (t APIToken) Identify(_ context.Context, _, _ string, renew bool) (token, proof string, err error) {
	if renew {
		return "", "", ErrSignedOut
	}
	return string(t), "", nil
}

// String keeps the secret out of logs.
func (APIToken) String() string { return "API token" }

// GoString keeps the secret out of logs.
func (APIToken) GoString() string { return "bothy.APIToken" }
