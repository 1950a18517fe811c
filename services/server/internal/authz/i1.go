// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// An agent on one person's own plan may be set to work by that person alone. A change of
// rights that would let anybody else is refused with i1_violation. The answer names who and
// why, and the ways out; whoever repeats the request with one of them has the change and its
// remedy made in one transaction.

// The ways out of a violation.
const (
	// ResolveSwitch has the organisation pay for the agents.
	ResolveSwitch = "switch_to_organization"
	// ResolveReduce takes rights away, step by step as the answer has listed.
	ResolveReduce = "reduce_rights"
)

// Resolution is the way out that somebody has chosen for exactly the list she has seen.
type Resolution struct {
	Strategy string
	// Digest is that of the list.
	Digest string
}

type resolutionKey struct{}

// WithResolution lets the changes of rights below the context take a way out. The zero
// Resolution chooses none.
func WithResolution(ctx context.Context, r Resolution) context.Context {
	if r == (Resolution{}) {
		return ctx
	}
	return context.WithValue(ctx, resolutionKey{}, r)
}

// ResolutionFrom is the way out that was chosen; ok is false for none.
func ResolutionFrom(ctx context.Context) (r Resolution, ok bool) {
	r, ok = ctx.Value(resolutionKey{}).(Resolution)
	return r, ok
}

// AgentPolicySwitch changes who pays for agents as the remedy of a change of rights, inside
// its unit and without authorizing. The module agents implements it; it may refuse with a
// conflict.
type AgentPolicySwitch interface {
	SwitchToOrganization(ctx context.Context, agents []ids.ID) error
}

// OperatorSwitch takes the agent that answers from a channel, in the same way. The module
// chat implements it.
type OperatorSwitch interface {
	UnsetOperator(ctx context.Context, channel ids.ID) error
}

// TriggerPath is one way in which somebody has come to the right to set an agent to work.
type TriggerPath struct {
	// Code is grant_direct, grant_group, everyone or dm_participant.
	Code             string
	GrantID, GroupID ids.ID
	// Target and Level are those of the grant.
	Target Target
	Level  string
}

// Triggerer is somebody who can set an agent to work on a target and on everything beneath
// it that is not named by itself.
type Triggerer struct {
	PrincipalID ids.ID
	Target      Target
	Paths       []TriggerPath
}

// TriggerHolders tells who holds the right to set agents to work. It does not authorize.
type TriggerHolders interface {
	// Triggerers lists who can set an active agent to work, ordered by principal and target.
	// What owners hold by being owners is not among it. Of a personal agent only its holder
	// can be.
	Triggerers(ctx context.Context, agent ids.ID) ([]Triggerer, error)
}
