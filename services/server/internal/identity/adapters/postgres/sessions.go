// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

func kindOf(text string) actor.Kind { return actor.Kind(text) }

// SessionForAuthentication implements app.Sessions.
func (s *Store) SessionForAuthentication(ctx context.Context, id ids.ID) (app.SessionCredential, bool, error) {
	r, err := s.read(ctx).SessionForAuthentication(ctx, id)
	if found, err := absent(err, "read a session"); err != nil || !found {
		return app.SessionCredential{}, false, err
	}
	jkt, err := thumbprint(r.Jkt)
	if err != nil {
		return app.SessionCredential{}, false, err
	}
	return app.SessionCredential{
		Session: app.Session{
			ID: r.ID, PrincipalID: r.PrincipalID, DeviceID: ids.Deref(r.DeviceID), Kind: r.Kind, StepUpAt: timeOr(r.StepUpAt),
			Epoch: int(r.TokenEpoch), JKT: jkt, IdleExpiresAt: r.IdleExpiresAt, ExpiresAt: r.ExpiresAt, Ended: r.EndedAt != nil,
		},
		LastSeenAt: r.LastSeenAt, PrincipalKind: kindOf(r.PrincipalKind), Active: r.Status == string(identity.StatusActive),
		Owner: r.Owner, Guest: r.Guest, DeviceActive: r.DeviceID == nil || r.DeviceState == deviceActive,
		ViewedBy: ids.Deref(r.ViewAsPrincipalID), Bound: r.Bound,
	}, true, nil
}

// InsertSession implements app.Sessions.
func (s *Store) InsertSession(ctx context.Context, n app.Session, stepUpMethod string, at time.Time) error {
	return write(ctx, pg.MapError(violated)).SessionInsert(ctx, sqlcgen.SessionInsertParams{
		ID: n.ID, PrincipalID: n.PrincipalID, DeviceID: n.DeviceID.Ptr(), Kind: n.Kind, Driver: n.Driver, ProviderID: n.ProviderID.Ptr(), Amr: n.AMR, At: at,
		AuthTime: n.AuthTime, StepUpAt: timePtr(n.StepUpAt), StepUpMethod: textPtr(stepUpMethod), Jkt: n.JKT[:],
		IdleExpiresAt: n.IdleExpiresAt, ExpiresAt: n.ExpiresAt,
	})
}

// SessionByID implements app.Sessions.
func (s *Store) SessionByID(ctx context.Context, id ids.ID) (app.Session, bool, error) {
	r, err := s.read(ctx).SessionByID(ctx, id)
	if found, err := absent(err, "read a session"); err != nil || !found {
		return app.Session{}, false, err
	}
	return session(sqlcgen.SessionLockRow(r))
}

// LockSession implements app.Sessions.
func (s *Store) LockSession(ctx context.Context, id ids.ID) (app.Session, bool, error) {
	r, err := s.read(ctx).SessionLock(ctx, id)
	if found, err := absent(err, "lock a session"); err != nil || !found {
		return app.Session{}, false, err
	}
	return session(r)
}

func session(r sqlcgen.SessionLockRow) (app.Session, bool, error) {
	jkt, err := thumbprint(r.Jkt)
	return app.Session{
		ID: r.ID, PrincipalID: r.PrincipalID, DeviceID: ids.Deref(r.DeviceID), ParentID: ids.Deref(r.ParentID),
		Kind: r.Kind, Driver: r.Driver, AMR: r.Amr,
		AuthTime: r.AuthTime, StepUpAt: timeOr(r.StepUpAt), Epoch: int(r.TokenEpoch), JKT: jkt,
		IdleExpiresAt: r.IdleExpiresAt, ExpiresAt: r.ExpiresAt, Ended: r.EndedAt != nil,
	}, err == nil, err
}

// LockLiveSessions implements app.Sessions.
func (s *Store) LockLiveSessions(ctx context.Context, principal ids.ID) ([]app.SessionRef, error) {
	rows, err := s.read(ctx).SessionsLockLive(ctx, principal)
	if err != nil {
		return nil, fmt.Errorf("lock sessions: %w", err)
	}
	out := make([]app.SessionRef, len(rows))
	for i, r := range rows {
		out[i] = app.SessionRef{
			ID: r.ID, PrincipalID: r.PrincipalID, DeviceID: ids.Deref(r.DeviceID), ParentID: ids.Deref(r.ParentID), Kind: r.Kind,
		}
	}
	return out, nil
}

// EndSessions implements app.Sessions.
func (s *Store) EndSessions(ctx context.Context, sessions []ids.ID, reason string, at time.Time) error {
	if err := write(ctx).SessionsEnd(ctx, at, reason, sessions); err != nil {
		return err
	}
	return write(ctx).FamiliesEnd(ctx, reason, sessions)
}

// StepUp implements app.Sessions.
func (s *Store) StepUp(ctx context.Context, id ids.ID, method string, at time.Time) (int, bool, error) {
	epoch, err := s.read(ctx).SessionStepUp(ctx, at, method, id)
	found, err := absent(err, "note a fresh proof")
	return int(epoch), found, err
}

// ConsumeStepUp implements app.Sessions.
func (s *Store) ConsumeStepUp(ctx context.Context, id ids.ID, after time.Time) (bool, error) {
	n, err := s.read(ctx).SessionConsumeStepUp(ctx, id, after)
	return n == 1, failed(err, "take a step-up")
}

