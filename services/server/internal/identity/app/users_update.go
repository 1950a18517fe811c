// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// UpdateUserInput is an owner's merge patch of a person.
type UpdateUserInput struct {
	Version             int64
	Handle, DisplayName Change[string]
	// Email is empty to take the address away.
	Email         Change[string]
	EmailVerified Change[bool]
	Guest         Change[bool]
	Title         Change[string]
}

func (in UpdateUserInput) validate() error {
	var v errs.Validation
	if in.Handle.Set {
		addFault(&v, "/handle", domain.CheckHandle(in.Handle.Value))
	}
	if in.DisplayName.Set {
		addFault(&v, "/display_name", domain.CheckName(in.DisplayName.Value, domain.DisplayNameMax))
	}
	if in.Email.Set && in.Email.Value != "" {
		addFault(&v, "/email", domain.CheckEmail(in.Email.Value))
	}
	if in.Title.Set {
		addFault(&v, "/title", domain.CheckOptional(in.Title.Value, domain.TitleMax))
	}
	return v.Err()
}

// UpdateUser changes a person on behalf of an owner. What decides who somebody is or may do,
// that is her address and whether she is a guest, needs a fresh proof of the owner. Whether
// the person is a guest changes what she may see, so such a patch is a change of rights.
func (s *Service) UpdateUser(ctx context.Context, id ids.ID, in UpdateUserInput) (Shown, error) {
	if err := in.validate(); err != nil {
		return Shown{}, err
	}
	var options []txn.Option
	if in.Guest.Set {
		options = append(options, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionUserUpdate), Principals: []ids.ID{id}}))
	}
	var account Account
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		var err error
		account, err = s.updateUser(ctx, id, in)
		return err
	}, options...)
	if err != nil {
		return Shown{}, err
	}
	return administered(account), nil
}

// updateUser is the unit: handle locks first, then the principal.
func (s *Service) updateUser(ctx context.Context, id ids.ID, in UpdateUserInput) (Account, error) {
	if in.Handle.Set {
		if err := s.lockHandles(ctx, in.Handle.Value); err != nil {
			return Account{}, err
		}
	}
	before, err := s.lockedPerson(ctx, id)
	if err != nil {
		return Account{}, err
	}
	if err := s.Authorizer.Authorize(ctx, authorize.ActionUserUpdate, onPrincipal(id)); err != nil {
		return Account{}, err
	}
	if err := checkVersion(before.Version, in.Version); err != nil {
		return Account{}, err
	}
	after, err := s.patchUser(ctx, before, in)
	if err != nil {
		return Account{}, err
	}
	if err := s.storeUser(ctx, before, after); err != nil {
		return Account{}, err
	}
	account, err := s.announceUserByID(ctx, id, userChanges(before, after)...)
	if err != nil {
		return Account{}, err
	}
	return account, s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionUserUpdate), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: id,
		Details: map[string]any{"changed": in.members()},
	})
}

// patchUser gives the person as the patch leaves her, or why it may not be.
func (s *Service) patchUser(ctx context.Context, before Account, in UpdateUserInput) (Account, error) {
	after, person := before, *before.Person
	after.Person = &person
	in.Handle.apply(&after.Handle)
	in.DisplayName.apply(&after.DisplayName)
	in.Title.apply(&person.Title)
	in.Guest.apply(&person.Guest)
	in.Email.apply(&person.Email)
	if person.Email != before.Person.Email {
		person.EmailVerified = false
	}
	in.EmailVerified.apply(&person.EmailVerified)
	identifies := person.Email != before.Person.Email || person.EmailVerified != before.Person.EmailVerified
	switch {
	case before.Owner && actor.From(ctx).Kind == actor.KindApp:
		return Account{}, errs.Forbidden("target_is_owner")
	case before.Status == identity.StatusErased:
		return Account{}, errs.NotFound()
	case person.EmailVerified && person.Email == "":
		return Account{}, errs.Invalid("/email_verified", "mismatch", "Without an address there is nothing to verify.")
	case person.Guest && before.Owner:
		return Account{}, errs.Conflict("guest", "An owner cannot be a guest. Take ownership away first.")
	case identifies || person.Guest != before.Person.Guest:
		return after, s.needStepUp(ctx)
	}
	return after, nil
}

// storeUser writes what differs. The names are written always, because that raises the
// version.
func (s *Service) storeUser(ctx context.Context, before, after Account) error {
	if after.Handle != before.Handle {
		if err := s.claimHandle(ctx, after.Handle, before.ID); err != nil {
			return err
		}
	}
	if after.DisplayName != before.DisplayName {
		if err := s.checkDisplayName(ctx, after.DisplayName, before.ID); err != nil {
			return err
		}
	}
	byItself := actor.From(ctx).ID == before.ID
	names, err := s.rename(before, after.Handle, after.DisplayName, byItself, s.now(ctx))
	if err != nil {
		return err
	}
	if err := s.Store.UpdateNames(ctx, before.ID, names); err != nil {
		return err
	}
	return s.Store.UpdateAdministered(ctx, before.ID, *after.Person)
}

// userChanges names for the event what differs.
func userChanges(before, after Account) []string {
	var list []string
	if after.Handle != before.Handle {
		list = append(list, changeHandle)
	}
	if after.Person.Guest != before.Person.Guest {
		list = append(list, changeGuest)
	}
	a, b := after.Person, before.Person
	other := after.DisplayName != before.DisplayName || a.Email != b.Email || a.EmailVerified != b.EmailVerified || a.Title != b.Title
	if other || len(list) == 0 {
		list = append(list, changeProfile)
	}
	return list
}

// members names for the audit log what the patch held.
func (in UpdateUserInput) members() []string {
	list := []string{}
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"display_name", in.DisplayName.Set}, {"email", in.Email.Set}, {"email_verified", in.EmailVerified.Set},
		{"guest", in.Guest.Set}, {"handle", in.Handle.Set}, {"title", in.Title.Set},
	} {
		if m.set {
			list = append(list, m.name)
		}
	}
	return list
}
