// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Sources answers what authz asks about principals and credentials. It needs nothing of
// authz, so it can be built before it.
type Sources struct {
	store Store
	clock clock.Clock
}

var (
	_ authz.PrincipalSource  = (*Sources)(nil)
	_ authz.CredentialSource = (*Sources)(nil)
)

// NewSources makes the sources.
func NewSources(store Store, clk clock.Clock) *Sources { return &Sources{store: store, clock: clk} }

// Principals implements authz.PrincipalSource.
func (s *Sources) Principals(ctx context.Context, principals []ids.ID) ([]authz.Principal, error) {
	if len(principals) == 0 {
		return nil, nil
	}
	return s.store.PrincipalStates(ctx, principals)
}

// ActiveOwners implements authz.PrincipalSource.
func (s *Sources) ActiveOwners(ctx context.Context) ([]ids.ID, error) {
	return s.store.ActiveOwnerIDs(ctx)
}

// ActivePeople implements authz.PrincipalSource.
func (s *Sources) ActivePeople(ctx context.Context) ([]authz.Principal, error) {
	return s.store.ActivePeople(ctx)
}

// CheckActive implements authz.CredentialSource. Inside a unit that writes it queues a
// statement that fails the unit, as unauthenticated, when the credential has ended: the
// check is answered with the next read or the commit and costs no round trip, and nothing
// is written on a credential that is gone. Reads trust the check the request began with,
// which is as old as the request.
func (s *Sources) CheckActive(ctx context.Context, a actor.Actor) error {
	unit := txn.Current(ctx)
	if a.ID.IsZero() || unit == nil || unit.ReadOnly() {
		return nil
	}
	switch {
	case !a.SessionID.IsZero():
		return s.store.RequireSession(ctx, a.SessionID, a.ID, unit.Now(), errUnauthenticated("session_ended", nil))
	case !a.TokenID.IsZero():
		return s.store.RequireToken(ctx, a.TokenID, a.ID, unit.Now(), errUnauthenticated("", nil))
	default:
		return nil
	}
}
