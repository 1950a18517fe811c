// SPDX-License-Identifier: Apache-2.0

// Package reqmeta carries what every layer may want to know about the request it works
// for, without knowing HTTP: its correlation ID and the address of the client.
package reqmeta

import (
	"context"
	"net/netip"
)

type key struct{}

// Meta describes a request. The zero value describes work that no request started.
type Meta struct {
	// CorrelationID is the trace ID of the request in the form of a UUID. It is no
	// version 7 value and never checked with package ids; empty outside a request.
	CorrelationID string
	// ClientIP is the peer, or what a trusted proxy said of it; invalid when unknown.
	ClientIP netip.Addr
}

// With puts the description of the request into the context.
func With(ctx context.Context, m Meta) context.Context {
	return context.WithValue(ctx, key{}, m)
}

// From gives the description of the request, or the zero value.
func From(ctx context.Context) Meta {
	m, _ := ctx.Value(key{}).(Meta)
	return m
}
