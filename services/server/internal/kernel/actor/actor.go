// SPDX-License-Identifier: Apache-2.0

// Package actor says on whose behalf a request or a job works. The HTTP chain and the
// gateway put the verified principal into the context; use cases read it from there and
// never from the request.
package actor

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Kind is the kind of an actor.
type Kind string

// The kinds of actors. Person, agent and app are principals; the others act without a
// row of their own among the principals.
const (
	KindPerson    Kind = "person"
	KindAgent     Kind = "agent"
	KindApp       Kind = "app"
	KindAnonymous Kind = "anonymous"
	KindWebhook   Kind = "webhook"
	KindHost      Kind = "host"
	KindSystem    Kind = "system"
)

// Actor is a verified principal and the credential that it used.
type Actor struct {
	// ID is the principal; zero for anonymous and system.
	ID   ids.ID
	Kind Kind
	// Owner and Guest hold what the credential check read; decisions read it anew.
	Owner, Guest bool
	// SessionID and DeviceID are set for login sessions, TokenID for API tokens.
	SessionID, DeviceID, TokenID ids.ID
	// StepUpUntil is when the fresh proof of the session ends; zero without one.
	StepUpUntil time.Time
	// Scopes limit an API token. Nil means a login session, which has no scopes.
	Scopes []string
	// CredentialExpiresAt is when the presented credential ends; zero for never.
	CredentialExpiresAt time.Time
	// ActingFor is set while an agent works under an invocation token.
	ActingFor *ActingFor
	// ViewedBy is the owner who looks at the instance as this person, zero otherwise. Such an
	// actor reads what both may read, and writes nothing.
	ViewedBy ids.ID
}

// ActingFor is what a verified invocation token says: on whose order an agent acts and
// for which run.
type ActingFor struct {
	// PrincipalID is the person who set the agent to work.
	PrincipalID ids.ID
	RunID       ids.ID
	ThreadID    ids.ID
	ChannelID   ids.ID
	ExpiresAt   time.Time
	// Ended is set when the run has ended: the credential then reaches nothing but the run,
	// which may be ended once more because that answer may have been lost.
	Ended bool
}

// IsSession reports whether the actor signed in, as against an API token.
func (a Actor) IsSession() bool { return !a.SessionID.IsZero() }

// Anonymous is the actor of a request without credentials.
func Anonymous() Actor { return Actor{Kind: KindAnonymous} }

// System is the actor of jobs and commands.
func System() Actor { return Actor{Kind: KindSystem} }

type key struct{}

// With puts the actor into the context.
func With(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, key{}, a) }

// From gives the actor of the context, anonymous when there is none: forgetting to set
// one can only take rights away.
func From(ctx context.Context) Actor {
	if a, ok := ctx.Value(key{}).(Actor); ok {
		return a
	}
	return Anonymous()
}

// Credentials are what a request presents, before any check.
type Credentials struct {
	// Authorization is the header as sent, for example "DPoP eyJ..." or "Bearer bothy_...".
	Authorization string
	// Proof is the DPoP proof; Method and URL are what it must be made for.
	Proof, Method, URL string
	// InvocationToken is the header of an agent that works on an order; empty otherwise.
	InvocationToken string
}

// Present reports whether the request shows any credential at all.
func (c Credentials) Present() bool { return c.Authorization != "" || c.InvocationToken != "" }

// Authenticator verifies credentials. The module identity implements it.
type Authenticator interface {
	// Authenticate returns the actor, or an error with one of the codes
	// unauthenticated, token_expired, invalid_dpop_proof, use_dpop_nonce (whose
	// extension dpop_nonce holds a fresh nonce) and unavailable.
	Authenticate(ctx context.Context, c Credentials) (Actor, error)
	// Revalidate checks an actor that was verified earlier, without a new proof: the
	// session, device or token lives and the principal is active. It returns the actor
	// with present values, or unauthenticated.
	Revalidate(ctx context.Context, a Actor) (Actor, error)
}
