// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// InsertChallenge implements app.Passkeys.
func (s *Store) InsertChallenge(ctx context.Context, c app.Challenge) error {
	return write(ctx).ChallengeInsert(ctx, sqlcgen.ChallengeInsertParams{
		ID: c.ID, Kind: string(c.Kind), FlowID: c.FlowID.Ptr(), SessionID: c.SessionID.Ptr(), PrincipalID: c.PrincipalID.Ptr(),
		Challenge: c.Value[:], ExpiresAt: c.ExpiresAt,
	})
}

// ChallengeByValue implements app.Passkeys.
func (s *Store) ChallengeByValue(ctx context.Context, value domain.Challenge) (app.Challenge, bool, error) {
	r, err := s.read(ctx).ChallengeByValue(ctx, value[:])
	if found, err := absent(err, "find a challenge"); err != nil || !found {
		return app.Challenge{}, false, err
	}
	return app.Challenge{
		ID: r.ID, Kind: app.ChallengeKind(r.Kind), FlowID: ids.Deref(r.FlowID), SessionID: ids.Deref(r.SessionID),
		PrincipalID: ids.Deref(r.PrincipalID), Value: value, ExpiresAt: r.ExpiresAt, Consumed: r.ConsumedAt != nil,
	}, true, nil
}

// ConsumeChallenge implements app.Passkeys.
func (s *Store) ConsumeChallenge(ctx context.Context, id ids.ID, at time.Time) (bool, error) {
	n, err := s.read(ctx).ChallengeConsume(ctx, at, id)
	return n == 1, failed(err, "use up a challenge")
}

// DeleteExpiredChallenges implements app.Passkeys.
func (s *Store) DeleteExpiredChallenges(ctx context.Context, before time.Time, batch int) (int, error) {
	n, err := s.read(ctx).ChallengesDeleteExpired(ctx, before, int32(batch))
	return int(n), failed(err, "delete challenges")
}

// InsertPasskey implements app.Passkeys.
func (s *Store) InsertPasskey(ctx context.Context, p app.Passkey) error {
	return write(ctx, pg.MapError(violated)).PasskeyInsert(ctx, sqlcgen.PasskeyInsertParams{
		ID: p.ID, PrincipalID: p.PrincipalID, CredentialID: p.CredentialID, PublicKey: p.PublicKey, Alg: int32(p.Alg),
		SignCount: p.SignCount, Aaguid: ids.ID(p.AAGUID), Transports: p.Transports, BackupEligible: p.BackupEligible,
		BackedUp: p.BackedUp, Name: p.Name, CreatedAt: p.CreatedAt,
	})
}

// ListPasskeys implements app.Passkeys.
func (s *Store) ListPasskeys(ctx context.Context, principal ids.ID) ([]app.Passkey, error) {
	rows, err := s.read(ctx).PasskeysOfPrincipal(ctx, principal, domain.PasskeyMax)
	if err != nil {
		return nil, fmt.Errorf("list passkeys: %w", err)
	}
	out := make([]app.Passkey, len(rows))
	for i, r := range rows {
		out[i] = passkey(r)
	}
	return out, nil
}

// PasskeyByCredential implements app.Passkeys.
func (s *Store) PasskeyByCredential(ctx context.Context, credentialID []byte) (p app.Passkey, active, found bool, err error) {
	r, err := s.read(ctx).PasskeyByCredential(ctx, credentialID)
	if found, err = absent(err, "find a passkey"); err != nil || !found {
		return app.Passkey{}, false, false, err
	}
	return passkey(sqlcgen.PasskeysOfPrincipalRow{
		ID: r.ID, PrincipalID: r.PrincipalID, CredentialID: r.CredentialID, PublicKey: r.PublicKey, Alg: r.Alg, SignCount: r.SignCount,
		Transports: r.Transports, BackupEligible: r.BackupEligible, BackedUp: r.BackedUp, Name: r.Name, CreatedAt: r.CreatedAt,
		LastUsedAt: r.LastUsedAt,
	}), r.Active, true, nil
}

// UsePasskey implements app.Passkeys.
func (s *Store) UsePasskey(ctx context.Context, before app.Passkey, use domain.PasskeyUse, at time.Time) (bool, error) {
	n, err := s.read(ctx).PasskeyUse(ctx, sqlcgen.PasskeyUseParams{
		ID: before.ID, SignCount: use.SignCount, BeforeCount: before.SignCount, BackedUp: use.BackedUp, At: at,
	})
	return n == 1, failed(err, "note the use of a passkey")
}

// RenamePasskey implements app.Passkeys.
func (s *Store) RenamePasskey(ctx context.Context, principal, id ids.ID, name string) (bool, error) {
	n, err := s.read(ctx).PasskeyRename(ctx, name, id, principal)
	return n == 1, failed(err, "rename a passkey")
}

// RevokePasskey implements app.Passkeys.
func (s *Store) RevokePasskey(ctx context.Context, principal, id ids.ID, at time.Time) (bool, error) {
	n, err := s.read(ctx).PasskeyRevoke(ctx, at, id, principal)
	return n == 1, failed(err, "revoke a passkey")
}

// RevokePasskeysOf implements app.Passkeys.
func (s *Store) RevokePasskeysOf(ctx context.Context, principal ids.ID, at time.Time) error {
	return write(ctx).PasskeysRevoke(ctx, at, principal)
}

func passkey(r sqlcgen.PasskeysOfPrincipalRow) app.Passkey {
	return app.Passkey{
		ID: r.ID, PrincipalID: r.PrincipalID, CredentialID: r.CredentialID, PublicKey: r.PublicKey, Alg: int(r.Alg), SignCount: r.SignCount,
		Transports: r.Transports, BackupEligible: r.BackupEligible, BackedUp: r.BackedUp, Name: r.Name, CreatedAt: r.CreatedAt,
		LastUsedAt: r.LastUsedAt,
	}
}
