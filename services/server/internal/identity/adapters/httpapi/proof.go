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

// ProofMiddleware hands the DPoP proof of a request to the operations that take one
// without an access token, and renews the client's nonce before it gets too old. It belongs
// around every operation, directly before the handlers.
func ProofMiddleware(proofs *app.Proofs) rest.StrictMiddlewareFunc {
	return func(next rest.StrictHandlerFunc, _ string) rest.StrictHandlerFunc {
		return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
			values := r.Header.Values("DPoP")
			if len(values) != 1 {
				return next(ctx, w, r, request)
			}
			if fresh := proofs.Renewal(nonceOf(values[0])); fresh != "" {
				w.Header().Set("DPoP-Nonce", fresh)
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
// an answer carries a new one.
func nonceOf(compact string) string {
	if len(compact) > domain.MaxProofBytes {
		return ""
	}
	parts := strings.Split(compact, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return ""
	}
	return claims.Nonce
}
