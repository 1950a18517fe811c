// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/api/routes"
	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
	instancehttp "github.com/OWNER/bothy/services/server/internal/instance/adapters/httpapi"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver"
)

// reflects names the modules whose resources appear in events: answers to reads of theirs
// tell the position of the log that they reflect.
var reflects = map[string]bool{"chat": true, "messaging": true, "agents": true, "runs": true, "sync": true}

// operations joins the table of routes with the catalogue of actions. A route whose action is
// unknown must not start.
func operations() ([]httpserver.Operation, error) {
	out := make([]httpserver.Operation, 0, len(routes.Operations))
	for _, o := range routes.Operations {
		spec, known := authorize.SpecOf(authorize.Action(o.Action))
		if !known {
			return nil, fmt.Errorf("operation %s: action %s is not in the catalogue", o.ID, o.Action)
		}
		op := httpserver.Operation{
			ID: o.ID, Pattern: o.Pattern(), Action: authorize.Action(o.Action), RateLimitClass: o.RateLimitClass,
			Writes: spec.Effect == authorize.EffectWrite, Body: httpserver.BodyNone, Transfer: o.Transfer, RequiresIfMatch: o.RequiresIfMatch, IgnoresIdempotencyKey: o.IgnoresIdempotencyKey,
			AuthorizedInBand: o.AuthorizedInBand, ProvenByKey: slices.Contains(o.ErrorCodes, string(errs.CodeUseDPoPNonce)), SignedIn: !o.AuthorizedInBand && !spec.OpenTo(authorize.CallerAnonymous), BeforeSetup: spec.BeforeSetup, Maintenance: httpserver.MaintenanceRule(spec.Maintenance),
			SyncPosition: o.Method == http.MethodGet && reflects[o.Module],
		}
		switch o.BodyLimit {
		case routes.BodyJSON:
			op.Body = httpserver.BodyJSON
		case routes.BodyReport:
			op.Body, op.MaxBodyBytes = httpserver.BodyReport, instancehttp.MaxReportBytes
			op.Media = []string{instancehttp.MediaOldReport, instancehttp.MediaReports}
		case routes.BodyNone:
		}
		out = append(out, op)
	}
	return out, nil
}

// mount registers every handler with the chain: the generated router for what the contract
// describes, the gateway and reports of browsers by their rows, and the well-known addresses. proofs carries the proof of
// possession to the operations that sign in.
func mount(chain *httpserver.Chain, handlers rest.StrictServerInterface, proofs rest.StrictMiddlewareFunc, gateway http.Handler, reports http.HandlerFunc) error {
	strict := rest.NewStrictHandlerWithOptions(handlers, []rest.StrictMiddlewareFunc{proofs, onePermissionVersion}, rest.StrictHTTPServerOptions{
		RequestErrorHandlerFunc:  httpserver.WriteError,
		ResponseErrorHandlerFunc: httpserver.WriteError,
	})
	rest.HandlerWithOptions(strict, rest.StdHTTPServerOptions{
		BaseURL: routes.BasePath, BaseRouter: router{chain},
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			httpserver.WriteError(w, r, rest.BindError(r, err))
		},
	})
	chain.HandleFunc(routes.ByID("openGateway").Pattern(), gateway.ServeHTTP)
	chain.HandleFunc(routes.ByID("submitCspReport").Pattern(), reports)
	chain.Alias("GET /.well-known/bothy", "getDiscovery")
	chain.Alias("GET /.well-known/jwks.json", "getJwks")
	return chain.Seal()
}

// router lets the generated code register with the chain.
type router struct{ chain *httpserver.Chain }

// HandleFunc implements rest.ServeMux.
func (r router) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	r.chain.HandleFunc(pattern, handler)
}

// ServeHTTP implements rest.ServeMux.
func (r router) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.chain.ServeHTTP(w, req) }

// onePermissionVersion lets all decisions of a request share one reading of the version of all
// rights.
func onePermissionVersion(next rest.StrictHandlerFunc, _ string) rest.StrictHandlerFunc {
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		return next(authzapp.WithRequest(ctx), w, r, request)
	}
}
