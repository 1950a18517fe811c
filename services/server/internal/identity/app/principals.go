// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Create implements identity.PrincipalWrites.
func (s *Service) Create(ctx context.Context, p identity.NewPrincipal) (identity.Principal, error) {
	if p.Kind != actor.KindAgent && p.Kind != actor.KindApp {
		return identity.Principal{}, errs.Internal(errKindNotOurs)
	}
	if err := checkNames(p.Handle, p.DisplayName); err != nil {
		return identity.Principal{}, err
	}
	id := ids.NewAt(s.now(ctx))
	if err := s.lockHandles(ctx, p.Handle); err != nil {
		return identity.Principal{}, err
	}
	if err := s.claimHandle(ctx, p.Handle, id); err != nil {
		return identity.Principal{}, err
	}
	if err := s.checkDisplayName(ctx, p.DisplayName, id); err != nil {
		return identity.Principal{}, err
	}
	err := s.Store.InsertAccount(ctx, NewAccount{
		ID: id, Kind: p.Kind, Handle: p.Handle, DisplayName: p.DisplayName, CreatedBy: p.CreatedBy, CreatedAt: s.now(ctx),
	})
	if err != nil {
		return identity.Principal{}, err
	}
	return identity.Principal{
		ID: id, Kind: p.Kind, Status: identity.StatusActive, Handle: p.Handle, DisplayName: p.DisplayName, Version: 1,
	}, nil
}

// Rename implements identity.PrincipalWrites.
func (s *Service) Rename(ctx context.Context, id ids.ID, handle, displayName string) (identity.Principal, error) {
	if err := checkNames(handle, displayName); err != nil {
		return identity.Principal{}, err
	}
	if err := s.lockHandles(ctx, handle); err != nil {
		return identity.Principal{}, err
	}
	before, err := s.lockedOther(ctx, id)
	if err != nil {
		return identity.Principal{}, err
	}
	if handle != before.Handle {
		if err := s.claimHandle(ctx, handle, id); err != nil {
			return identity.Principal{}, err
		}
	}
	if err := s.checkDisplayName(ctx, displayName, id); err != nil {
		return identity.Principal{}, err
	}
	names, err := s.rename(before, handle, displayName, false, s.now(ctx))
	if err != nil {
		return identity.Principal{}, err
	}
	if err := s.Store.UpdateNames(ctx, id, names); err != nil {
		return identity.Principal{}, err
	}
	after := before.Principal()
	after.Handle, after.DisplayName, after.Version = handle, displayName, before.Version+1
	return after, nil
}

// SetActive implements identity.PrincipalWrites.
func (s *Service) SetActive(ctx context.Context, id ids.ID, active bool, reason string) (identity.Principal, error) {
	before, err := s.lockedOther(ctx, id)
	if err != nil {
		return identity.Principal{}, err
	}
	if before.Principal().Active() == active {
		return before.Principal(), nil
	}
	s.Memory.Forget(id)
	if active {
		err = s.Store.Enable(ctx, id)
	} else {
		if !reasonCode.MatchString(reason) {
			return identity.Principal{}, errs.Invalid("/reason", "invalid_format", "Use a short code in lower case.")
		}
		if err = s.Store.Disable(ctx, id, actor.From(ctx).ID, reason, s.now(ctx)); err == nil {
			err = s.Store.RevokeTokensOf(ctx, id, "user_disabled", s.now(ctx))
		}
	}
	if err != nil {
		return identity.Principal{}, err
	}
	after := before.Principal()
	after.Status, after.Version = statusOf(active), before.Version+1
	return after, nil
}

// lockedOther locks and reads an agent or app; people are not changed through this port.
func (s *Service) lockedOther(ctx context.Context, id ids.ID) (Account, error) {
	found, err := s.Store.LockPrincipal(ctx, id)
	if err != nil {
		return Account{}, err
	}
	if !found {
		return Account{}, errs.NotFound()
	}
	a, err := s.account(ctx, id)
	if err == nil && a.Person != nil {
		return Account{}, errs.Internal(errKindNotOurs)
	}
	return a, err
}

func checkNames(handle, displayName string) error {
	var v errs.Validation
	addFault(&v, "/handle", domain.CheckHandle(handle))
	addFault(&v, "/display_name", domain.CheckName(displayName, domain.DisplayNameMax))
	return v.Err()
}

// LoginOptions implements instance.LoginOptionsSource.
func (s *Service) LoginOptions(ctx context.Context) ([]instance.LoginOption, instance.PasswordPolicy, error) {
	on, err := s.drivers(ctx)
	if err != nil {
		return nil, instance.PasswordPolicy{}, err
	}
	var options []instance.LoginOption
	if on.Passkey {
		options = append(options, instance.LoginOption{Driver: DriverPasskey, Label: "Passkey"})
	}
	if on.Local {
		options = append(options, instance.LoginOption{Driver: DriverLocal, Label: "Password"})
	}
	providers, err := s.providerOptions(ctx)
	return append(options, providers...), instance.PasswordPolicy{MinLength: s.cfg.PasswordMinLength, MaxLength: domain.PasswordMaxLength}, err
}
