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

// InsertPairing implements app.Pairings.
func (s *Store) InsertPairing(ctx context.Context, p app.Pairing, deviceCode [32]byte) error {
	return write(ctx, pg.MapError(violated)).PairingInsert(ctx, sqlcgen.PairingInsertParams{
		ID: p.ID, ClientKind: p.ClientKind, DeviceCodeHash: deviceCode[:], UserCodeHash: p.UserCodeHash[:], DeviceName: p.Device.Name,
		Platform: p.Device.Platform, Client: p.Device.Client, ClientVersion: p.Device.ClientVersion, Jwk: p.JWK, Jkt: p.JKT[:],
		PollIntervalMs: int32(p.PollInterval.Milliseconds()), IpPseudonym: textPtr(p.Network), CreatedAt: p.CreatedAt, ExpiresAt: p.ExpiresAt,
	})
}

// PairingByDeviceCode implements app.Pairings.
func (s *Store) PairingByDeviceCode(ctx context.Context, hash [32]byte) (app.Pairing, bool, error) {
	r, err := s.read(ctx).PairingByDeviceCode(ctx, hash[:])
	return pairing(sqlcgen.PairingLockRow(r), err, "find a pairing")
}

// PairingByUserCode implements app.Pairings.
func (s *Store) PairingByUserCode(ctx context.Context, hash [32]byte) (app.Pairing, bool, error) {
	r, err := s.read(ctx).PairingByUserCode(ctx, hash[:])
	return pairing(sqlcgen.PairingLockRow(r), err, "find a pairing by its code")
}

// LockPairing implements app.Pairings.
func (s *Store) LockPairing(ctx context.Context, id ids.ID) (app.Pairing, bool, error) {
	r, err := s.read(ctx).PairingLock(ctx, id)
	return pairing(r, err, "lock a pairing")
}

func pairing(r sqlcgen.PairingLockRow, err error, doing string) (app.Pairing, bool, error) {
	if found, err := absent(err, doing); err != nil || !found {
		return app.Pairing{}, false, err
	}
	jkt, err := thumbprint(r.Jkt)
	if err != nil {
		return app.Pairing{}, false, err
	}
	if len(r.UserCodeHash) != len(app.Pairing{}.UserCodeHash) {
		return app.Pairing{}, false, fmt.Errorf("%s: the hash of its code has %d bytes", doing, len(r.UserCodeHash))
	}
	return app.Pairing{
		Pairing: domain.Pairing{
			State: domain.PairingState(r.State), ExpiresAt: r.ExpiresAt, LastPolledAt: timeOr(r.LastPolledAt),
			PollInterval: time.Duration(r.PollIntervalMs) * time.Millisecond,
		},
		ID: r.ID, ClientKind: r.ClientKind, UserCodeHash: [32]byte(r.UserCodeHash), JWK: r.Jwk, JKT: jkt,
		Device:      app.DeviceInfo{Name: r.DeviceName, Platform: r.Platform, Client: r.Client, ClientVersion: r.ClientVersion},
		PrincipalID: ids.Deref(r.PrincipalID), DecidedSessionID: ids.Deref(r.DecidedSessionID), DecidedAt: timeOr(r.DecidedAt),
		Network: textOr(r.IpPseudonym), CreatedAt: r.CreatedAt,
	}, true, nil
}

// NotePoll implements app.Pairings.
func (s *Store) NotePoll(ctx context.Context, id ids.ID, interval time.Duration, at time.Time) error {
	return write(ctx, expectOne("note a question of a device")).PairingPolled(ctx, at, int32(interval.Milliseconds()), id)
}

// DecidePairing implements app.Pairings.
func (s *Store) DecidePairing(ctx context.Context, p app.Pairing) error {
	return write(ctx, expectOne("decide a pairing")).PairingDecide(ctx, sqlcgen.PairingDecideParams{
		ID: p.ID, State: string(p.State), PrincipalID: p.PrincipalID.Ptr(), DecidedSessionID: p.DecidedSessionID.Ptr(),
		DecidedAt: timePtr(p.DecidedAt), ExpiresAt: p.ExpiresAt,
	})
}

// ConsumePairing implements app.Pairings.
func (s *Store) ConsumePairing(ctx context.Context, id ids.ID) error {
	return write(ctx, expectOne("hand out the tokens of a pairing")).PairingConsume(ctx, id)
}

// EndPairings implements app.Pairings.
func (s *Store) EndPairings(ctx context.Context, principal ids.ID) error {
	return write(ctx).PairingsEnd(ctx, principal.Ptr())
}

// DeleteExpiredPairings implements app.Pairings.
func (s *Store) DeleteExpiredPairings(ctx context.Context, before time.Time, batch int) (int, error) {
	n, err := s.read(ctx).PairingsDeleteExpired(ctx, before, int32(batch))
	return int(n), failed(err, "delete pairings")
}
