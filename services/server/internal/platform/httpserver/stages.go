// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/ratelimit"
)

// operationStage sets the limits of the operation's class: size of the body and deadline.
func (c *Chain) operationStage(op *Operation, rest next) next {
	if op.AuthorizedInBand {
		return rest
	}
	limit := op.MaxBodyBytes
	if limit == 0 && op.Body == BodyJSON {
		limit = c.options.Config.MaxJSONBodyBytes
	}
	transfer := op.Transfer || op.Body == BodyTransfer
	timeout := c.options.Config.RequestTimeout
	if transfer {
		timeout = c.options.Config.TransferTimeout
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		switch {
		case op.Body == BodyNone && r.ContentLength != 0:
			// Minus one is a body of unknown length.
			x.fail(w, errs.New(errs.CodeMalformedRequest, "This operation takes no body."))
			return
		case limit > 0 && r.ContentLength > limit && !op.AnonymousCredentials:
			x.fail(w, payloadTooLarge(limit))
			return
		}
		if transfer {
			c.extendDeadlines(w, timeout)
		}
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		ctx, x.mark = flush.WithMark(ctx)
		r = r.WithContext(ctx)
		if limit > 0 && r.ContentLength != 0 {
			r.Body = http.MaxBytesReader(w, r.Body, limit)
		}
		rest(x, w, r)
	}
}

func (c *Chain) extendDeadlines(w http.ResponseWriter, timeout time.Duration) {
	control := http.NewResponseController(w)
	end := time.Now().Add(timeout)
	// A connection that has no deadlines (a test recorder) keeps none.
	_ = control.SetReadDeadline(end)
	_ = control.SetWriteDeadline(end)
}

// exposed are the headers that pages of other origins may read.
const exposed = "Correlation-Id, DPoP-Nonce, ETag, Idempotency-Replayed, Location, Retry-After, Sync-Seq, WWW-Authenticate"

// corsStage lets pages of the configured origins read answers. There are no cookies, so
// nothing is ever sent along that the page does not hold itself.
func (c *Chain) corsStage(_ *Operation, rest next) next {
	if len(c.options.Config.CORSAllowedOrigins) == 0 {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); c.allowsOrigin(origin) {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", exposed)
			h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		}
		rest(x, w, r)
	}
}

func (c *Chain) allowsOrigin(origin string) bool {
	return origin != "" && slices.Contains(c.options.Config.CORSAllowedOrigins, origin)
}

// preflight answers the question of a browser before a request of another origin.
func (c *Chain) preflight(x *exchange, r *http.Request, allow string) bool {
	wanted := r.Header.Get("Access-Control-Request-Method")
	if r.Method != http.MethodOptions || wanted == "" || !c.allowsOrigin(r.Header.Get("Origin")) {
		return false
	}
	h := x.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Allow-Methods", allow)
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, DPoP, Idempotency-Key, If-Match, If-None-Match, Invocation-Token")
	h.Set("Access-Control-Max-Age", "600")
	x.WriteHeader(http.StatusNoContent)
	return true
}

// nonceStage gives clients a fresh nonce before theirs gets too old, on whatever answer they
// get. A proof that stands alone and needs one is sent back before anything is throttled: to
// fetch a nonce must not cost an attempt. The others are sent back by the authenticator.
func (c *Chain) nonceStage(op *Operation, rest next) next {
	if c.options.Nonces == nil {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		proofs := r.Header["Dpop"]
		if len(proofs) != 1 {
			rest(x, w, r)
			return
		}
		fresh, needed := c.options.Nonces(proofs[0])
		if needed && op.ProvenByKey {
			x.fail(w, errs.New(errs.CodeUseDPoPNonce, "Repeat the request with the nonce of the header DPoP-Nonce.").With(extNonce, fresh))
			return
		}
		if fresh != "" {
			w.Header().Set("DPoP-Nonce", fresh)
		}
		rest(x, w, r)
	}
}

// authenticationStage verifies the credentials of the request. A failure takes a token of
// the client address; without tokens left nothing is checked any more, because each check
// costs a signature.
func (c *Chain) authenticationStage(op *Operation, rest next) next {
	if op.AnonymousCredentials {
		return func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.actor = actor.Anonymous()
			rest(x, w, r)
		}
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		x.actor = actor.Anonymous()
		credentials := c.credentials(r)
		if credentials.Present() {
			a, err := c.authenticate(x, r, credentials)
			if err != nil {
				x.fail(w, err)
				return
			}
			x.actor = a
		}
		rest(x, w, r.WithContext(actor.With(r.Context(), x.actor)))
	}
}

