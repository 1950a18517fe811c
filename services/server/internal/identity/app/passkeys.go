// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ListPasskeys gives the caller's passkeys, newest first.
func (s *Service) ListPasskeys(ctx context.Context) ([]Passkey, error) {
	who := actor.From(ctx)
	if err := s.Authorizer.Authorize(ctx, authorize.ActionIdentityRead, onPrincipal(who.ID)); err != nil {
		return nil, err
	}
	return s.Store.ListPasskeys(ctx, who.ID)
}

// BeginPasskey asks the caller's authenticator for a new passkey.
func (s *Service) BeginPasskey(ctx context.Context) (PasskeyRequest, error) {
	who, account, err := s.registering(ctx)
	if err != nil {
		return PasskeyRequest{}, err
	}
	known, err := s.Store.ListPasskeys(ctx, who.ID)
	if err != nil {
		return PasskeyRequest{}, err
	}
	if len(known) >= domain.PasskeyMax {
		return PasskeyRequest{}, errPasskeyLimit()
	}
	request, err := s.newPasskeyRequest(ctx, NewPasskeyFor{PrincipalID: who.ID, Handle: account.Handle, DisplayName: account.DisplayName}, known)
	if err != nil {
		return PasskeyRequest{}, err
	}
	c := s.challengeOf(request, ChallengeRegister)
	c.SessionID, c.PrincipalID = who.SessionID, who.ID
	return request, s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.InsertChallenge(ctx, c) })
}

// RegisterPasskey stores the passkey with which the authenticator answered.
func (s *Service) RegisterPasskey(ctx context.Context, name string, answer json.RawMessage) (Passkey, error) {
	who, _, err := s.registering(ctx)
	if err != nil {
		return Passkey{}, err
	}
	var v errs.Validation
	addFault(&v, "/name", domain.CheckName(name, domain.PasskeyNameMax))
	if err := v.Err(); err != nil {
		return Passkey{}, err
	}
	challenge, made, err := s.readNewPasskey(ctx, "/passkey", answer, func(c Challenge) bool {
		return c.SessionID == who.SessionID && c.PrincipalID == who.ID
	})
	if err != nil {
		return Passkey{}, err
	}
	var passkey Passkey
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if _, err := s.lockedPerson(ctx, who.ID); err != nil {
			return err
		}
		if err := s.mayRegister(ctx, who); err != nil {
			return err
		}
		passkey, err = s.addPasskey(ctx, who.ID, name, challenge, made)
		if err != nil {
			return err
		}
		if _, err := s.announceUserByID(ctx, who.ID, changeProfile); err != nil {
			return err
		}
		return s.auditPasskey(ctx, authorize.ActionPasskeyRegister, who.ID, passkey.ID, "added")
	})
	return passkey, err
}

// registering checks that the caller may add a passkey now.
func (s *Service) registering(ctx context.Context) (actor.Actor, Account, error) {
	who := actor.From(ctx)
	if err := s.mayRegister(ctx, who); err != nil {
		return actor.Actor{}, Account{}, err
	}
	account, err := s.person(ctx, who.ID)
	return who, account, err
}

// mayRegister is the check of passkey.register: the right to act, and a proof of the person
// that is fresh.
func (s *Service) mayRegister(ctx context.Context, who actor.Actor) error {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionPasskeyRegister, authorize.Self(who.ID)); err != nil {
		return err
	}
	return s.needProof(ctx, authorize.ActionPasskeyRegister, who)
}

// needProof asks for a step-up. A person who cannot give one, because she has neither
// passkey nor password yet, may set her first right after a login instead.
func (s *Service) needProof(ctx context.Context, action authorize.Action, who actor.Actor) error {
	missing := s.needStepUp(ctx)
	if missing == nil {
		return nil
	}
	account, err := s.person(ctx, who.ID)
	if err != nil {
		return err
	}
	if p := account.Person; !p.HasPassword && p.Passkeys == 0 {
		session, found, err := s.Store.SessionByID(ctx, who.SessionID)
		if err != nil {
			return err
		}
		if found && s.now(ctx).Before(session.AuthTime.Add(s.cfg.StepUpTTL)) {
			return nil
		}
	}
	s.Audit.Denied(ctx, auditing.Entry{
		Action: string(action), Reason: "step_up_missing", ResourceKind: string(authorize.ResourcePrincipal), ResourceID: who.ID,
	})
	return missing
}

