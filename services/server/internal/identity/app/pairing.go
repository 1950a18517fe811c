// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// DriverPairing is the driver of sessions that were let in from another device.
const DriverPairing = "pairing"

// amrPairing is how a paired device is proven: by its key (RFC 8176).
const amrPairing = "pop"

// The kinds of clients that ask to be paired.
const (
	PairingDevice = "device"
	PairingCLI    = "cli"
)

// clientCLI is the client of a command line.
const clientCLI = "cli"

// Pairing is a stored request to be let in.
type Pairing struct {
	domain.Pairing
	ID           ids.ID
	ClientKind   string
	Device       DeviceInfo
	UserCodeHash [32]byte
	JWK          []byte
	JKT          domain.Thumbprint
	// PrincipalID and the rest are set once somebody has decided.
	PrincipalID, DecidedSessionID ids.ID
	DecidedAt                     time.Time
	Network                       string
	CreatedAt                     time.Time
}

// BegunPairing is what the device that asks gets. Both codes are shown once.
type BegunPairing struct {
	DeviceCode, UserCode string
	// Address is where the code is typed; AddressWithCode fills it in.
	Address, AddressWithCode string
	ExpiresAt                time.Time
	Interval                 time.Duration
}

// BeginPairingInput asks to be let in.
type BeginPairingInput struct {
	Proof      ProofInput
	ClientKind string
	Device     DeviceInfo
}

func (in BeginPairingInput) validate() error {
	var v errs.Validation
	in.Device.validate(&v)
	if in.ClientKind != PairingDevice && in.ClientKind != PairingCLI {
		v.Add("/client_kind", "unknown", "This is no known kind of client.")
	}
	if (in.ClientKind == PairingCLI) != (in.Device.Client == clientCLI) {
		v.Add("/device/client", "mismatch", "The kind cli goes with the client cli, and only with it.")
	}
	return v.Err()
}

// BeginPairing makes a pairing that is bound to the key of the proof.
func (s *Service) BeginPairing(ctx context.Context, in BeginPairingInput) (BegunPairing, error) {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionAuthLoginBegin, authorize.Resource{Kind: authorize.ResourceNone}); err != nil {
		return BegunPairing{}, err
	}
	if err := in.validate(); err != nil {
		return BegunPairing{}, err
	}
	proof, err := s.Proofs.Verify(in.Proof.Compact, in.Proof.request())
	if err != nil {
		return BegunPairing{}, err
	}
	done, err := s.Instance.SetupComplete(ctx)
	if err != nil {
		return BegunPairing{}, err
	}
	if !done {
		return BegunPairing{}, errs.New(errs.CodeSetupRequired, "This instance has no owner yet. Finish its setup first.")
	}
	key, err := jwkOf(proof)
	if err != nil {
		return BegunPairing{}, err
	}
	now := s.now(ctx)
	device, user := domain.NewSecret(domain.SecretPairing), domain.NewUserCode()
	p := Pairing{
		Pairing: domain.Pairing{State: domain.PairingPending, ExpiresAt: now.Add(s.cfg.PairingTTL), PollInterval: domain.PollInterval},
		ID:      ids.NewAt(now), ClientKind: in.ClientKind, Device: in.Device, UserCodeHash: user.Hash(s.userCodeKey), JWK: key, JKT: proof.JKT,
		Network: s.network(ctx), CreatedAt: now,
	}
	err = s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.InsertPairing(ctx, p, domain.HashSecret(device)) })
	address := s.cfg.origin() + "/#/pair"
	return BegunPairing{
		DeviceCode: device, UserCode: user.Shown(), Address: address, AddressWithCode: address + "?code=" + user.Shown(),
		ExpiresAt: p.ExpiresAt, Interval: p.PollInterval,
	}, err
}

// PolledPairing is the answer to the device that asks: a session, or to wait.
type PolledPairing struct {
	// Result is nil while nobody has decided.
	Result   *LoginResult
	Interval time.Duration
}