func (c *Chain) credentials(r *http.Request) actor.Credentials {
	return actor.Credentials{
		// Two proofs become one that no authenticator accepts.
		Authorization: r.Header.Get("Authorization"), Proof: strings.Join(r.Header["Dpop"], ","), Method: r.Method,
		URL: c.options.Config.PublicURL + r.URL.EscapedPath(), InvocationToken: r.Header.Get("Invocation-Token"),
	}
}

func (c *Chain) authenticate(x *exchange, r *http.Request, credentials actor.Credentials) (actor.Actor, error) {
	key := ipKey(x.meta.ClientIP)
	if ok, wait := c.options.Limiter.Peek(ratelimit.PublicAuth, key); !ok {
		c.count("bothy.ratelimit.rejected", "bothy.ratelimit.class", ratelimit.PublicAuth)
		return actor.Actor{}, tooMany(wait)
	}
	a, err := c.verify(r, credentials)
	if err != nil {
		e := errs.As(err)
		if e.Kind() == errs.KindUnauthenticated && e.Code != errs.CodeTokenExpired && e.Code != errs.CodeUseDPoPNonce {
			c.options.Limiter.Take(ratelimit.PublicAuth, key)
		}
	}
	return a, err
}

func (c *Chain) verify(r *http.Request, credentials actor.Credentials) (actor.Actor, error) {
	unreadable := errs.New(errs.CodeUnauthenticated, "The credentials cannot be read. Sign in again.")
	for _, name := range []string{"Authorization", "Invocation-Token"} {
		if len(r.Header[name]) > 1 {
			return actor.Actor{}, errs.Invalid(name, "repeated", "Send this header once.")
		}
	}
	if _, _, ok := ParseAuthorization(credentials.Authorization); !ok {
		return actor.Actor{}, unreadable
	}
	return c.options.Authenticator.Authenticate(r.Context(), credentials)
}

func tooMany(wait time.Duration) error {
	return errs.New(errs.CodeRateLimited, "Too many requests. Wait as long as the header Retry-After says.").WithRetryAfter(max(wait, time.Second))
}

// ratelimitStage takes a token of the operation's class.
func (c *Chain) ratelimitStage(op *Operation, rest next) next {
	class := ratelimit.Name(op.RateLimitClass)
	kind, _ := c.options.Limiter.KeyOf(class)
	custom := c.options.RateKeys[class]
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		key := ""
		if custom != nil {
			key = custom(r, x.actor)
		}
		if key == "" {
			key = rateKey(kind, x)
		}
		if ok, wait := c.options.Limiter.Take(class, key); !ok {
			c.count("bothy.ratelimit.rejected", "bothy.ratelimit.class", class)
			x.fail(w, tooMany(wait))
			return
		}
		rest(x, w, r)
	}
}

// rateKey falls back to the address for everybody who is not signed in.
func rateKey(kind ratelimit.KeyKind, x *exchange) string {
	a := x.actor
	if !a.ViewedBy.IsZero() {
		a.ID = a.ViewedBy // Who is looked at loses nothing by it.
	}
	switch {
	case kind == ratelimit.KeyClientIP || a.ID.IsZero():
		return ipKey(x.meta.ClientIP)
	case kind == ratelimit.KeyPrincipalDevice && !a.DeviceID.IsZero():
		return a.ID.String() + "/" + a.DeviceID.String()
	case kind == ratelimit.KeyPrincipalDevice && !a.TokenID.IsZero():
		return a.ID.String() + "/" + a.TokenID.String()
	default:
		return a.ID.String()
	}
}

