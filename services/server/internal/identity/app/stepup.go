// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// StepUpResult is a fresh proof of the person. Access tokens from before it have ended.
type StepUpResult struct {
	AccessToken string
	ExpiresIn   time.Duration
	StepUpUntil time.Time
}

// BegunStepUp is a step-up to be completed in the session that began it.
type BegunStepUp struct {
	Flow Flow
	// Passkey is what to ask the authenticator; nil for a password.
	Passkey *PasskeyRequest
}

// BeginStepUp begins a fresh proof by passkey or password.
func (s *Service) BeginStepUp(ctx context.Context, method string) (BegunStepUp, error) {
	who, err := s.self(ctx, authorize.ActionAuthStepUp)
	if err != nil {
		return BegunStepUp{}, err
	}
	session, found, err := s.Store.SessionByID(ctx, who.SessionID)
	if err != nil {
		return BegunStepUp{}, err
	}
	if !found || session.Kind != kindLogin {
		return BegunStepUp{}, errs.Forbidden("session_limited")
	}
	now := s.now(ctx)
	begun := BegunStepUp{Flow: Flow{
		ID: ids.NewAt(now), Driver: DriverLocal, Purpose: purposeStepUp, PrincipalID: who.ID, SessionID: who.SessionID,
		JKT: session.JKT, State: flowOpen, CreatedAt: now, ExpiresAt: now.Add(s.cfg.LoginFlowTTL),
	}}
	if method == methodPasskey {
		return s.beginPasskeyStepUp(ctx, begun)
	}
	hash, _, err := s.Store.PasswordHash(ctx, who.ID)
	if err != nil {
		return BegunStepUp{}, err
	}
	if hash == "" {
		return BegunStepUp{}, errNoStepUpMethod()
	}
	return begun, s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.InsertFlow(ctx, begun.Flow) })
}

// beginPasskeyStepUp asks for one of the caller's passkeys: who she is, is known.
func (s *Service) beginPasskeyStepUp(ctx context.Context, begun BegunStepUp) (BegunStepUp, error) {
	known, err := s.Store.ListPasskeys(ctx, begun.Flow.PrincipalID)
	if err != nil {
		return BegunStepUp{}, err
	}
	if len(known) == 0 {
		return BegunStepUp{}, errNoStepUpMethod()
	}
	request := s.passkeyRequest(ctx, known)
	begun.Flow.Driver, begun.Passkey = DriverPasskey, &request
	c := s.challengeOf(request, ChallengeStepUp)
	c.FlowID, c.SessionID, c.PrincipalID = begun.Flow.ID, begun.Flow.SessionID, begun.Flow.PrincipalID
	return begun, s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Store.InsertFlow(ctx, begun.Flow); err != nil {
			return err
		}
		return s.Store.InsertChallenge(ctx, c)
	})
}

func errNoStepUpMethod() error {
	return errs.Conflict("no_step_up_method", "You have no way to confirm that it is you. Set one up first.")
}

// StepUpProof is what the method of a step-up asks for.
type StepUpProof struct {
	Password string
	// Passkey is the answer of an authenticator.
	Passkey json.RawMessage
}

// CompleteStepUp checks the proof of the caller and raises the epoch of the session.
func (s *Service) CompleteStepUp(ctx context.Context, flowID ids.ID, proof StepUpProof) (StepUpResult, error) {
	who, err := s.self(ctx, authorize.ActionAuthStepUp)
	if err != nil {
		return StepUpResult{}, err
	}
	flow, err := s.openFlow(ctx, flowID, purposeStepUp)
	if err != nil {
		return StepUpResult{}, err
	}
	if flow.SessionID != who.SessionID || flow.PrincipalID != who.ID {
		return StepUpResult{}, errFlowExpired()
	}
	if flow.Driver == DriverPasskey {
		return s.completePasskeyStepUp(ctx, flow, proof.Passkey)
	}
	return s.completePasswordStepUp(ctx, flow, who, proof.Password)
}

