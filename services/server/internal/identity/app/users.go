// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"regexp"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// IssuedCode is an enrollment code, shown once.
type IssuedCode struct {
	Code string
	// URL opens the client with the code filled in.
	URL       string
	ExpiresAt time.Time
}

// CreateUserInput describes a person to be made. Locale and time zone default to the
// instance's.
type CreateUserInput struct {
	Handle, DisplayName string
	Email               string
	Guest               bool
	IssueCode           bool
	Locale, TimeZone    string
}

// CreateUser makes a person, with a code to sign in for the first time when asked.
func (s *Service) CreateUser(ctx context.Context, in CreateUserInput) (Shown, *IssuedCode, error) {
	if err := s.defaultRegion(ctx, &in); err != nil {
		return Shown{}, nil, err
	}
	if err := in.validate(); err != nil {
		return Shown{}, nil, err
	}
	var account Account
	var code *IssuedCode
	id := ids.NewAt(s.now(ctx))
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionUserCreate, authorize.Resource{Kind: authorize.ResourcePrincipal, ID: id}); err != nil {
			return err
		}
		var err error
		account, code, err = s.createUser(ctx, id, in)
		return err
	}, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionUserCreate), Principals: []ids.ID{id}}))
	if err != nil {
		return Shown{}, nil, err
	}
	if code != nil {
		idempotency.ShowsSecret(ctx, account.ID)
	}
	return administered(account), code, nil
}

func (s *Service) defaultRegion(ctx context.Context, in *CreateUserInput) error {
	var err error
	if in.Locale == "" {
		if in.Locale, err = s.Settings.String(ctx, instance.SettingLocale); err != nil {
			return err
		}
	}
	if in.TimeZone == "" {
		in.TimeZone, err = s.Settings.String(ctx, instance.SettingTimeZone)
	}
	return err
}

func (in CreateUserInput) validate() error {
	var v errs.Validation
	addFault(&v, "/handle", domain.CheckHandle(in.Handle))
	addFault(&v, "/display_name", domain.CheckName(in.DisplayName, domain.DisplayNameMax))
	addFault(&v, "/locale", domain.CheckLocale(in.Locale))
	addFault(&v, "/time_zone", domain.CheckTimeZone(in.TimeZone))
	if in.Email != "" {
		addFault(&v, "/email", domain.CheckEmail(in.Email))
	}
	return v.Err()
}

func (s *Service) createUser(ctx context.Context, id ids.ID, in CreateUserInput) (Account, *IssuedCode, error) {
	if err := s.insertPerson(ctx, id, in); err != nil {
		return Account{}, nil, err
	}
	account, err := s.announceUserByID(ctx, id, changeCreated)
	if err != nil {
		return Account{}, nil, err
	}
	var code *IssuedCode
	if in.IssueCode {
		issued, err := s.issueCode(ctx, id, domain.PurposeInvite)
		if err != nil {
			return Account{}, nil, err
		}
		code = &issued
	}
	return account, code, s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionUserCreate), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: id,
		Details: map[string]any{"handle": in.Handle, "guest": in.Guest, "issue_code": in.IssueCode},
	})
}

// insertPerson stores a person behind the checks of handle and name.
func (s *Service) insertPerson(ctx context.Context, id ids.ID, in CreateUserInput) error {
	if err := s.lockHandles(ctx, in.Handle); err != nil {
		return err
	}
	if err := s.claimHandle(ctx, in.Handle, id); err != nil {
		return err
	}
	if err := s.checkDisplayName(ctx, in.DisplayName, id); err != nil {
		return err
	}
	return s.Store.InsertAccount(ctx, NewAccount{
		ID: id, Kind: actor.KindPerson, Handle: in.Handle, DisplayName: in.DisplayName, CreatedBy: actor.From(ctx).ID, CreatedAt: s.now(ctx),
		Email: in.Email, Guest: in.Guest, Locale: in.Locale, TimeZone: in.TimeZone,
	})
}

// issueCode makes the one open code of a person; an older one ends.
func (s *Service) issueCode(ctx context.Context, principal ids.ID, purpose domain.CodePurpose) (IssuedCode, error) {
	now := s.now(ctx)
	ttl := s.cfg.EnrollmentTTL
	if purpose == domain.PurposeRecovery {
		ttl = s.cfg.RecoveryTTL
	}
	if err := s.Store.RevokeCodes(ctx, principal, now); err != nil {
		return IssuedCode{}, err
	}
	text := domain.NewEnrollmentCode()
	hash, err := domain.ParseEnrollmentCode(text)
	if err != nil {
		return IssuedCode{}, err
	}
	code := Code{ID: ids.NewAt(now), PrincipalID: principal}
	code.Purpose, code.ExpiresAt = purpose, now.Add(ttl)
	if err := s.Store.InsertCode(ctx, code, hash, actor.From(ctx).ID, now); err != nil {
		return IssuedCode{}, err
	}
	return IssuedCode{Code: text, URL: s.cfg.origin() + "/#/enroll?code=" + text, ExpiresAt: code.ExpiresAt}, nil
}

