// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"net/http"
	"net/url"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// idempotencyStage makes a write with a key take effect once. It opens the unit of work
// that the use case joins, so the key, the effect and the stored answer live or die
// together; the answer leaves only when the unit is durable.
func (c *Chain) idempotencyStage(op *Operation, rest next) next {
	if !op.Writes || op.IgnoresIdempotencyKey || op.Body == BodyTransfer || c.options.Idempotency == nil || c.options.Units == nil {
		return rest
	}
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		values := r.Header["Idempotency-Key"]
		// Keys belong to a principal; without one there is nobody to give an answer again.
		if len(values) == 0 || x.actor.ID.IsZero() {
			rest(x, w, r)
			return
		}
		if len(values) > 1 || !validKey(values[0]) {
			x.fail(w, errs.Invalid("header:Idempotency-Key", "bad_format", "The key must be 1 to 128 visible ASCII characters."))
			return
		}
		body, err := x.readBody(r)
		if err != nil {
			x.fail(w, err)
			return
		}
		key := idempotency.Key{
			ScopeID: x.actor.ID, OperationID: op.ID, Value: values[0],
			RequestHash: requestHash(r.Method, r.URL, body, r.Header.Get("If-Match")),
		}
		c.runOnce(x, r, key, rest)
	}
}

func validKey(key string) bool {
	if key == "" || len(key) > 128 {
		return false
	}
	for _, c := range []byte(key) {
		if c < 0x21 || c > 0x7e {
			return false
		}
	}
	return true
}

// requestHash covers what makes a request the same one again. The query counts with the
// path, as no write has one that does not matter. Lengths keep the parts apart.
func requestHash(method string, u *url.URL, body []byte, ifMatch string) (sum [32]byte) {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(method), []byte(u.EscapedPath() + "?" + u.RawQuery), body, []byte(ifMatch)} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// refused carries the buffered answer of a handler out of a unit that must roll back. It
// wraps what the handler failed with, so that the unit can tell a deadlock from a refusal.
type refused struct{ cause error }

func (e *refused) Error() string {
	if e.cause == nil {
		return "the request was refused"
	}
	return e.cause.Error()
}

func (e *refused) Unwrap() error { return e.cause }

// isRefusal tells the refusal of a handler from a failure of the unit. A unit that made
// something else of the refusal, because the database had failed beneath it, knows better
// than the handler what the client should hear.
func isRefusal(err error) bool {
	_, direct := err.(*refused) //nolint:errorlint // A wrapped one is just what must not count.
	return direct
}

func (c *Chain) runOnce(x *exchange, r *http.Request, key idempotency.Key, rest next) {
	var (
		answer *buffer
		stored *idempotency.Answer
	)
	// The unit may run the function again, so each run begins with nothing of the last one.
	err := c.options.Units.Do(r.Context(), func(ctx context.Context) error {
		answer, stored, x.checks, x.code = nil, nil, nil, ""
		var err error
		if stored, err = c.options.Idempotency.Begin(ctx, key); err != nil || stored != nil {
			return err
		}
		ctx, secret := idempotency.WithSecretMark(ctx)
		answer = newBuffer(x.Header())
		again := r.WithContext(ctx)
		withBody(again, x.body)
		rest(x, answer, again)
		if answer.status < 400 && !x.proven() {
			answer = newBuffer(x.Header())
			x.unproven(answer)
		}
		if answer.status >= 400 {
			return &refused{answer.err}
		}
		return c.options.Idempotency.Complete(ctx, key, answer.stored(secret))
	}, txn.AllowLateRightsChange())
	x.r = r
	switch {
	case err == nil && stored != nil:
		c.replay(x, r, stored)
	case err == nil:
		answer.release(x)
	case isRefusal(err) && answer != nil:
		x.note(answer.err)
		c.keepRefusal(x, r, key, answer)
		answer.release(x)
	default:
		x.fail(x, err)
	}
}

// keepRefusal stores a final refusal. One that may turn out otherwise when repeated is not
// stored: missing proofs, throttling and faults of the server.
func (c *Chain) keepRefusal(x *exchange, r *http.Request, key idempotency.Key, answer *buffer) {
	switch {
	case answer.status >= 500, answer.status == http.StatusUnauthorized, answer.status == http.StatusRequestTimeout,
		answer.status == http.StatusTooManyRequests, x.code == errs.CodeRequestInProgress:
		return
	}
	if err := c.options.Idempotency.CompleteFailed(r.Context(), key, answer.stored(&idempotency.Secret{})); err != nil {
		// The refusal itself is still right; only a repetition will be decided anew.
		c.log.WarnContext(r.Context(), "refusal could not be stored", "operation", key.OperationID, "err", err)
	}
}

// replay gives a stored answer again.
func (c *Chain) replay(x *exchange, r *http.Request, a *idempotency.Answer) {
	if a.SecretShown {
		x.fail(x, errs.Conflict("secret_already_shown", "This was done before, and its secret was shown then.").
			With("resource_id", a.ResourceID))
		return
	}
	ctx, checks := authorize.WithCheckLog(r.Context())
	authorize.Prove(ctx)
	x.checks = checks
	h := x.Header()
	for name, value := range a.Header {
		h.Set(name, value)
	}
	h.Set("Idempotency-Replayed", "true")
	if len(a.Body) > 0 {
		h.Set("Content-Type", mediaJSON)
		if a.Status >= 400 {
			h.Set("Content-Type", "application/problem+json")
		}
	}
	x.WriteHeader(a.Status)
	// A client that is gone has its answer stored.
	_, _ = x.Write(a.Body)
}

// buffer holds an answer until its effect is durable.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
	// err is what the handler failed with, when it said so through WriteError.
	err error
}

func newBuffer(base http.Header) *buffer { return &buffer{header: base.Clone()} }

// Header implements http.ResponseWriter.
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *buffer) WriteHeader(status int) {
	if b.status == 0 && status >= 200 {
		b.status = status
	}
}

// Write implements http.ResponseWriter.
func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	return b.body.Write(p)
}

// stored is what a repetition needs. The position is not known before the unit numbers its
// events; the store, which belongs to the same module as the numbering, adds it.
func (b *buffer) stored(secret *idempotency.Secret) idempotency.Answer {
	a := idempotency.Answer{Status: b.finalStatus(), Header: map[string]string{}, SecretShown: secret.Shown, ResourceID: secret.ResourceID}
	for _, name := range []string{"ETag", "Location"} {
		if v := b.header.Get(name); v != "" {
			a.Header[name] = v
		}
	}
	if !secret.Shown {
		a.Body = b.body.Bytes()
	}
	return a
}

func (b *buffer) finalStatus() int {
	if b.status == 0 {
		return http.StatusOK
	}
	return b.status
}

func (b *buffer) release(x *exchange) {
	maps.Copy(x.Header(), b.header)
	x.WriteHeader(b.finalStatus())
	_, _ = x.Write(b.body.Bytes())
}
