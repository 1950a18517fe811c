// SPDX-License-Identifier: Apache-2.0

// Package authz is the port of the module authz, which decides every question of rights.
// The decisions themselves are asked through kernel/authorize; this package holds the
// sources that the decisions read and the few acts other modules do with grants.
package authz

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Principal is what decisions need to know of a principal.
type Principal struct {
	ID     ids.ID
	Kind   actor.Kind
	Active bool
	Owner  bool
	Guest  bool
}

// PrincipalSource tells about principals. The module identity implements it.
type PrincipalSource interface {
	// Principals reads the named ones; unknown IDs are left out.
	Principals(ctx context.Context, principals []ids.ID) ([]Principal, error)
	// ActiveOwners lists the owners that are active.
	ActiveOwners(ctx context.Context) ([]ids.ID, error)
	// ActivePeople lists all active people; members of the group everyone are those that are
	// no guests.
	ActivePeople(ctx context.Context) ([]Principal, error)
}

// CredentialSource checks that the credential of a verified actor still lives. The module
// identity implements it.
type CredentialSource interface {
	// CheckActive returns unauthenticated when principal, session, device or token has ended.
	CheckActive(ctx context.Context, a actor.Actor) error
}

// SpaceState is what decisions need to know of a space.
type SpaceState struct {
	ID       ids.ID
	Archived bool
}

// ChannelState is what decisions need to know of a channel.
type ChannelState struct {
	ID ids.ID
	// SpaceID is zero for direct channels.
	SpaceID            ids.ID
	Direct             bool
	Inherits           bool
	Archived, ReadOnly bool
	// OperatorID is the effective operator, zero for none.
	OperatorID ids.ID
	// Participants are the present members of a direct channel.
	Participants []ids.ID
}

// StructureSource tells where things lie. The module chat implements it.
type StructureSource interface {
	// Spaces and Channels read everything, for the index in memory.
	Spaces(ctx context.Context) ([]SpaceState, error)
	Channels(ctx context.Context) ([]ChannelState, error)
	// Space and Channel read one in the running unit; ok is false when there is none.
	Space(ctx context.Context, id ids.ID) (s SpaceState, ok bool, err error)
	Channel(ctx context.Context, id ids.ID) (c ChannelState, ok bool, err error)
	// ThreadChannel gives the channel a thread lies in.
	ThreadChannel(ctx context.Context, thread ids.ID) (channel ids.ID, ok bool, err error)
}

// AgentPolicy is how an agent is paid for, as far as rights depend on it.
type AgentPolicy struct {
	AgentID     ids.ID
	BillingMode string
	// HolderID is set for billing mode personal: only this person may trigger the agent.
	HolderID ids.ID
	Active   bool
}

// AgentPolicySource tells about agents. The module agents implements it.
type AgentPolicySource interface {
	AgentPolicies(ctx context.Context, agents []ids.ID) ([]AgentPolicy, error)
	// PersonalAgents lists the active agents of billing mode personal, by ID.
	PersonalAgents(ctx context.Context) ([]AgentPolicy, error)
}

// Target is what a grant is given on.
type Target struct {
	// Kind is instance, space or channel.
	Kind string
	// ID is zero for the instance.
	ID ids.ID
}

// Grants are the acts on grants that other modules do inside their own units of work. They
// do not authorize; the calling use case has.
type Grants interface {
	// CreateEveryone makes the group of all members, once; it returns its ID.
	CreateEveryone(ctx context.Context) (ids.ID, error)
	// GrantEveryone gives the group of all members a level on a target, in a unit that has
	// declared the change of rights.
	GrantEveryone(ctx context.Context, t Target, level authorize.Level, capabilities []authorize.Capability) error
	// GrantPrincipal does the same for one principal.
	GrantPrincipal(ctx context.Context, principal ids.ID, t Target, level authorize.Level, capabilities []authorize.Capability) error
	// RevokeAll removes every grant of a principal in the same way.
	RevokeAll(ctx context.Context, principal ids.ID) error
}

// Affected lets a use case name, inside a unit that declares a change of rights, principals
// whose rights it is about to change and that the declaration could not know, for example
// the next operator. It must be called before the rows are written.
type Affected interface {
	Affect(ctx context.Context, principals ...ids.ID) error
}

type decidedKey struct{}

// RecordDecision notes in the running unit with which version of all rights it has decided.
// Only the module authz calls it.
func RecordDecision(ctx context.Context, version int64) {
	if u := txn.Current(ctx); u != nil && !u.ReadOnly() {
		u.SetValue(decidedKey{}, version)
	}
}

// DecidedVersion is the version of all rights with which the running unit has decided; ok is
// false when it has decided nothing. The log refuses a unit whose version is not the present
// one when its events get their positions.
func DecidedVersion(ctx context.Context) (version int64, ok bool) {
	u := txn.Current(ctx)
	if u == nil {
		return 0, false
	}
	version, ok = u.Value(decidedKey{}).(int64)
	return version, ok
}
