// SPDX-License-Identifier: Apache-2.0

// Package identity is the port of the module identity: who the principals are and how they
// prove it.
package identity

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Status of a principal.
type Status string

// The states of principals.
const (
	StatusActive   Status = "active"
	StatusDisabled Status = "disabled"
	StatusErased   Status = "erased"
)

// Principal is a member as other modules see it.
type Principal struct {
	ID          ids.ID
	Kind        actor.Kind
	Status      Status
	Handle      string
	DisplayName string
	Owner       bool
	Guest       bool
	// Locale and TimeZone are set for people.
	Locale, TimeZone string
	Version          int64
}

// Active reports whether the principal may act.
func (p Principal) Active() bool { return p.Status == StatusActive }

// Directory finds principals. It does not authorize.
type Directory interface {
	// ByID reads the named ones; unknown IDs are left out.
	ByID(ctx context.Context, principals []ids.ID) (map[ids.ID]Principal, error)
	// ByHandle resolves handles, lower-cased by the caller; unknown ones are left out.
	ByHandle(ctx context.Context, handles []string) (map[string]Principal, error)
	// Visible lists what the actor of the context may see of the directory, by handle, at
	// most limit; complete is false when there are more.
	Visible(ctx context.Context, limit int) (list []Principal, complete bool, err error)
}

// NewPrincipal describes an agent or app to be created.
type NewPrincipal struct {
	Kind        actor.Kind
	Handle      string
	DisplayName string
	CreatedBy   ids.ID
}

// PrincipalWrites are the acts of other modules on the principals they own, inside their
// units of work and without authorizing.
type PrincipalWrites interface {
	// Create makes a principal; a taken handle is a conflict with reason handle_taken.
	Create(ctx context.Context, p NewPrincipal) (Principal, error)
	// Rename changes handle and display name.
	Rename(ctx context.Context, id ids.ID, handle, displayName string) (Principal, error)
	// SetActive enables or disables a principal; disabling ends its tokens.
	SetActive(ctx context.Context, id ids.ID, active bool, reason string) (Principal, error)
}

// Tokens makes credentials for principals that other modules create.
type Tokens interface {
	// CreateFirst makes the first API token of an agent or app inside the running unit. It
	// lasts until it is revoked when expiresAt is nil. The secret is shown once.
	CreateFirst(ctx context.Context, principal ids.ID, name string, scopes []string, expiresAt *time.Time) (tokenID ids.ID, secret string, err error)
}

// StepUps lets an act take the fresh proof of a person, so that it serves for nothing else.
type StepUps interface {
	// ConsumeStepUp takes the proof of the calling session inside the running unit. It fails
	// with step_up_required when there is none, it is too old, or another act was faster.
	ConsumeStepUp(ctx context.Context) error
}

// ActingForSource verifies the invocation token of a request. The module runs implements it.
type ActingForSource interface {
	// VerifyInvocation checks the token for the calling agent. It fails with unauthenticated
	// or token_expired for a token that is none, and with forbidden
	// (invocation_token_invalid) when the run has ended.
	VerifyInvocation(ctx context.Context, agent ids.ID, token string) (actor.ActingFor, error)
}

// SetupCompleted is published in the transaction in which the first owner redeems the
// code: the moment to make what an empty installation starts with.
type SetupCompleted struct{ OwnerID ids.ID }

// SessionEnded is published in the transaction that ends a session.
type SessionEnded struct {
	SessionID, DeviceID, PrincipalID ids.ID
	Kind, Reason                     string
}

// DeviceRevoked is published in the transaction that revokes a device.
type DeviceRevoked struct {
	DeviceID, PrincipalID ids.ID
	Reason                string
}
