// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// unwired is every source before it has been set: it knows nothing.
type unwired struct{}

// Principals implements authz.PrincipalSource.
func (unwired) Principals(context.Context, []ids.ID) ([]authz.Principal, error) { return nil, nil }

// ActiveOwners implements authz.PrincipalSource.
func (unwired) ActiveOwners(context.Context) ([]ids.ID, error) { return nil, nil }

// ActivePeople implements authz.PrincipalSource.
func (unwired) ActivePeople(context.Context) ([]authz.Principal, error) { return nil, nil }

// CheckActive implements authz.CredentialSource by refusing.
func (unwired) CheckActive(context.Context, actor.Actor) error {
	return errs.New(errs.CodeUnauthenticated, "Sign in again.")
}

// Spaces implements authz.StructureSource.
func (unwired) Spaces(context.Context) ([]authz.SpaceState, error) { return nil, nil }

// Channels implements authz.StructureSource.
func (unwired) Channels(context.Context) ([]authz.ChannelState, error) { return nil, nil }

// Space implements authz.StructureSource.
func (unwired) Space(context.Context, ids.ID) (s authz.SpaceState, ok bool, err error) {
	return s, false, nil
}

// Channel implements authz.StructureSource.
func (unwired) Channel(context.Context, ids.ID) (c authz.ChannelState, ok bool, err error) {
	return c, false, nil
}

// ThreadChannel implements authz.StructureSource.
func (unwired) ThreadChannel(context.Context, ids.ID) (channel ids.ID, ok bool, err error) {
	return channel, false, nil
}

// AgentPolicies implements authz.AgentPolicySource.
func (unwired) AgentPolicies(context.Context, []ids.ID) ([]authz.AgentPolicy, error) {
	return nil, nil
}

// CheckHandle implements authz.HandleSource by refusing.
func (unwired) CheckHandle(string) string { return "reserved" }

// ClaimHandle implements authz.HandleSource.
func (unwired) ClaimHandle(context.Context, string) (bool, error) { return true, nil }

// PrincipalNames implements authz.PrincipalNames.
func (unwired) PrincipalNames(context.Context, []ids.ID) (map[ids.ID]string, error) { return nil, nil }

// PlaceName implements authz.PlaceNames.
func (unwired) PlaceName(context.Context, authz.Target) (string, error) { return "", nil }

// BeginView implements authz.ViewSessions by refusing.
func (unwired) BeginView(context.Context, ids.ID, time.Duration) (authz.ViewSession, error) {
	return authz.ViewSession{}, errs.Forbidden(reasonViewDisabled)
}

// ViewToken implements authz.ViewSessions by refusing.
func (unwired) ViewToken(context.Context, ids.ID) (string, error) {
	return "", errs.Forbidden(reasonViewDisabled)
}

// PersonalAgents implements authz.AgentPolicySource.
func (unwired) PersonalAgents(context.Context) ([]authz.AgentPolicy, error) { return nil, nil }