// newPasskeyRequest asks for a passkey of a person on an authenticator that has none of the
// known ones.
func (s *Service) newPasskeyRequest(ctx context.Context, of NewPasskeyFor, known []Passkey) (PasskeyRequest, error) {
	var err error
	if of.InstanceName, err = s.Settings.String(ctx, instance.SettingName); err != nil {
		return PasskeyRequest{}, err
	}
	r := s.passkeyRequest(ctx, known)
	r.New = &of
	return r, nil
}

func (s *Service) passkeyRequest(ctx context.Context, known []Passkey) PasskeyRequest {
	return PasskeyRequest{
		Challenge: domain.NewChallenge(), RelyingPartyID: s.relyingParty, Known: known, ExpiresAt: s.now(ctx).Add(domain.PasskeyTimeout),
	}
}

func (s *Service) challengeOf(r PasskeyRequest, kind ChallengeKind) Challenge {
	return Challenge{ID: ids.New(), Kind: kind, Value: r.Challenge, ExpiresAt: r.ExpiresAt}
}

// liveChallenge finds the challenge an answer was made for. An answer to nothing we asked,
// to something else, or too late, is flow_expired: the client begins again.
func (s *Service) liveChallenge(ctx context.Context, answer json.RawMessage, kind ChallengeKind, fits func(Challenge) bool) (c Challenge, credentialID []byte, err error) {
	value, credentialID, err := s.Ceremonies.Read(answer)
	if err != nil {
		return Challenge{}, nil, err
	}
	c, found, err := s.Store.ChallengeByValue(ctx, value)
	if err != nil {
		return Challenge{}, nil, err
	}
	if !found || c.Kind != kind || c.Consumed || !s.now(ctx).Before(c.ExpiresAt) || !fits(c) {
		return Challenge{}, nil, errFlowExpired()
	}
	return c, credentialID, nil
}

// readNewPasskey verifies the answer to a request for a new passkey.
func (s *Service) readNewPasskey(ctx context.Context, pointer string, answer json.RawMessage, fits func(Challenge) bool) (Challenge, domain.NewPasskey, error) {
	challenge, _, err := s.liveChallenge(ctx, answer, ChallengeRegister, fits)
	if err != nil {
		return Challenge{}, domain.NewPasskey{}, refusedPasskey(pointer, err)
	}
	made, err := s.Ceremonies.Registered(answer, challenge.Value)
	if err == nil {
		err = made.Check()
	}
	return challenge, made, refusedPasskey(pointer, err)
}

// addPasskey uses up the challenge and stores the passkey, inside the unit and behind the
// lock of the person.
func (s *Service) addPasskey(ctx context.Context, principal ids.ID, name string, c Challenge, made domain.NewPasskey) (Passkey, error) {
	if err := s.consumeChallenge(ctx, c); err != nil {
		return Passkey{}, err
	}
	known, err := s.Store.ListPasskeys(ctx, principal)
	if err != nil {
		return Passkey{}, err
	}
	if len(known) >= domain.PasskeyMax {
		return Passkey{}, errPasskeyLimit()
	}
	now := s.now(ctx)
	p := Passkey{
		ID: ids.NewAt(now), PrincipalID: principal, CredentialID: made.CredentialID, PublicKey: made.PublicKey, Alg: made.Alg,
		SignCount: made.SignCount, AAGUID: made.AAGUID, Transports: domain.UsableTransports(made.Transports),
		BackupEligible: made.BackupEligible, BackedUp: made.BackedUp, Name: name, CreatedAt: now,
	}
	return p, s.Store.InsertPasskey(ctx, p)
}

