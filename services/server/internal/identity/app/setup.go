// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

var (
	// ErrSetupComplete means that the first owner has been enrolled: exit code 3.
	ErrSetupComplete = errors.New("the setup is already complete")
	// ErrSetupNotComplete means that there is no enrolled owner yet: exit code 4.
	ErrSetupNotComplete = errors.New("the setup is not complete yet; run bothy setup bootstrap-owner")
)

// BootstrapInput describes the first owner.
type BootstrapInput struct{ Handle, DisplayName, Email string }

// BootstrapOwner makes or renames the first owner and gives her a code. It may be repeated
// until the code is redeemed; then it fails with ErrSetupComplete. The operator's command
// calls it as the system.
func (s *Service) BootstrapOwner(ctx context.Context, in BootstrapInput) (IssuedCode, error) {
	ctx = actor.With(ctx, actor.System())
	user := CreateUserInput{Handle: in.Handle, DisplayName: in.DisplayName, Email: in.Email}
	if err := s.defaultRegion(ctx, &user); err != nil {
		return IssuedCode{}, err
	}
	if err := user.validate(); err != nil {
		return IssuedCode{}, err
	}
	var code IssuedCode
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		info, err := s.Instance.Info(ctx)
		if err != nil {
			return err
		}
		if info.SetupCompletedAt != nil {
			return ErrSetupComplete
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionInstanceBootstrap, authorize.Instance()); err != nil {
			return err
		}
		code, err = s.bootstrap(ctx, user)
		return err
	}, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionInstanceBootstrap), Everyone: true}))
	return code, err
}

func (s *Service) bootstrap(ctx context.Context, in CreateUserInput) (IssuedCode, error) {
	if _, err := s.Store.LockOwners(ctx); err != nil {
		return IssuedCode{}, err
	}
	owner, change, err := s.firstOwner(ctx, in)
	if err != nil {
		return IssuedCode{}, err
	}
	if err := s.Store.RemoveOtherOwners(ctx, owner); err != nil {
		return IssuedCode{}, err
	}
	if err := s.Store.AddOwner(ctx, owner, ids.ID{}, s.now(ctx)); err != nil {
		return IssuedCode{}, err
	}
	if _, err := s.Grants.CreateEveryone(ctx); err != nil {
		return IssuedCode{}, err
	}
	if err := s.Store.RevokeCodesFor(ctx, domain.PurposeFirstOwner, s.now(ctx)); err != nil {
		return IssuedCode{}, err
	}
	if _, err := s.announceUserByID(ctx, owner, change, changeOwner); err != nil {
		return IssuedCode{}, err
	}
	code, err := s.issueCode(ctx, owner, domain.PurposeFirstOwner)
	if err != nil {
		return IssuedCode{}, err
	}
	return code, s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionInstanceBootstrap), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: owner,
		Details: map[string]any{"handle": in.Handle},
	})
}

// firstOwner finds the person by her handle and updates her, or makes her.
func (s *Service) firstOwner(ctx context.Context, in CreateUserInput) (ids.ID, string, error) {
	if err := s.lockHandles(ctx, in.Handle); err != nil {
		return ids.ID{}, "", err
	}
	id, present, found, err := s.Store.HandleHolder(ctx, in.Handle, s.now(ctx))
	if err != nil {
		return ids.ID{}, "", err
	}
	if !found || !present {
		id = ids.NewAt(s.now(ctx))
		return id, changeCreated, s.insertPerson(ctx, id, in)
	}
	person, err := s.lockedPerson(ctx, id)
	if err != nil {
		return ids.ID{}, "", err
	}
	names := Names{Handle: person.Handle, DisplayName: in.DisplayName, Former: person.FormerHandles, HandleChangedAt: person.HandleChangedAt}
	if err := s.Store.UpdateNames(ctx, id, names); err != nil {
		return ids.ID{}, "", err
	}
	if in.Email == "" || in.Email == person.Person.Email {
		return id, changeProfile, nil
	}
	return id, changeProfile, s.Store.SetEmail(ctx, id, in.Email)
}

// RecoverOwner gives an owner a recovery code and enables her when she is disabled. With
// promote it makes any person an owner, but only while no active owner has a way to sign
// in. Before the setup it fails with ErrSetupNotComplete.
func (s *Service) RecoverOwner(ctx context.Context, handle string, promote bool) (IssuedCode, error) {
	ctx = actor.With(ctx, actor.System())
	id, err := s.personByHandle(ctx, handle)
	if err != nil {
		return IssuedCode{}, err
	}
	var code IssuedCode
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		info, err := s.Instance.Info(ctx)
		if err != nil {
			return err
		}
		if info.SetupCompletedAt == nil {
			return ErrSetupNotComplete
		}
		code, err = s.recoverOwner(ctx, id, promote)
		return err
	}, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionOwnerRecover), Principals: []ids.ID{id}}))
	return code, err
}

// personByHandle finds whom the operator means. Before the setup it finds nobody worth
// naming, so the state of the setup is asked first.
func (s *Service) personByHandle(ctx context.Context, handle string) (ids.ID, error) {
	complete, err := s.Instance.SetupComplete(ctx)
	if err != nil {
		return ids.ID{}, err
	}
	if !complete {
		return ids.ID{}, ErrSetupNotComplete
	}
	list, err := s.Store.AccountsByHandle(ctx, []string{domain.NormalLogin(handle)})
	if err != nil {
		return ids.ID{}, err
	}
	if len(list) == 0 || list[0].Person == nil {
		return ids.ID{}, errs.NotFound()
	}
	return list[0].ID, nil
}

func (s *Service) recoverOwner(ctx context.Context, id ids.ID, promote bool) (IssuedCode, error) {
	if _, err := s.Store.LockOwners(ctx); err != nil {
		return IssuedCode{}, err
	}
	person, err := s.lockedPerson(ctx, id)
	if err != nil {
		return IssuedCode{}, err
	}
	if err := s.Authorizer.Authorize(ctx, authorize.ActionOwnerRecover, onPrincipal(id)); err != nil {
		return IssuedCode{}, err
	}
	if err := s.mayRecover(ctx, person, promote); err != nil {
		return IssuedCode{}, err
	}
	var changes []string
	if person.Status == identity.StatusDisabled {
		changes = append(changes, changeEnabled)
		if err := s.Store.Enable(ctx, id); err != nil {
			return IssuedCode{}, err
		}
	}
	if !person.Owner {
		if err := s.Store.AddOwner(ctx, id, ids.ID{}, s.now(ctx)); err != nil {
			return IssuedCode{}, err
		}
	}
	// Other owners learn of it even when nothing but the code is new.
	if _, err := s.announceUserByID(ctx, id, append(changes, changeOwner)...); err != nil {
		return IssuedCode{}, err
	}
	code, err := s.issueCode(ctx, id, domain.PurposeRecovery)
	if err != nil {
		return IssuedCode{}, err
	}
	return code, s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionOwnerRecover), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: id,
		Details: map[string]any{"handle": person.Handle, "promoted": !person.Owner},
	})
}

func (s *Service) mayRecover(ctx context.Context, person Account, promote bool) error {
	switch {
	case person.Status == identity.StatusErased || person.Person.Guest:
		return errs.Conflict("guest", "This person cannot be an owner.")
	case person.Owner:
		return nil
	case !promote:
		return errs.Conflict("not_owner", "This person is no owner. Use --promote when no owner can sign in.")
	}
	able, err := s.Store.OwnersAbleToLogin(ctx)
	if err != nil {
		return err
	}
	if able {
		return errs.Conflict("owner_exists", "An active owner can sign in; she can make further owners.")
	}
	return nil
}
