// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
)

type proofKey struct{}

// Nonces looks at the nonces of proofs for the chain of the server: whether the answer gets
// a fresh one, and whether the proof cannot be accepted without it. What is no proof at all
// is left to the operation.
func Nonces(proofs *app.Proofs) func(proof string) (fresh string, needed bool) {
	return func(proof string) (string, bool) {
		nonce, ok := nonceOf(proof)
		if !ok {
			return "", false
		}
		return proofs.Renewal(nonce)
	}
}

// ProofMiddleware hands the DPoP proof of a request to the operations that take one
// without an access token. It belongs around every operation, directly before the handlers.
func ProofMiddleware(proofs *app.Proofs) rest.StrictMiddlewareFunc {
	return func(next rest.StrictHandlerFunc, operation string) rest.StrictHandlerFunc {
		return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
			ctx = withBrowser(ctx, operation, w, r)
			values := r.Header.Values("DPoP")
			if len(values) != 1 {
				return next(ctx, w, r, request)
			}
			ctx = context.WithValue(ctx, proofKey{}, app.ProofInput{
				Compact: values[0], Method: r.Method, URL: proofs.Origin() + r.URL.EscapedPath(),
			})
			return next(ctx, w, r, request)
		}
	}
}

// proofOf is the proof of the request; the zero value fails every check.
func proofOf(ctx context.Context) app.ProofInput {
	p, _ := ctx.Value(proofKey{}).(app.ProofInput)
	return p
}

// nonceOf reads the nonce of a proof without verifying anything: it only decides whether
// an answer carries a new one. It is empty for a proof without one, and false for a text that
// is no proof.
func nonceOf(compact string) (nonce string, ok bool) {
	if len(compact) > domain.MaxProofBytes {
		return "", false
	}
	parts := strings.Split(compact, ".")
	if len(parts) != 3 {
		return "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", false
	}
	var claims struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", false
	}
	return claims.Nonce, true
}
