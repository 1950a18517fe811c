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

// firstCredential is what a person sets with a code, checked and ready to be stored.
type firstCredential struct {
	how provenBy
	// store runs inside the unit that redeems the code.
	store func(ctx context.Context) error
}

// completeEnrollment redeems a code: the person sets her first credential and is in. A
// credential that is refused costs neither the code nor an attempt.
func (s *Service) completeEnrollment(ctx context.Context, flow Flow, proof domain.Proof, in CompleteLoginInput) (LoginResult, error) {
	code, found, err := s.Store.CodeByID(ctx, flow.EnrollmentCodeID)
	if err != nil {
		return LoginResult{}, err
	}
	if !found || !code.Open(s.now(ctx)) {
		return LoginResult{}, errFlowExpired()
	}
	credential, err := s.firstCredential(ctx, flow, code, in)
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
		made, account, err = s.redeem(ctx, flow, code, credential, key)
		return err
	}, redeemOptions(code)...)
	if err != nil {
		return LoginResult{}, err
	}
	return s.result(ctx, made, &account)
}

// firstCredential checks what the person chose. Hashing and verifying happen here, outside
// the unit.
func (s *Service) firstCredential(ctx context.Context, flow Flow, code Code, in CompleteLoginInput) (firstCredential, error) {
	switch {
	case in.CredentialKind == methodPassword && in.NewPassword != "":
		return s.firstPassword(ctx, code, in.NewPassword)
	case in.CredentialKind == methodPasskey && len(in.NewPasskey) > 0:
		return s.firstPasskey(ctx, flow, code, in)
	default:
		return firstCredential{}, errs.Invalid("/credential", "required", "Set a passkey or a password with this code.")
	}
}

func (s *Service) firstPassword(ctx context.Context, code Code, password string) (firstCredential, error) {
	if err := s.checkPassword(ctx, "/credential/password", password, code.Handle, code.Email); err != nil {
		return firstCredential{}, err
	}
	hash, err := s.Hasher.Hash(ctx, password)
	return firstCredential{how: provenByPassword, store: func(ctx context.Context) error {
		return s.Store.SetPassword(ctx, code.PrincipalID, hash, s.now(ctx))
	}}, err
}

func (s *Service) firstPasskey(ctx context.Context, flow Flow, code Code, in CompleteLoginInput) (firstCredential, error) {
	name := in.PasskeyName
	if name == "" {
		name = flow.Device.Name
	}
	var v errs.Validation
	addFault(&v, "/credential/name", domain.CheckName(name, domain.PasskeyNameMax))
	if err := v.Err(); err != nil {
		return firstCredential{}, err
	}
	challenge, made, err := s.readNewPasskey(ctx, "/credential/passkey", in.NewPasskey, func(c Challenge) bool { return c.FlowID == flow.ID })
	return firstCredential{how: provenByPasskey(made.BackedUp), store: func(ctx context.Context) error {
		_, err := s.addPasskey(ctx, code.PrincipalID, name, challenge, made)
		return err
	}}, err
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
func (s *Service) redeem(ctx context.Context, flow Flow, code Code, credential firstCredential, key []byte) (issued, Account, error) {
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
	if err := credential.store(ctx); err != nil {
		return issued{}, Account{}, err
	}
	made, account, err := s.enter(ctx, flow, code.PrincipalID, key, credential.how)
	if err != nil || code.Purpose != domain.PurposeFirstOwner {
		return made, account, err
	}
	return made, account, s.completeSetup(ctx, code.PrincipalID)
}

// startOver takes away everything that proved the person before a recovery.
func (s *Service) startOver(ctx context.Context, principal ids.ID) error {
	s.Memory.Forget(principal)
	why := endBy{reason: "recovered", by: bySystem}
	if _, err := s.endDevices(ctx, principal, why, everyDevice); err != nil {
		return err
	}
	if err := s.endSessions(ctx, principal, why, everySession); err != nil {
		return err
	}
	if err := s.Store.EndPairings(ctx, principal); err != nil {
		return err
	}
	if err := s.Store.RevokePasskeysOf(ctx, principal, s.now(ctx)); err != nil {
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
