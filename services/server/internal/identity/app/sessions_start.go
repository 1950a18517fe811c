// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
	// Waiting is set, and nothing else, when the device has to be approved first.
	Waiting *WaitingDevice
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
		ID: ids.NewAt(now), PrincipalID: principal, DeviceID: d.ID, Kind: kindLogin, Driver: f.Driver, ProviderID: f.By.ProviderID,
		AMR: how.amr, AuthTime: now, Epoch: 1, JKT: f.JKT,
		IdleExpiresAt: now.Add(s.cfg.SessionIdleTTL), ExpiresAt: now.Add(s.cfg.SessionMaxTTL),
	}
	if !f.ProvedAt.IsZero() {
		session.AuthTime = f.ProvedAt
	}
	if how.method != "" {
		session.StepUpAt = session.AuthTime
	}
	if err := s.Store.InsertSession(ctx, session, how.method, now); err != nil {
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
	if found && known.PrincipalID == principal && known.State == devicePending {
		// The client has lost what it waited with; it waits anew.
		if err := s.endWaiting(ctx, principal, func(d Device) bool { return d.ID == known.ID }); err != nil {
			return Device{}, err
		}
		living = slices.DeleteFunc(living, func(d Device) bool { return d.ID == known.ID })
		found = false
	}
	policy, err := s.approval(ctx)
	if err != nil {
		return Device{}, err
	}
	step := domain.DeviceLogin{
		Enrollment: f.Driver == DriverEnrollment, Driver: f.Driver, AMR: f.AMR, Policy: policy, Living: len(living), Limit: s.cfg.MaxDevices,
	}
	for _, d := range living {
		if d.State == deviceActive {
			step.Active++
		}
	}
	switch {
	case found && known.PrincipalID == principal:
		step.Key = domain.KeyOwn
	case found:
		step.Key = domain.KeyForeign
	}
	outcome, via := domain.DeviceStep(step)
	d := NewDevice{ID: ids.NewAt(now), PrincipalID: principal, Info: f.Device, JWK: key, JKT: f.JKT, Network: s.network(ctx), At: now}
	switch outcome {
	case domain.DeviceForeign:
		return Device{}, errDeviceKeyInUse()
	case domain.DeviceLimit:
		return Device{}, errDeviceLimit()
	case domain.DeviceUse:
		return known, s.Store.IntroduceDevice(ctx, known.ID, f.Device, s.network(ctx), now)
	case domain.DeviceWait:
		if err := s.makeRoom(ctx, principal, living); err != nil {
			return Device{}, err
		}
		d.PendingUntil = now.Add(s.cfg.DevicePendingTTL)
	case domain.DeviceCreate:
		d.ApprovedVia, d.PickedUp = via, true
	}
	return d.device(f), s.Store.InsertDevice(ctx, d)
}

// device is the new device as it is stored, with the flow it waits for.
func (n NewDevice) device(f Flow) Device {
	d := Device{
		ID: n.ID, PrincipalID: n.PrincipalID, DeviceInfo: n.Info, State: deviceActive, ApprovedVia: n.ApprovedVia, LastSeenAt: n.At,
		Network: n.Network, CreatedAt: n.At, Version: 1,
	}
	if n.ApprovedVia == "" {
		d.State, d.PendingUntil, d.FlowID, d.FlowKey = devicePending, n.PendingUntil, f.ID, f.JKT
	}
	return d
}

func errDeviceLimit() error {
	return errs.Conflict("device_limit", "You have too many devices. Remove one you no longer use, then try again.")
}

func errDeviceKeyInUse() error {
	return errs.Conflict("device_key_in_use", "This key belongs to a device of another account. Make a new key for this account.")
}

// result signs the access token of a session, or says that its device waits for approval. It
// runs outside units.
func (s *Service) result(ctx context.Context, i issued, account *Account) (LoginResult, error) {
	if i.device.State == devicePending {
		return LoginResult{Waiting: waiting(i.device)}, nil
	}
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
	if expires.After(session.ExpiresAt) || session.Kind == kindView {
		// A view cannot be refreshed, so its one token lasts as long as it does.
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