func (s *Service) consumeChallenge(ctx context.Context, c Challenge) error {
	won, err := s.Store.ConsumeChallenge(ctx, c.ID, s.now(ctx))
	if err != nil {
		return err
	}
	if !won {
		return errFlowExpired()
	}
	return nil
}

// RenamePasskey names an own passkey.
func (s *Service) RenamePasskey(ctx context.Context, id ids.ID, name string) (Passkey, error) {
	var v errs.Validation
	addFault(&v, "/name", domain.CheckName(name, domain.PasskeyNameMax))
	if err := v.Err(); err != nil {
		return Passkey{}, err
	}
	var renamed Passkey
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		who := actor.From(ctx)
		if err := s.mayRegister(ctx, who); err != nil {
			return err
		}
		found, err := s.Store.RenamePasskey(ctx, who.ID, id, name)
		if err != nil {
			return err
		}
		if !found {
			return errs.NotFound()
		}
		if renamed, err = s.passkeyOf(ctx, who.ID, id); err != nil {
			return err
		}
		return s.auditPasskey(ctx, authorize.ActionPasskeyRegister, who.ID, id, "renamed")
	})
	return renamed, err
}

// RevokePasskey takes a passkey from a person: the caller, or for owners anybody. Nobody
// takes her own last way in, and no owner is left without one.
func (s *Service) RevokePasskey(ctx context.Context, principal, id ids.ID) error {
	who := actor.From(ctx)
	if principal.IsZero() {
		principal = who.ID
	}
	return s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionPasskeyRevoke, onPrincipal(principal)); err != nil {
			return hidden(err)
		}
		account, err := s.lockedPerson(ctx, principal)
		if err != nil {
			return err
		}
		if _, err := s.passkeyOf(ctx, principal, id); err != nil {
			return err
		}
		left := account.waysIn()
		left.Passkeys--
		if err := s.mayLoseWay(ctx, account, left, who); err != nil {
			return err
		}
		if _, err := s.Store.RevokePasskey(ctx, principal, id, s.now(ctx)); err != nil {
			return err
		}
		if _, err := s.announceUserByID(ctx, principal, changeProfile); err != nil {
			return err
		}
		return s.auditPasskey(ctx, authorize.ActionPasskeyRevoke, principal, id, "")
	})
}

// passkeyOf reads a living passkey of a person; not_found without one.
func (s *Service) passkeyOf(ctx context.Context, principal, id ids.ID) (Passkey, error) {
	list, err := s.Store.ListPasskeys(ctx, principal)
	if err != nil {
		return Passkey{}, err
	}
	for _, p := range list {
		if p.ID == id {
			return p, nil
		}
	}
	return Passkey{}, errs.NotFound()
}

// waysIn are the credentials with which the person can sign in.
func (a Account) waysIn() domain.WaysIn {
	return domain.WaysIn{Password: a.Person.HasPassword, Passkeys: a.Person.Passkeys, Identities: a.Person.Identities}
}

// mayLoseWay refuses a change that leaves too little. The person's row is locked, so two
// removals follow each other.
func (s *Service) mayLoseWay(ctx context.Context, account Account, left domain.WaysIn, who actor.Actor) error {
	on, err := s.drivers(ctx)
	if err != nil {
		return err
	}
	activeOwner := account.Owner && account.Status == identity.StatusActive
	if left.Through(on).MayBecome(account.ID == who.ID, activeOwner) {
		return nil
	}
	return errs.Conflict("no_login_left", "Nobody could sign in to this account any more. Add another way first.")
}

func (s *Service) auditPasskey(ctx context.Context, action authorize.Action, principal, passkey ids.ID, change string) error {
	details := map[string]any{"passkey_id": passkey}
	if change != "" {
		details["change"] = change
	}
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(action), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: principal, Details: details,
	})
}

func errPasskeyLimit() error {
	return errs.Conflict("passkey_limit", "You have as many passkeys as an account can have. Remove one you no longer use.")
}
