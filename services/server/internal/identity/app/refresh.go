// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Refresh exchanges a refresh token for the next one and a new access token. Anything that
// is not the token of a living session in the hands of its key is session_ended; a token
// that two parties used ends the session.
func (s *Service) Refresh(ctx context.Context, in ProofInput, refreshToken string) (LoginResult, error) {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionAuthTokenRefresh, authorize.Resource{Kind: authorize.ResourceNone}); err != nil {
		return LoginResult{}, err
	}
	proof, err := s.Proofs.Verify(in.Compact, in.request())
	if err != nil {
		return LoginResult{}, err
	}
	_, hash, err := domain.ParseSecret(refreshToken, domain.SecretRefresh)
	if err != nil {
		return LoginResult{}, errSessionEnded()
	}
	family, found, err := s.Store.FamilyByToken(ctx, hash)
	if err != nil {
		return LoginResult{}, err
	}
	if !found || family.JKT != proof.JKT {
		return LoginResult{}, errSessionEnded()
	}
	return s.exchange(ctx, family, hash, refreshToken)
}

func (s *Service) exchange(ctx context.Context, family Family, hash [32]byte, refreshToken string) (LoginResult, error) {
	var made issued
	var outcome domain.RefreshOutcome
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		ctx = actor.With(ctx, actor.Actor{ID: family.PrincipalID, Kind: actor.KindPerson, SessionID: family.SessionID})
		var err error
		made, outcome, err = s.exchangeInUnit(ctx, family, hash)
		return err
	})
	switch {
	case errs.Is(err, errs.CodeMaintenance):
		return s.renewReadOnly(ctx, family, hash, refreshToken)
	case err != nil:
		return LoginResult{}, err
	case outcome == domain.RefreshReuse, outcome == domain.RefreshEnded:
		return LoginResult{}, errSessionEnded()
	default:
		return s.result(ctx, made, nil)
	}
}

// exchangeInUnit decides and writes. A reuse is no error: ending the family must commit.
func (s *Service) exchangeInUnit(ctx context.Context, family Family, hash [32]byte) (issued, domain.RefreshOutcome, error) {
	now := s.now(ctx)
	active, err := s.Store.SharePrincipal(ctx, family.PrincipalID)
	if err != nil {
		return issued{}, 0, err
	}
	session, found, err := s.Store.LockSession(ctx, family.SessionID)
	if err != nil {
		return issued{}, 0, err
	}
	if !found || !active || !session.Live(now) {
		return issued{}, domain.RefreshEnded, nil
	}
	state, err := s.Store.LockFamily(ctx, family.ID)
	if err != nil {
		return issued{}, 0, err
	}
	tokenID, token, lastUsed, err := s.Store.PresentedToken(ctx, hash)
	if err != nil {
		return issued{}, 0, err
	}
	state.LastUsed = lastUsed
	outcome := domain.DecideRefresh(state, token, now, s.cfg.RefreshReuseGrace)
	switch outcome {
	case domain.RefreshEnded:
		return issued{}, outcome, nil
	case domain.RefreshReuse:
		return issued{}, outcome, s.endForReuse(ctx, session)
	case domain.RefreshRotate:
		err = s.Store.MarkUsed(ctx, tokenID, now)
	case domain.RefreshReissue:
		err = s.Store.Supersede(ctx, family.ID, state.Current, now)
	}
	if err != nil {
		return issued{}, 0, err
	}
	made, err := s.nextGeneration(ctx, family.ID, state.Current+1, session)
	return made, outcome, err
}

// renewReadOnly serves maintenance: an access token, the same refresh token, no write. So
// everybody stays signed in while the instance moves to another machine.
func (s *Service) renewReadOnly(ctx context.Context, family Family, hash [32]byte, refreshToken string) (LoginResult, error) {
	var made issued
	err := s.Units.View(ctx, func(ctx context.Context) error {
		now := s.now(ctx)
		session, found, err := s.Store.SessionByID(ctx, family.SessionID)
		if err != nil {
			return err
		}
		state, err := s.Store.FamilyState(ctx, family.ID)
		if err != nil {
			return err
		}
		_, token, lastUsed, err := s.Store.PresentedToken(ctx, hash)
		if err != nil {
			return err
		}
		state.LastUsed = lastUsed
		outcome := domain.DecideRefresh(state, token, now, s.cfg.RefreshReuseGrace)
		if !found || !session.Live(now) || outcome != domain.RefreshRotate && outcome != domain.RefreshReissue {
			return errSessionEnded()
		}
		device, _, err := s.Store.DeviceByKey(ctx, session.JKT)
		made = issued{session: session, device: device, refresh: refreshToken}
		return err
	})
	if err != nil {
		return LoginResult{}, err
	}
	return s.result(ctx, made, nil)
}

func (s *Service) nextGeneration(ctx context.Context, family ids.ID, generation int64, session Session) (issued, error) {
	now := s.now(ctx)
	secret := domain.NewSecret(domain.SecretRefresh)
	if err := s.Store.InsertRefreshToken(ctx, family, generation, domain.HashSecret(secret), now, session.ExpiresAt); err != nil {
		return issued{}, err
	}
	device, _, err := s.Store.DeviceByKey(ctx, session.JKT)
	if err != nil {
		return issued{}, err
	}
	// The exchange counts as a use of the session, so its idle end moves.
	idle := now.Add(s.cfg.SessionIdleTTL)
	if idle.After(session.ExpiresAt) {
		idle = session.ExpiresAt
	}
	session.IdleExpiresAt = idle
	use := Use{SessionID: session.ID, DeviceID: session.DeviceID, At: now, Network: s.network(ctx)}
	return issued{session: session, device: device, refresh: secret}, s.Store.NoteUses(ctx, []Use{use}, s.cfg.SessionIdleTTL)
}

// endForReuse ends a session whose refresh tokens are in two hands.
func (s *Service) endForReuse(ctx context.Context, session Session) error {
	why := endBy{reason: "token_reuse", by: bySystem}
	if err := s.endSessions(ctx, session.PrincipalID, why, func(r SessionRef) bool { return r.ID == session.ID }); err != nil {
		return err
	}
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionAuthTokenRefresh), Reason: "token_reuse",
		ResourceKind: string(authorize.ResourcePrincipal), ResourceID: session.PrincipalID,
		Details: map[string]any{"reason": "token_reuse"},
	})
}

func errSessionEnded() error {
	return errs.New(errs.CodeUnauthenticated, "The session has ended. Sign in again.").WithReason("session_ended")
}
