// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const (
	kindLogin      = "login"
	methodPassword = "password"
	methodPasskey  = "passkey"
	amrPassword    = "pwd"
)

// LoginResult is what a completed login or refresh gives the client.
type LoginResult struct {
	AccessToken      string
	ExpiresIn        time.Duration
	RefreshToken     string
	RefreshExpiresAt time.Time
	Session          Session
	Device           Device
	// Account is nil after a refresh.
	Account            *Account
	StepUpUntil        time.Time
	MustChangePassword bool
}

// issued is a session as its unit leaves it; the access token is signed afterwards.
type issued struct {
	session Session
	device  Device
	refresh string
}

// startSession makes the session of a login with its first refresh token, inside the unit.
// A session that the device still has ends as replaced.
func (s *Service) startSession(ctx context.Context, f Flow, principal ids.ID, d Device, how provenBy) (issued, error) {
	now := s.now(ctx)
	if err := s.endSessions(ctx, principal, endBy{reason: "replaced", by: bySystem}, func(r SessionRef) bool { return r.DeviceID == d.ID }); err != nil {
		return issued{}, err
	}
	session := Session{
		ID: ids.NewAt(now), PrincipalID: principal, DeviceID: d.ID, Kind: kindLogin, Driver: f.Driver,
		AMR: how.amr, AuthTime: now, StepUpAt: now, Epoch: 1, JKT: f.JKT,
		IdleExpiresAt: now.Add(s.cfg.SessionIdleTTL), ExpiresAt: now.Add(s.cfg.SessionMaxTTL),
	}
	if err := s.Store.InsertSession(ctx, session, how.method); err != nil {
		return issued{}, err
	}
	family := ids.NewAt(now)
	if err := s.Store.InsertFamily(ctx, family, session.ID, now); err != nil {
		return issued{}, err
	}
	secret := domain.NewSecret(domain.SecretRefresh)
	if err := s.Store.InsertRefreshToken(ctx, family, 1, domain.HashSecret(secret), now, session.ExpiresAt); err != nil {
		return issued{}, err
	}
	return issued{session: session, device: d, refresh: secret}, nil
}

// loginDevice finds or makes the device of the proof key, inside the unit.
func (s *Service) loginDevice(ctx context.Context, f Flow, principal ids.ID, key []byte) (Device, error) {
	now := s.now(ctx)
	known, found, err := s.Store.DeviceByKey(ctx, f.JKT)
	if err != nil {
		return Device{}, err
	}
	living, err := s.Store.LockDevices(ctx, principal)
	if err != nil {
		return Device{}, err
	}
	owns := domain.KeyUnknown
	switch {
	case found && known.PrincipalID == principal:
		owns = domain.KeyOwn
	case found:
		owns = domain.KeyForeign
	}
	outcome, via := domain.DeviceStep(owns, f.Driver == DriverEnrollment, len(living), s.cfg.MaxDevices)
	switch outcome {
	case domain.DeviceForeign:
		return Device{}, errDeviceKeyInUse()
	case domain.DeviceLimit:
		return Device{}, errs.Conflict("device_limit", "You have too many devices. Remove one you no longer use, then sign in again.")
	case domain.DeviceUse:
		return known, s.Store.IntroduceDevice(ctx, known.ID, f.Device, s.network(ctx), now)
	}
	d := NewDevice{
		ID: ids.NewAt(now), PrincipalID: principal, Info: f.Device, ApprovedVia: via, JWK: key, JKT: f.JKT,
		Network: s.network(ctx), At: now,
	}
	return Device{ID: d.ID, PrincipalID: principal, Name: d.Info.Name, State: "active"}, s.Store.InsertDevice(ctx, d)
}

func errDeviceKeyInUse() error {
	return errs.Conflict("device_key_in_use", "This key belongs to a device of another account. Make a new key for this account.")
}

// result signs the access token of a session. It runs outside units.
func (s *Service) result(ctx context.Context, i issued, account *Account) (LoginResult, error) {
	now := s.Clock.Now()
	token, err := s.accessToken(ctx, i.session, now)
	if err != nil {
		return LoginResult{}, err
	}
	r := LoginResult{
		AccessToken: token, ExpiresIn: s.cfg.AccessTokenTTL, RefreshToken: i.refresh, RefreshExpiresAt: i.session.ExpiresAt,
		Session: i.session, Device: i.device, Account: account,
	}
	if until := i.session.StepUpAt.Add(s.cfg.StepUpTTL); !i.session.StepUpAt.IsZero() && now.Before(until) {
		r.StepUpUntil = until
	}
	return r, nil
}

// accessToken signs what the session is; the token never outlives the session.
func (s *Service) accessToken(ctx context.Context, session Session, now time.Time) (string, error) {
	expires := now.Add(s.cfg.AccessTokenTTL)
	if expires.After(session.ExpiresAt) {
		expires = session.ExpiresAt
	}
	payload, err := domain.AccessClaims{
		Issuer: s.cfg.origin(), PrincipalID: session.PrincipalID, SessionID: session.ID, DeviceID: session.DeviceID,
		SessionKind: session.Kind, IssuedAt: now, ExpiresAt: expires, TokenID: ids.NewAt(now),
		AuthTime: session.AuthTime, AMR: session.AMR, Epoch: session.Epoch, JKT: session.JKT,
	}.Encode()
	if err != nil {
		return "", err
	}
	token, err := s.Keys.Sign(ctx, instance.PurposeAccess, payload)
	if err != nil {
		return "", fmt.Errorf("sign the access token: %w", err)
	}
	return token, nil
}

// jwkOf is the public key of a proof as it is stored.
func jwkOf(p domain.Proof) ([]byte, error) {
	key := p.Key
	key.D = ""
	raw, err := json.Marshal(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key of a device: %w", err)
	}
	return raw, nil
}
