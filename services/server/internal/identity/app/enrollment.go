// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// completeEnrollment redeems a code: the person sets her first credential and is in. A
// password that the policy refuses costs neither the code nor an attempt.
func (s *Service) completeEnrollment(ctx context.Context, flow Flow, proof domain.Proof, in CompleteLoginInput) (LoginResult, error) {
	if in.CredentialKind != methodPassword || in.NewPassword == "" {
		return LoginResult{}, errs.Invalid("/credential", "required", "Set a password with this code.")
	}
	code, found, err := s.Store.CodeByID(ctx, flow.EnrollmentCodeID)
	if err != nil {
		return LoginResult{}, err
	}
	if !found || !code.Open(s.now(ctx)) {
		return LoginResult{}, errFlowExpired()
	}
	if err := s.checkPassword(ctx, "/credential/password", in.NewPassword, code.Handle, code.Email); err != nil {
		return LoginResult{}, err
	}
	hash, err := s.Hasher.Hash(ctx, in.NewPassword)
	if err != nil {
		return LoginResult{}, err
	}
	key, err := jwkOf(proof)
	if err != nil {
		return LoginResult{}, err
	}
	var made issued
	var account Account
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		var err error
		made, account, err = s.redeem(ctx, flow, code, hash, key)
		return err
	}, redeemOptions(code)...)
	if err != nil {
		return LoginResult{}, err
	}
	return s.result(ctx, made, &account)
}

// redeemOptions declares the change of rights that ends the setup: what an empty
// installation starts with is made and opened to everybody in the same unit.
func redeemOptions(code Code) []txn.Option {
	if code.Purpose != domain.PurposeFirstOwner {
		return nil
	}
	return []txn.Option{txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionInstanceBootstrap), Everyone: true})}
}

// redeem is the unit of an enrollment.
func (s *Service) redeem(ctx context.Context, flow Flow, code Code, hash string, key []byte) (issued, Account, error) {
	if err := s.consume(ctx, flow.ID); err != nil {
		return issued{}, Account{}, err
	}
	person, err := s.lockedPerson(ctx, code.PrincipalID)
	if err != nil {
		return issued{}, Account{}, err
	}
	won, err := s.Store.RedeemCode(ctx, code.ID, s.now(ctx))
	if err != nil {
		return issued{}, Account{}, err
	}
	if !won || person.Status != identity.StatusActive {
		return issued{}, Account{}, errFlowExpired()
	}
	ctx = actor.With(ctx, actor.Actor{ID: code.PrincipalID, Kind: actor.KindPerson})
	if code.Purpose == domain.PurposeRecovery {
		if err := s.startOver(ctx, code.PrincipalID); err != nil {
			return issued{}, Account{}, err
		}
	}
	if err := s.Store.SetPassword(ctx, code.PrincipalID, hash, s.now(ctx)); err != nil {
		return issued{}, Account{}, err
	}
	made, account, err := s.enter(ctx, flow, code.PrincipalID, key)
	if err != nil || code.Purpose != domain.PurposeFirstOwner {
		return made, account, err
	}
	return made, account, s.completeSetup(ctx, code.PrincipalID)
}

// startOver takes away everything that proved the person before a recovery.
func (s *Service) startOver(ctx context.Context, principal ids.ID) error {
	s.Memory.Forget(principal)
	why := endBy{reason: "recovered", by: bySystem}
	if err := s.endDevices(ctx, principal, why, everyDevice); err != nil {
		return err
	}
	if err := s.endSessions(ctx, principal, why, everySession); err != nil {
		return err
	}
	return s.Store.DeletePassword(ctx, principal)
}

// completeSetup opens the instance in the transaction in which its first owner arrives.
func (s *Service) completeSetup(ctx context.Context, owner ids.ID) error {
	if err := s.Instance.CompleteSetup(ctx); err != nil {
		return err
	}
	return txn.Publish(ctx, identity.SetupCompleted{OwnerID: owner})
}

// checkPassword asks the policy and answers with a fault at the pointer.
func (s *Service) checkPassword(ctx context.Context, pointer, password, handle, email string) error {
	name, err := s.Settings.String(ctx, instance.SettingName)
	if err != nil {
		return err
	}
	var v errs.Validation
	addFault(&v, pointer, domain.CheckPassword(password, s.cfg.PasswordMinLength, domain.PasswordContext{
		Handle: handle, Email: email, InstanceName: name,
	}))
	return v.Err()
}
