// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
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

// BeginStepUp begins a fresh proof by password.
func (s *Service) BeginStepUp(ctx context.Context, method string) (Flow, error) {
	who, err := s.self(ctx, authorize.ActionAuthStepUp)
	if err != nil {
		return Flow{}, err
	}
	if method != methodPassword {
		return Flow{}, errNoStepUpMethod()
	}
	hash, _, err := s.Store.PasswordHash(ctx, who.ID)
	if err != nil {
		return Flow{}, err
	}
	if hash == "" {
		return Flow{}, errNoStepUpMethod()
	}
	session, found, err := s.Store.SessionByID(ctx, who.SessionID)
	if err != nil {
		return Flow{}, err
	}
	if !found || session.Kind != kindLogin {
		return Flow{}, errs.Forbidden("session_limited")
	}
	now := s.now(ctx)
	flow := Flow{
		ID: ids.NewAt(now), Driver: DriverLocal, Purpose: purposeStepUp, PrincipalID: who.ID, SessionID: who.SessionID,
		JKT: session.JKT, State: flowOpen, CreatedAt: now, ExpiresAt: now.Add(s.cfg.LoginFlowTTL),
	}
	return flow, s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.InsertFlow(ctx, flow) })
}

func errNoStepUpMethod() error {
	return errs.Conflict("no_step_up_method", "You have no way to confirm that it is you. Set one up first.")
}

// CompleteStepUp checks the password of the caller and raises the epoch of the session.
func (s *Service) CompleteStepUp(ctx context.Context, flowID ids.ID, password string) (StepUpResult, error) {
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
	return s.raiseEpoch(ctx, flow, c, rehash)
}

func (s *Service) failedStepUp(ctx context.Context, flow Flow, who actor.Actor) error {
	err := s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.CountAttempt(ctx, flow.ID, maxAttempts) })
	if err != nil {
		return err
	}
	return s.refuseLogin(ctx, authorize.ActionAuthStepUp, who.ID, flow.Driver)
}

func (s *Service) raiseEpoch(ctx context.Context, flow Flow, c Candidate, rehash string) (StepUpResult, error) {
	var session Session
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.consume(ctx, flow.ID); err != nil {
			return err
		}
		if err := s.settleCredential(ctx, c, rehash); err != nil {
			return err
		}
		now := s.now(ctx)
		epoch, ok, err := s.Store.StepUp(ctx, flow.SessionID, methodPassword, now)
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
			Action: string(authorize.ActionAuthStepUp), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: c.PrincipalID,
			Details: map[string]any{"method": methodPassword},
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

// SetPassword replaces the caller's password. The fresh proof that the action needs has
// shown the old one. Other sessions end unless the caller keeps them.
func (s *Service) SetPassword(ctx context.Context, password string, endOthers bool) error {
	who, err := s.self(ctx, authorize.ActionLocalCredentialSet)
	if err != nil {
		return err
	}
	account, err := s.person(ctx, who.ID)
	if err != nil {
		return err
	}
	if err := s.checkPassword(ctx, "/password", password, account.Handle, account.Person.Email); err != nil {
		return err
	}
	hash, err := s.Hasher.Hash(ctx, password)
	if err != nil {
		return err
	}
	return s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionLocalCredentialSet, authorize.Self(who.ID)); err != nil {
			return err
		}
		return s.replacePassword(ctx, who, hash, endOthers)
	})
}

func (s *Service) replacePassword(ctx context.Context, who actor.Actor, hash string, endOthers bool) error {
	before, err := s.lockedPerson(ctx, who.ID)
	if err != nil {
		return err
	}
	if before.Status != identity.StatusActive {
		return errs.NotFound()
	}
	if err := s.Store.SetPassword(ctx, who.ID, hash, s.now(ctx)); err != nil {
		return err
	}
	if endOthers {
		why := endBy{reason: "password_changed", by: bySelf}
		err := s.endSessions(ctx, who.ID, why, func(r SessionRef) bool { return r.ID != who.SessionID && r.ParentID != who.SessionID })
		if err != nil {
			return err
		}
	}
	if _, err := s.announceUserByID(ctx, who.ID, changeProfile); err != nil {
		return err
	}
	change := "changed"
	if !before.Person.HasPassword {
		change = "set"
	}
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionLocalCredentialSet), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: who.ID,
		Details: map[string]any{"change": change},
	})
}