// IssueEnrollmentCode gives a person who is no owner a new way in. Who never signed in gets
// an invitation, anybody else a recovery, which ends what proved her before.
func (s *Service) IssueEnrollmentCode(ctx context.Context, id ids.ID) (IssuedCode, error) {
	var code IssuedCode
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		person, err := s.lockedPerson(ctx, id)
		if err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionUserUpdate, onPrincipal(id)); err != nil {
			return err
		}
		if err := s.needStepUp(ctx); err != nil {
			return err
		}
		if person.Owner {
			return errs.Forbidden("target_is_owner")
		}
		if person.Status != identity.StatusActive {
			return errs.Conflict("principal_disabled", "Enable the person first.")
		}
		purpose := domain.PurposeInvite
		if person.Person.HasPassword || person.Person.LastLoginAt != nil {
			purpose = domain.PurposeRecovery
		}
		if code, err = s.issueCode(ctx, id, purpose); err != nil {
			return err
		}
		return s.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionUserUpdate), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: id,
			Details: map[string]any{"enrollment": string(purpose)},
		})
	})
	if err != nil {
		return IssuedCode{}, err
	}
	idempotency.ShowsSecret(ctx, id)
	return code, nil
}

var reasonCode = regexp.MustCompile(`^[a-z0-9][a-z0-9_.:-]{0,63}$`)

// DisableUser ends everything a person could act with, in one change of rights. What she
// wrote and what was granted to her stays.
func (s *Service) DisableUser(ctx context.Context, id ids.ID, version int64, reason string) (Shown, error) {
	if reason == "" {
		reason = "unspecified"
	}
	if !reasonCode.MatchString(reason) || reason == reasonImported {
		return Shown{}, errs.Invalid("/reason", "invalid_format", "Use a short code in lower case.")
	}
	var account Account
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		var err error
		account, err = s.disableUser(ctx, id, version, reason)
		return err
	}, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionUserDisable), Principals: []ids.ID{id}}))
	if err != nil {
		return Shown{}, err
	}
	s.tokensEnded(ctx, id)
	return administered(account), nil
}

func (s *Service) disableUser(ctx context.Context, id ids.ID, version int64, reason string) (Account, error) {
	owners, err := s.Store.LockOwners(ctx)
	if err != nil {
		return Account{}, err
	}
	person, err := s.lockedPerson(ctx, id)
	if err != nil {
		return Account{}, err
	}
	if err := s.Authorizer.Authorize(ctx, authorize.ActionUserDisable, onPrincipal(id)); err != nil {
		return Account{}, err
	}
	if err := s.mayDisable(ctx, person, owners, version); err != nil {
		return Account{}, err
	}
	if person.Owner {
		if err := s.Store.RemoveOwner(ctx, id); err != nil {
			return Account{}, err
		}
	}
	if err := s.Store.Disable(ctx, id, actor.From(ctx).ID, reason, s.now(ctx)); err != nil {
		return Account{}, err
	}
	by := byOwner
	if actor.From(ctx).ID == id {
		by = bySelf
	}
	if err := s.endCredentials(ctx, id, endBy{reason: "user_disabled", by: by}); err != nil {
		return Account{}, err
	}
	account, err := s.announceUserByID(ctx, id, changeDisabled)
	if err != nil {
		return Account{}, err
	}
	return account, s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionUserDisable), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: id,
		Details: map[string]any{"reason": reason},
	})
}

func (s *Service) mayDisable(ctx context.Context, person Account, owners []ids.ID, version int64) error {
	if person.Owner {
		if actor.From(ctx).Kind == actor.KindApp {
			return errs.Forbidden("target_is_owner")
		}
		if err := s.needStepUp(ctx); err != nil {
			return err
		}
	}
	if err := checkVersion(person.Version, version); err != nil {
		return err
	}
	if person.Status != identity.StatusActive {
		return errs.Conflict("not_active", "The person is disabled already.")
	}
	// A row of owners is removed when its person is disabled, so every row is active.
	if person.Owner && len(owners) == 1 {
		return errLastOwner()
	}
	return nil
}

// endCredentials ends whatever a principal could act with, in the order of the locks.
func (s *Service) endCredentials(ctx context.Context, id ids.ID, why endBy) error {
	s.Memory.Forget(id)
	if _, err := s.endDevices(ctx, id, why, everyDevice); err != nil {
		return err
	}
	if err := s.endSessions(ctx, id, why, everySession); err != nil {
		return err
	}
	if err := s.Store.EndPairings(ctx, id); err != nil {
		return err
	}
	if err := s.Store.RevokeTokensOf(ctx, id, why.reason, s.now(ctx)); err != nil {
		return err
	}
	return s.Store.RevokeCodes(ctx, id, s.now(ctx))
}

// EnableUser lets a person act again. Sessions and tokens stay ended.
func (s *Service) EnableUser(ctx context.Context, id ids.ID, version int64) (Shown, error) {
	var account Account
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		person, err := s.lockedPerson(ctx, id)
		if err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionUserEnable, onPrincipal(id)); err != nil {
			return err
		}
		if err := checkVersion(person.Version, version); err != nil {
			return err
		}
		if person.Status != identity.StatusDisabled {
			return errs.Conflict("not_disabled", "The person is not disabled.")
		}
		s.Memory.Forget(id)
		if err := s.Store.Enable(ctx, id); err != nil {
			return err
		}
		if account, err = s.announceUserByID(ctx, id, changeEnabled); err != nil {
			return err
		}
		return s.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionUserEnable), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: id,
		})
	}, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionUserEnable), Principals: []ids.ID{id}}))
	if err != nil {
		return Shown{}, err
	}
	return administered(account), nil
}