// PollPairing gives the device its session once somebody has let it in. Tokens come once, and
// only to the key that began; whoever shows another key learns nothing.
func (s *Service) PollPairing(ctx context.Context, in ProofInput, deviceCode string) (PolledPairing, error) {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionAuthLoginComplete, authorize.Resource{Kind: authorize.ResourceNone}); err != nil {
		return PolledPairing{}, err
	}
	proof, err := s.Proofs.Verify(in.Compact, in.request())
	if err != nil {
		return PolledPairing{}, err
	}
	_, hash, err := domain.ParseSecret(deviceCode, domain.SecretPairing)
	if err != nil {
		return PolledPairing{}, errFlowExpired()
	}
	p, found, err := s.Store.PairingByDeviceCode(ctx, hash)
	if err != nil {
		return PolledPairing{}, err
	}
	if !found || p.JKT != proof.JKT {
		return PolledPairing{}, errFlowExpired()
	}
	var outcome domain.PollOutcome
	var interval time.Duration
	var made issued
	var account Account
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		var err error
		if outcome, interval, err = s.poll(ctx, p); err != nil || outcome != domain.PollReady {
			return err
		}
		made, account, err = s.collectPairing(ctx, p)
		return err
	})
	switch {
	case err != nil:
		return PolledPairing{}, err
	case outcome == domain.PollPending:
		return PolledPairing{Interval: interval}, nil
	case outcome == domain.PollSlowDown:
		return PolledPairing{}, errs.New(errs.CodeRateLimited, "Asked too early. Wait longer between two questions.").WithRetryAfter(interval)
	case outcome == domain.PollDenied:
		return PolledPairing{}, errs.Forbidden("pairing_denied")
	case outcome == domain.PollOver:
		return PolledPairing{}, errFlowExpired()
	}
	result, err := s.result(ctx, made, &account)
	return PolledPairing{Result: &result}, err
}

// poll answers a question behind the lock of the pairing and notes it. What it notes must
// commit, so a question that came too early is no error here.
func (s *Service) poll(ctx context.Context, seen Pairing) (domain.PollOutcome, time.Duration, error) {
	// The person comes before the pairing in the order of locks.
	known := seen.State == domain.PairingApproved
	if known {
		if _, err := s.Store.SharePrincipal(ctx, seen.PrincipalID); err != nil {
			return domain.PollOver, 0, err
		}
	}
	p, found, err := s.Store.LockPairing(ctx, seen.ID)
	if err != nil || !found {
		return domain.PollOver, 0, err
	}
	outcome, interval := p.Poll(s.now(ctx))
	if outcome == domain.PollReady && !known {
		outcome = domain.PollPending // Approved in this very moment: the next question collects it.
	}
	switch outcome {
	case domain.PollPending, domain.PollSlowDown:
		err = s.Store.NotePoll(ctx, p.ID, interval, s.now(ctx))
	case domain.PollReady:
		err = s.Store.ConsumePairing(ctx, p.ID)
	}
	return outcome, interval, err
}

// collectPairing starts the session of a device that was let in.
func (s *Service) collectPairing(ctx context.Context, p Pairing) (issued, Account, error) {
	device, found, err := s.Store.DeviceByKey(ctx, p.JKT)
	if err != nil {
		return issued{}, Account{}, err
	}
	if !found || device.PrincipalID != p.PrincipalID {
		return issued{}, Account{}, errFlowExpired()
	}
	flow := Flow{Driver: DriverPairing, AMR: []string{amrPairing}, ProvedAt: p.DecidedAt, JKT: p.JKT, Device: p.Device}
	return s.admit(ctx, flow, device)
}

// PairingView is who asks to be let in, as the person who decides sees it.
type PairingView struct {
	Pairing
	SameNetwork bool
}

// ResolvePairing finds the pairing of a typed code. Wrong codes are counted.
func (s *Service) ResolvePairing(ctx context.Context, text string) (PairingView, error) {
	who, err := s.self(ctx, authorize.ActionDeviceApprove)
	if err != nil {
		return PairingView{}, err
	}
	if err := s.guesses.allow(who.ID); err != nil {
		return PairingView{}, err
	}
	code, err := domain.ParseUserCode(text)
	if err != nil {
		s.guesses.count(who.ID)
		return PairingView{}, errs.NotFound()
	}
	p, found, err := s.Store.PairingByUserCode(ctx, code.Hash(s.userCodeKey))
	if err != nil {
		return PairingView{}, err
	}
	if !found || !p.Open(s.now(ctx)) {
		s.guesses.count(who.ID)
		return PairingView{}, errs.NotFound()
	}
	here := s.network(ctx)
	return PairingView{Pairing: p, SameNetwork: here != "" && here == p.Network}, nil
}

