// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Groups answers about groups for mentions and the directory.
type Groups interface {
	// HandleTaken reports whether a group has the handle.
	HandleTaken(ctx context.Context, handle string) (bool, error)
}

// HandleSource tells about the handles of principals, which share one name space with those
// of groups. The module identity implements it.
type HandleSource interface {
	// CheckHandle gives the code of what is wrong with the form of a handle; empty when it
	// may be taken.
	CheckHandle(handle string) (code string)
	// ClaimHandle takes the lock of the handle for the running unit and reports whether a
	// principal has it or still holds it.
	ClaimHandle(ctx context.Context, handle string) (taken bool, err error)
}

// Claims are what an identity provider says at a login about the groups of a principal.
type Claims struct {
	PrincipalID ids.ID
	ProviderID  ids.ID
	// Values are the groups as the provider names them. Nil means that the provider has not
	// told any, also when it only marks that there are too many: nothing changes then. An
	// empty list that is not nil ends every membership from this provider.
	Values []string
	// ValidFor is how long a membership lasts without another login.
	ValidFor time.Duration
}

// ClaimGroups keeps the memberships that identity providers decide. A login by a provider
// asks Declare before its unit of work, opens the unit with what it answers, and calls Sync
// in it:
//
//	opts, err := groups.Declare(ctx, claims)
//	err = units.Do(ctx, func(ctx context.Context) error {
//		// ... the login ...
//		return groups.Sync(ctx, claims)
//	}, opts...)
//
// On ErrClaimsMoved it begins again with Declare.
type ClaimGroups interface {
	// Declare gives the options of the unit in which Sync will run: a change of rights when
	// memberships differ from the claims, none when they are only renewed. A unit that
	// changes rights on another ground needs no Declare.
	Declare(ctx context.Context, c Claims) ([]txn.Option, error)
	// Sync makes the memberships equal to the claims and renews them. An addition that would
	// let somebody use an agent of another person is left out, so that no agent keeps a
	// person from logging in; the audit log has it.
	Sync(ctx context.Context, c Claims) error
}

// ErrClaimsMoved means that groups have changed between Declare and Sync.
var ErrClaimsMoved = errors.New("groups have changed since the claims were declared")
