// SPDX-License-Identifier: Apache-2.0

// Package idempotency remembers the answers of writes, so that a repeated request has one
// effect and one answer. The HTTP chain calls the Store around the use case; the module
// sync implements it.
package idempotency

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Key identifies a write of one caller.
type Key struct {
	// ScopeID is the principal.
	ScopeID     ids.ID
	OperationID string
	// Value is the header Idempotency-Key: 1 to 128 visible ASCII characters.
	Value string
	// RequestHash is SHA-256 over method, path, raw body and If-Match.
	RequestHash [32]byte
}

// Answer is a stored response.
type Answer struct {
	Status int
	// Header holds ETag, Location and Sync-Seq alone.
	Header map[string]string
	Body   []byte
	// SecretShown means that the body held a secret and was not kept; a repetition is a
	// conflict with reason secret_already_shown. ResourceID names what was made.
	SecretShown bool
	ResourceID  ids.ID
}

// Store keeps keys and answers.
type Store interface {
	// Begin claims the key inside the running unit of work. A stored answer means that the
	// request was done before and must not run again. It fails with idempotency_key_reuse
	// when the key belongs to another request, and with request_in_progress when a twin
	// holds it longer than the lock timeout.
	Begin(ctx context.Context, k Key) (*Answer, error)
	// Complete stores the answer in the same unit, so key and effect live or die together.
	Complete(ctx context.Context, k Key, a Answer) error
	// CompleteFailed stores a final error in a unit of its own, after the unit of the
	// request has been rolled back.
	CompleteFailed(ctx context.Context, k Key, a Answer) error
}

type secretKey struct{}

// Secret is the mark through which a handler says that its answer shows a secret once.
type Secret struct {
	Shown      bool
	ResourceID ids.ID
}

// WithSecretMark puts an empty mark into the context; the HTTP chain does so.
func WithSecretMark(ctx context.Context) (context.Context, *Secret) {
	s := &Secret{}
	return context.WithValue(ctx, secretKey{}, s), s
}

// ShowsSecret marks the answer of the running request, so that its body is not stored.
func ShowsSecret(ctx context.Context, resource ids.ID) {
	if s, ok := ctx.Value(secretKey{}).(*Secret); ok {
		s.Shown, s.ResourceID = true, resource
	}
}