// ListSessions implements app.Sessions.
func (s *Store) ListSessions(ctx context.Context, principal, before ids.ID, at time.Time, limit int) ([]app.ListedSession, error) {
	rows, err := s.read(ctx).SessionsOfPrincipal(ctx, sqlcgen.SessionsOfPrincipalParams{
		PrincipalID: principal, At: at, Before: before.Ptr(), LimitRows: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	out := make([]app.ListedSession, len(rows))
	for i, r := range rows {
		out[i] = app.ListedSession{
			ID: r.ID, Kind: r.Kind, Driver: r.Driver, CreatedAt: r.CreatedAt, LastSeenAt: r.LastSeenAt, Network: r.IpPseudonym,
			ViewAsBy: ids.Deref(r.ViewAsPrincipalID),
		}
		if r.DeviceID != nil {
			out[i].Device = &app.Device{
				ID: *r.DeviceID, PrincipalID: principal, DeviceInfo: app.DeviceInfo{Name: r.DeviceName}, State: r.DeviceState,
			}
		}
	}
	return out, nil
}

// NoteUses implements app.Sessions.
func (s *Store) NoteUses(ctx context.Context, uses []app.Use, idle time.Duration) error {
	var sessions, devices, tokens touched
	for _, u := range uses {
		switch {
		case !u.SessionID.IsZero():
			sessions.add(u.SessionID, u)
			if !u.DeviceID.IsZero() {
				devices.add(u.DeviceID, u)
			}
		case !u.TokenID.IsZero():
			tokens.add(u.TokenID, u)
		}
	}
	w := write(ctx)
	var failures []error
	if len(devices.ids) > 0 {
		failures = append(failures, w.DevicesTouch(ctx, devices.ids, devices.seen, devices.networks))
	}
	if len(sessions.ids) > 0 {
		failures = append(failures, w.SessionsTouch(ctx, idle.Seconds(), sessions.ids, sessions.seen))
	}
	if len(tokens.ids) > 0 {
		failures = append(failures, w.TokensTouch(ctx, tokens.ids, tokens.seen, tokens.networks))
	}
	return errors.Join(failures...)
}

// touched are the columns of one statement over several rows, each row once.
type touched struct {
	ids      []ids.ID
	seen     []time.Time
	networks []string
}

func (t *touched) add(id ids.ID, u app.Use) {
	if i := slices.Index(t.ids, id); i >= 0 {
		if u.At.After(t.seen[i]) {
			t.seen[i], t.networks[i] = u.At, u.Network
		}
		return
	}
	t.ids, t.seen, t.networks = append(t.ids, id), append(t.seen, u.At), append(t.networks, u.Network)
}

// InsertFamily implements app.RefreshTokens.
func (s *Store) InsertFamily(ctx context.Context, id, sessionID ids.ID, at time.Time) error {
	return write(ctx).FamilyInsert(ctx, id, sessionID, at)
}

// FamilyByToken implements app.RefreshTokens.
func (s *Store) FamilyByToken(ctx context.Context, hash [32]byte) (app.Family, bool, error) {
	r, err := s.read(ctx).FamilyByToken(ctx, hash[:])
	if found, err := absent(err, "find the family of a refresh token"); err != nil || !found {
		return app.Family{}, false, err
	}
	jkt, err := thumbprint(r.Jkt)
	return app.Family{ID: r.ID, SessionID: r.SessionID, PrincipalID: r.PrincipalID, JKT: jkt}, err == nil, err
}

const familyEnded = "ended"

// LockFamily implements app.RefreshTokens.
func (s *Store) LockFamily(ctx context.Context, id ids.ID) (domain.FamilyState, error) {
	r, err := s.read(ctx).FamilyLock(ctx, id)
	return domain.FamilyState{Current: r.Generation, Ended: r.State == familyEnded}, failed(err, "lock a family of refresh tokens")
}

// FamilyState implements app.RefreshTokens.
func (s *Store) FamilyState(ctx context.Context, id ids.ID) (domain.FamilyState, error) {
	r, err := s.read(ctx).FamilyByID(ctx, id)
	return domain.FamilyState{Current: r.Generation, Ended: r.State == familyEnded}, failed(err, "read a family of refresh tokens")
}

// PresentedToken implements app.RefreshTokens.
func (s *Store) PresentedToken(ctx context.Context, hash [32]byte) (ids.ID, domain.PresentedToken, int64, error) {
	r, err := s.read(ctx).RefreshTokenByHash(ctx, hash[:])
	return r.ID, domain.PresentedToken{
		Generation: r.Generation, ExpiresAt: r.ExpiresAt, UsedAt: timeOr(r.UsedAt), Superseded: r.SupersededAt != nil,
	}, r.LastUsed, failed(err, "read a refresh token")
}

// InsertRefreshToken implements app.RefreshTokens.
func (s *Store) InsertRefreshToken(ctx context.Context, family ids.ID, generation int64, hash [32]byte, at, expires time.Time) error {
	err := write(ctx).RefreshTokenInsert(ctx, sqlcgen.RefreshTokenInsertParams{
		ID: ids.NewAt(at), FamilyID: family, Generation: generation, TokenHash: hash[:], IssuedAt: at, ExpiresAt: expires,
	})
	if err != nil || generation == 1 {
		return err
	}
	return write(ctx, expectOne("advance a family of refresh tokens")).FamilyAdvance(ctx, generation, family)
}

// MarkUsed implements app.RefreshTokens.
func (s *Store) MarkUsed(ctx context.Context, token ids.ID, at time.Time) error {
	return write(ctx, expectOne("mark a refresh token used")).RefreshTokenUse(ctx, at, token)
}

// Supersede implements app.RefreshTokens.
func (s *Store) Supersede(ctx context.Context, family ids.ID, generation int64, at time.Time) error {
	return write(ctx, expectOne("supersede a refresh token")).RefreshTokenSupersede(ctx, at, family, generation)
}