func (s *Service) completePasskeyStepUp(ctx context.Context, flow Flow, answer json.RawMessage) (StepUpResult, error) {
	if len(answer) == 0 {
		return StepUpResult{}, errs.Invalid("/passkey", "required", "Send what the authenticator answered.")
	}
	proven, active, err := s.provePasskey(ctx, answer, ChallengeStepUp, false, func(c Challenge) bool { return c.FlowID == flow.ID })
	if err == nil && (!active || proven.passkey.PrincipalID != flow.PrincipalID) {
		err = refuseUse("the passkey is another person's")
	}
	if err != nil {
		return StepUpResult{}, s.failedPasskey(ctx, flow, authorize.ActionAuthStepUp, proven.passkey, err)
	}
	return s.raiseEpoch(ctx, flow, methodPasskey, func(ctx context.Context) error { return s.settlePasskey(ctx, proven) })
}

func (s *Service) completePasswordStepUp(ctx context.Context, flow Flow, who actor.Actor, password string) (StepUpResult, error) {
	if password == "" {
		return StepUpResult{}, errs.Invalid("/password", "required", "Enter your password.")
	}
	hash, failures, err := s.Store.PasswordHash(ctx, who.ID)
	if err != nil {
		return StepUpResult{}, err
	}
	// The session proves a device the account knows, so the lock of unknown devices does
	// not count; the bucket of this device does.
	c := Candidate{PrincipalID: who.ID, Active: true, PasswordHash: hash, Failures: failures, KnownDevice: true}
	if err := s.throttleName(who.ID.String(), flow.JKT, true); err != nil {
		return StepUpResult{}, err
	}
	fits, rehash, err := s.provePassword(ctx, c, password)
	if err != nil {
		return StepUpResult{}, err
	}
	if !fits {
		return StepUpResult{}, s.failedStepUp(ctx, flow, who)
	}
	return s.raiseEpoch(ctx, flow, methodPassword, func(ctx context.Context) error { return s.settleCredential(ctx, c, rehash) })
}

func (s *Service) failedStepUp(ctx context.Context, flow Flow, who actor.Actor) error {
	err := s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.CountAttempt(ctx, flow.ID, maxAttempts) })
	if err != nil {
		return err
	}
	return s.refuseLogin(ctx, authorize.ActionAuthStepUp, who.ID, flow.Driver)
}

// raiseEpoch is the unit of a step-up; settle writes what the proof leaves behind.
func (s *Service) raiseEpoch(ctx context.Context, flow Flow, method string, settle func(context.Context) error) (StepUpResult, error) {
	var session Session
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.consume(ctx, flow.ID); err != nil {
			return err
		}
		if err := settle(ctx); err != nil {
			return err
		}
		now := s.now(ctx)
		epoch, ok, err := s.Store.StepUp(ctx, flow.SessionID, method, now)
		if err != nil {
			return err
		}
		if !ok {
			return errSessionEnded()
		}
		session, _, err = s.Store.SessionByID(ctx, flow.SessionID)
		if err != nil {
			return err
		}
		session.Epoch = epoch
		return s.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionAuthStepUp), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: flow.PrincipalID,
			Details: map[string]any{"method": method},
		})
	})
	if err != nil {
		return StepUpResult{}, err
	}
	token, err := s.accessToken(ctx, session, s.Clock.Now())
	if err != nil {
		return StepUpResult{}, err
	}
	return StepUpResult{AccessToken: token, ExpiresIn: s.cfg.AccessTokenTTL, StepUpUntil: session.StepUpAt.Add(s.cfg.StepUpTTL)}, nil
}

// ConsumeStepUp implements identity.StepUps.
func (s *Service) ConsumeStepUp(ctx context.Context) error {
	who := actor.From(ctx)
	if !who.IsSession() {
		return errStepUpRequired()
	}
	taken, err := s.Store.ConsumeStepUp(ctx, who.SessionID, s.now(ctx).Add(-s.cfg.StepUpTTL))
	if err != nil {
		return err
	}
	if !taken {
		return errStepUpRequired()
	}
	return nil
}
