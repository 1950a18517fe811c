// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// AddOwner makes an active person who is no guest an owner; repeating it changes nothing.
func (s *Service) AddOwner(ctx context.Context, id ids.ID) error {
	return s.changeOwner(ctx, authorize.ActionOwnerAdd, id, func(ctx context.Context, person Account, _ []ids.ID) (bool, error) {
		switch {
		case person.Owner:
			return false, nil
		case person.Person.Guest:
			return false, errs.Conflict("guest", "A guest cannot be an owner. Make her a member first.")
		case person.Status != identity.StatusActive:
			return false, errs.Conflict("not_active", "Enable the person first.")
		}
		return true, s.Store.AddOwner(ctx, id, actor.From(ctx).ID, s.now(ctx))
	})
}

// RemoveOwner takes ownership away, also from the caller. The last owner stays: changes of
// owners follow each other, so of two owners who remove each other one remains.
func (s *Service) RemoveOwner(ctx context.Context, id ids.ID) error {
	return s.changeOwner(ctx, authorize.ActionOwnerRemove, id, func(ctx context.Context, person Account, owners []ids.ID) (bool, error) {
		switch {
		case !person.Owner:
			return false, errs.NotFound()
		case len(owners) == 1:
			return false, errLastOwner()
		}
		return true, s.Store.RemoveOwner(ctx, id)
	})
}

func errLastOwner() error {
	return errs.New(errs.CodeLastOwner, "The last owner cannot go. Make somebody else an owner first.")
}

// changeOwner is the unit of both: the owners locked, the person read, one change, told and
// recorded. change reports whether it did anything.
func (s *Service) changeOwner(ctx context.Context, action authorize.Action, id ids.ID,
	change func(ctx context.Context, person Account, owners []ids.ID) (bool, error),
) error {
	return s.Units.Do(ctx, func(ctx context.Context) error {
		owners, err := s.Store.LockOwners(ctx)
		if err != nil {
			return err
		}
		person, err := s.lockedPerson(ctx, id)
		if err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, action, onPrincipal(id)); err != nil {
			return err
		}
		// The rows are locked now; what was read with the person may be older.
		person.Owner = slices.Contains(owners, id)
		changed, err := change(ctx, person, owners)
		if err != nil || !changed {
			return err
		}
		s.Memory.Forget(id)
		if _, err := s.announceUserByID(ctx, id, changeOwner); err != nil {
			return err
		}
		return s.Audit.Allowed(ctx, auditing.Entry{
			Action: string(action), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: id,
		})
	}, txn.WithRightsChange(txn.RightsChange{Action: string(action), Principals: []ids.ID{id}}))
}
