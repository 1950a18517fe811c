// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// provenBy is how a person was proved, as her session remembers it.
type provenBy struct {
	method string
	amr    []string
}

var provenByPassword = provenBy{method: methodPassword, amr: []string{amrPassword}}

// provenByPasskey tells a copied key from one that cannot leave its hardware (RFC 8176).
func provenByPasskey(backedUp bool) provenBy {
	key := "hwk"
	if backedUp {
		key = "swk"
	}
	return provenBy{method: methodPasskey, amr: []string{key, "user", "mfa"}}
}

// provenPasskey is a verified use, to be settled in the unit that rests on it.
type provenPasskey struct {
	passkey   Passkey
	use       domain.PasskeyUse
	challenge Challenge
}

func (p provenPasskey) how() provenBy { return provenByPasskey(p.use.BackedUp) }

// beginPasskeyLogin asks for any passkey of this instance. The request is the same whoever
// is meant, so it tells nobody which names exist.
func (s *Service) beginPasskeyLogin(ctx context.Context, begun *BegunLogin) Challenge {
	r := s.passkeyRequest(ctx, nil)
	begun.Passkey = &r
	c := s.challengeOf(r, ChallengeLogin)
	c.FlowID = begun.Flow.ID
	return c
}

// completePasskey ends a login with a passkey. Whatever was wrong with the answer, the
// person or the passkey is login_failed.
func (s *Service) completePasskey(ctx context.Context, flow Flow, proof domain.Proof, answer json.RawMessage) (LoginResult, error) {
	if len(answer) == 0 {
		return LoginResult{}, errs.Invalid("/passkey", "required", "Send what the authenticator answered.")
	}
	proven, active, err := s.provePasskey(ctx, answer, ChallengeLogin, true, func(c Challenge) bool { return c.FlowID == flow.ID })
	if err == nil && !active {
		err = refuseUse("the person may not act")
	}
	if err != nil {
		return LoginResult{}, s.failedPasskey(ctx, flow, authorize.ActionAuthLoginComplete, proven.passkey, err)
	}
	key, err := jwkOf(proof)
	if err != nil {
		return LoginResult{}, err
	}
	var made issued
	var account Account
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.consume(ctx, flow.ID); err != nil {
			return err
		}
		active, err := s.Store.SharePrincipal(ctx, proven.passkey.PrincipalID)
		if err != nil {
			return err
		}
		if !active {
			return errLoginFailed()
		}
		if err := s.settlePasskey(ctx, proven); err != nil {
			return err
		}
		made, account, err = s.enter(ctx, flow, proven.passkey.PrincipalID, key, proven.how())
		return err
	})
	if err != nil {
		return LoginResult{}, err
	}
	return s.result(ctx, made, &account)
}

// provePasskey verifies an answer to a challenge of ours. It writes nothing. The passkey is
// given also on failure, as far as it was found, so that the audit log can name the person.
func (s *Service) provePasskey(ctx context.Context, answer json.RawMessage, kind ChallengeKind, handleNeeded bool, fits func(Challenge) bool) (p provenPasskey, active bool, err error) {
	challenge, credentialID, err := s.liveChallenge(ctx, answer, kind, fits)
	if errs.Is(err, errs.CodeFlowExpired) {
		err = refuseUse("no living challenge of this flow")
	}
	if err != nil {
		return provenPasskey{}, false, err
	}
	passkey, active, found, err := s.Store.PasskeyByCredential(ctx, credentialID)
	if err != nil {
		return provenPasskey{}, false, err
	}
	if !found {
		return provenPasskey{}, false, refuseUse("no such passkey")
	}
	p = provenPasskey{passkey: passkey, challenge: challenge}
	if p.use, err = s.Ceremonies.Used(answer, challenge.Value, passkey.PublicKey); err != nil {
		return p, active, err
	}
	return p, active, passkey.state().CheckUse(p.use, handleNeeded)
}

// settlePasskey uses up challenge and counter, inside the unit. Of two answers with the same
// counter one counts.
func (s *Service) settlePasskey(ctx context.Context, p provenPasskey) error {
	if err := s.consumeChallenge(ctx, p.challenge); err != nil {
		return err
	}
	used, err := s.Store.UsePasskey(ctx, p.passkey, p.use, s.now(ctx))
	if err != nil {
		return err
	}
	if !used {
		return errLoginFailed()
	}
	return nil
}

// failedPasskey counts a wrong answer on the flow and gives the one answer to all of them.
// A counter that stood still is audited by name: somebody may hold a copy of the key.
func (s *Service) failedPasskey(ctx context.Context, flow Flow, action authorize.Action, p Passkey, cause error) error {
	cloned := errors.Is(cause, domain.ErrPasskeyCloned)
	if !cloned && !errors.Is(cause, domain.ErrPasskey) {
		return cause
	}
	err := s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.CountAttempt(ctx, flow.ID, maxAttempts) })
	if err != nil {
		return err
	}
	if cloned {
		s.Audit.Denied(ctx, auditing.Entry{
			Action: string(action), Reason: "passkey_clone_suspected", ResourceKind: string(authorize.ResourcePrincipal), ResourceID: p.PrincipalID,
		})
	}
	s.Log.DebugContext(ctx, "a passkey was refused", "cause", cause)
	return s.refuseLogin(ctx, action, p.PrincipalID, flow.Driver)
}

// refusedPasskey turns a bad answer into a fault of the request; other errors stay.
func refusedPasskey(pointer string, err error) error {
	if errors.Is(err, domain.ErrPasskey) {
		return errs.Invalid(pointer, "refused", "This passkey cannot be used here. Try again, or take another authenticator.")
	}
	return err
}

func refuseUse(why string) error { return errors.Join(domain.ErrPasskey, errors.New(why)) }