// DecidePairing lets the device of a pairing in as one of the caller's, or refuses it. The code
// is asked again, so that nobody decides about what she has not seen. Of two decisions the
// first counts; the same one again, of the same session, is its repetition.
func (s *Service) DecidePairing(ctx context.Context, id ids.ID, text string, approve bool) error {
	who, err := s.self(ctx, authorize.ActionDeviceApprove)
	if err != nil {
		return err
	}
	if err := s.guesses.allow(who.ID); err != nil {
		return err
	}
	guessed := false
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionDeviceApprove, authorize.Self(who.ID)); err != nil {
			return err
		}
		if err := s.needStepUp(ctx); err != nil {
			return err
		}
		if _, err := s.Store.SharePrincipal(ctx, who.ID); err != nil {
			return err
		}
		p, found, err := s.Store.LockPairing(ctx, id)
		if err != nil {
			return err
		}
		if guessed = !found || !s.isCodeOf(p, text); guessed {
			return errs.NotFound()
		}
		return s.decidePairing(ctx, p, who.ID, who.SessionID, approve)
	})
	if guessed {
		s.guesses.count(who.ID)
	}
	return err
}

func (s *Service) isCodeOf(p Pairing, text string) bool {
	code, err := domain.ParseUserCode(text)
	if err != nil {
		return false
	}
	hash := code.Hash(s.userCodeKey)
	return subtle.ConstantTimeCompare(hash[:], p.UserCodeHash[:]) == 1
}

func (s *Service) decidePairing(ctx context.Context, p Pairing, person, session ids.ID, approve bool) error {
	now := s.now(ctx)
	switch {
	case p.decidedSame(session, approve):
		return nil
	case p.State == domain.PairingExpired, p.State == domain.PairingPending && !p.Open(now):
		return errFlowExpired()
	case p.State != domain.PairingPending:
		return errs.Conflict("already_decided", "Somebody has decided about this already.")
	}
	p.State, p.PrincipalID, p.DecidedSessionID, p.DecidedAt = domain.PairingDenied, person, session, now
	details := map[string]any{"pairing_id": p.ID, "decision": decisionDeny}
	if approve {
		device, err := s.pairDevice(ctx, p)
		if err != nil {
			return err
		}
		// The device has the whole time again to come for its tokens.
		p.State, p.ExpiresAt = domain.PairingApproved, now.Add(s.cfg.PairingTTL)
		details["decision"], details["device_id"] = decisionApprove, device
	}
	if err := s.Store.DecidePairing(ctx, p); err != nil {
		return err
	}
	return s.auditDevice(ctx, authorize.ActionDeviceApprove, person, details)
}

// decidedSame tells whether the session has decided just this before.
func (p Pairing) decidedSame(session ids.ID, approve bool) bool {
	if session.IsZero() || p.DecidedSessionID != session {
		return false
	}
	if approve {
		return p.State == domain.PairingApproved || p.State == domain.PairingConsumed
	}
	return p.State == domain.PairingDenied
}

// pairDevice makes the device of a pairing one of its person, active at once. A device that
// she has already, and that has lost its session, is used again.
func (s *Service) pairDevice(ctx context.Context, p Pairing) (ids.ID, error) {
	known, found, err := s.Store.DeviceByKey(ctx, p.JKT)
	if err != nil {
		return ids.ID{}, err
	}
	living, err := s.Store.LockDevices(ctx, p.PrincipalID)
	if err != nil {
		return ids.ID{}, err
	}
	now := s.now(ctx)
	switch {
	case found && known.PrincipalID != p.PrincipalID:
		return ids.ID{}, errDeviceKeyInUse()
	case found && known.State == deviceActive:
		return known.ID, s.Store.IntroduceDevice(ctx, known.ID, p.Device, p.Network, now)
	case found:
		if err := s.endWaiting(ctx, p.PrincipalID, func(d Device) bool { return d.ID == known.ID }); err != nil {
			return ids.ID{}, err
		}
	case len(living) >= s.cfg.MaxDevices:
		return ids.ID{}, errDeviceLimit()
	}
	device := ids.NewAt(now)
	return device, s.Store.InsertDevice(ctx, NewDevice{
		ID: device, PrincipalID: p.PrincipalID, Info: p.Device, ApprovedVia: domain.ApprovedPairing, ApprovedBy: p.PrincipalID,
		JWK: p.JWK, JKT: p.JKT, Network: p.Network, At: now,
	})
}