// maintenanceStage refuses writes while the instance is read-only.
func (c *Chain) maintenanceStage(op *Operation, rest next) next {
	if !c.options.Config.ReadOnly() || !op.Writes || op.Maintenance == MaintenanceNoWrite {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		allowed := op.Maintenance == MaintenanceAllow
		if op.Maintenance == MaintenanceConditional && c.options.MaintenanceAllows != nil {
			var err error
			if allowed, err = c.options.MaintenanceAllows(r, *op); err != nil {
				x.fail(w, err)
				return
			}
		}
		if !allowed {
			c.count("bothy.maintenance.rejected", "bothy.action", string(op.Action))
			x.fail(w, errs.New(errs.CodeMaintenance, "The instance is in maintenance and takes no changes. Try again later."))
			return
		}
		rest(x, w, r.WithContext(txn.ExemptFromMaintenance(r.Context())))
	}
}

// setupStage keeps everything closed until the instance has an owner.
func (c *Chain) setupStage(op *Operation, rest next) next {
	if op.BeforeSetup || c.options.SetupComplete == nil {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		complete, err := c.options.SetupComplete()
		switch {
		case err != nil:
			x.fail(w, err)
		case !complete:
			x.fail(w, errs.New(errs.CodeSetupRequired, "This instance has no owner yet. Finish its setup first."))
		default:
			rest(x, w, r)
		}
	}
}

// signedInStage ends requests without a credential before anything is looked up for them. A
// stranger then learns neither what a request lacks nor which things exist.
func (c *Chain) signedInStage(op *Operation, rest next) next {
	if !op.SignedIn {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		if x.actor.Kind == actor.KindAnonymous {
			x.fail(w, errs.New(errs.CodeUnauthenticated, "Sign in."))
			return
		}
		rest(x, w, r)
	}
}

// ifMatchStage reads the version that a change was made from.
func (c *Chain) ifMatchStage(op *Operation, rest next) next {
	if !op.Writes {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		values := r.Header["If-Match"]
		switch {
		case len(values) == 0 && op.RequiresIfMatch:
			x.fail(w, errs.New(errs.CodePreconditionRequired, "Name the version you changed in the header If-Match."))
			return
		case len(values) > 1:
			x.fail(w, errs.Invalid("header:If-Match", "repeated", "The header may stand once."))
			return
		case len(values) == 1:
			version, ok := ParseIfMatch(values[0])
			if !ok {
				x.fail(w, errs.Invalid("header:If-Match", "bad_format", `The header must be a strong ETag such as "3".`))
				return
			}
			x.ifMatch = version
		}
		rest(x, w, r)
	}
}

// ParseIfMatch reads a strong ETag of a version: a whole number from 1 in double quotes.
func ParseIfMatch(header string) (version int64, ok bool) {
	if len(header) < 3 || len(header) > 21 || header[0] != '"' || header[len(header)-1] != '"' || header[1] == '0' {
		return 0, false
	}
	for _, c := range []byte(header[1 : len(header)-1]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		digit := int64(c - '0')
		if version > (1<<63-1-digit)/10 {
			return 0, false
		}
		version = version*10 + digit
	}
	return version, true
}

// IfMatch gives the version that the request names; ok is false without one.
func IfMatch(ctx context.Context) (version int64, ok bool) {
	if x := exchangeFrom(ctx); x != nil && x.ifMatch > 0 {
		return x.ifMatch, true
	}
	return 0, false
}

// positionStage notes the position that a read will reflect, before anything is read.
func (c *Chain) positionStage(op *Operation, rest next) next {
	if !op.SyncPosition || op.Writes || c.options.Positions == nil {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		seq, err := c.options.Positions.ReadPosition(r.Context())
		if err != nil {
			x.fail(w, err)
			return
		}
		x.position = seq
		rest(x, w, r)
	}
}

// checkLogStage gives the handler the log that proves its check.
func (c *Chain) checkLogStage(_ *Operation, rest next) next {
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		ctx, checks := authorize.WithCheckLog(r.Context())
		x.checks = checks
		x.r = r.WithContext(ctx)
		rest(x, w, x.r)
	}
}

var errUnreadable = errors.New("the media type cannot be read")

// mediaType gives the type without parameters in lower case. The only parameter that a
// JSON body may have is charset=utf-8.
func mediaType(header string) (string, error) {
	t, params, found := strings.Cut(header, ";")
	t = strings.ToLower(strings.TrimSpace(t))
	if found {
		params = strings.ToLower(strings.TrimSpace(params))
		if params != "" && params != "charset=utf-8" && params != `charset="utf-8"` {
			return "", errUnreadable
		}
	}
	return t, nil
}
