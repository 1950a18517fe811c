// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// CompleteLoginInput is the proof of a person for a flow.
type CompleteLoginInput struct {
	Proof  ProofInput
	FlowID ids.ID
	// Login and Password are for the driver local.
	Login, Password string
	// Passkey is the answer of an authenticator, for the driver passkey.
	Passkey json.RawMessage
	// ResultCode is what the browser came back with, for the driver oidc.
	ResultCode string
	// The rest is for enrollment. NewPasskey goes with PasskeyName, or the device's name.
	CredentialKind, NewPassword, PasskeyName string
	NewPasskey                               json.RawMessage
}

// CompleteLogin ends a flow with a session. Every failed proof is login_failed, whatever
// was wrong; a flow that is over is flow_expired. Of two completions in parallel one wins.
func (s *Service) CompleteLogin(ctx context.Context, in CompleteLoginInput) (LoginResult, error) {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionAuthLoginComplete, authorize.Resource{Kind: authorize.ResourceNone}); err != nil {
		return LoginResult{}, err
	}
	proof, err := s.Proofs.Verify(in.Proof.Compact, in.Proof.request())
	if err != nil {
		return LoginResult{}, err
	}
	flow, err := s.flow(ctx, in.FlowID, purposeLogin, flowOpen, flowExternal, flowWaiting)
	if err != nil {
		return LoginResult{}, err
	}
	if flow.JKT != proof.JKT {
		return LoginResult{}, s.refuseLogin(ctx, authorize.ActionAuthLoginComplete, ids.ID{}, flow.Driver)
	}
	if flow.State == flowWaiting {
		return s.collect(ctx, flow)
	}
	if err := s.needDriver(ctx, flow.Driver); err != nil {
		if errs.Is(err, errs.CodeValidationFailed) {
			// Switched off since the flow began.
			return LoginResult{}, errFlowExpired()
		}
		return LoginResult{}, err
	}
	switch flow.Driver {
	case DriverEnrollment:
		return s.completeEnrollment(ctx, flow, proof, in)
	case DriverPasskey:
		return s.completePasskey(ctx, flow, proof, in.Passkey)
	case DriverOIDC:
		return s.completeOIDC(ctx, flow, proof, in.ResultCode)
	default:
		return s.completeLocal(ctx, flow, proof, in)
	}
}

// openFlow reads a flow that may still be completed by a proof.
func (s *Service) openFlow(ctx context.Context, id ids.ID, purpose string) (Flow, error) {
	return s.flow(ctx, id, purpose, flowOpen)
}

// flow reads a flow of the purpose in one of the states.
func (s *Service) flow(ctx context.Context, id ids.ID, purpose string, states ...string) (Flow, error) {
	flow, found, err := s.Store.FlowByID(ctx, id)
	if err != nil {
		return Flow{}, err
	}
	if !found || flow.Purpose != purpose || !slices.Contains(states, flow.State) || !s.now(ctx).Before(flow.ExpiresAt) {
		return Flow{}, errFlowExpired()
	}
	return flow, nil
}

func errFlowExpired() error {
	return errs.New(errs.CodeFlowExpired, "This attempt is over. Begin again.")
}

// completeLocal checks a password. A known and an unknown name take the same steps.
func (s *Service) completeLocal(ctx context.Context, flow Flow, proof domain.Proof, in CompleteLoginInput) (LoginResult, error) {
	var v errs.Validation
	if in.Login == "" {
		v.Add("/login", "required", "Enter your handle or e-mail address.")
	}
	if in.Password == "" {
		v.Add("/password", "required", "Enter your password.")
	}
	if err := v.Err(); err != nil {
		return LoginResult{}, err
	}
	login := domain.NormalLogin(in.Login)
	c, err := s.Store.LoginCandidate(ctx, login, proof.JKT)
	if err != nil {
		return LoginResult{}, err
	}
	if err := s.throttleName(login, proof.JKT, c.KnownDevice); err != nil {
		return LoginResult{}, err
	}
	fits, rehash, err := s.provePassword(ctx, c, in.Password)
	if err != nil {
		return LoginResult{}, err
	}
	if !fits {
		return LoginResult{}, s.failedPassword(ctx, flow, c)
	}
	key, err := jwkOf(proof)
	if err != nil {
		return LoginResult{}, err
	}
	return s.login(ctx, flow, c, key, rehash)
}

// throttleName takes a token for the login name. A device the account knows has a bucket of
// its own, so that nobody else can use up what its owner needs.
func (s *Service) throttleName(login string, key domain.Thumbprint, known bool) error {
	bucket := login
	if known {
		bucket += "\x00" + key.String()
	}
	if ok, wait := s.Throttle.Take("rl.login_name", keyed(s.nameKey, bucket)); !ok {
		return errs.New(errs.CodeRateLimited, "Too many attempts. Wait a moment.").WithRetryAfter(wait)
	}
	return nil
}

// provePassword compares outside any unit, always at the same cost. rehash is the stronger
// hash to store after success, empty for none.
func (s *Service) provePassword(ctx context.Context, c Candidate, password string) (fits bool, rehash string, err error) {
	hash := c.PasswordHash
	if !c.Active || !c.KnownDevice && c.Failures.Locked(s.now(ctx), s.cfg.LockoutDuration) {
		hash = ""
	}
	fits, weak, err := s.Hasher.Verify(ctx, hash, password)
	if err != nil || !fits || !weak {
		return fits, "", err
	}
	rehash, err = s.Hasher.Hash(ctx, password)
	return fits, rehash, err
}

// failedPassword counts the attempt on the flow and, from unknown devices, on the account.
// During a lock nothing was compared, so nothing is counted.
func (s *Service) failedPassword(ctx context.Context, flow Flow, c Candidate) error {
	failures := c.Failures
	counts := !c.KnownDevice && !failures.Locked(s.now(ctx), s.cfg.LockoutDuration)
	if counts {
		failures = failures.Failed(s.now(ctx))
	}
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Store.CountAttempt(ctx, flow.ID, maxAttempts); err != nil {
			return err
		}
		return s.Store.SetFailures(ctx, c.PrincipalID, failures)
	})
	if err != nil {
		return err
	}
	if counts && failures.JustLocked() && !c.PrincipalID.IsZero() {
		s.Audit.Denied(ctx, auditing.Entry{
			Action: string(authorize.ActionAuthLoginComplete), Reason: "locked", ResourceKind: string(authorize.ResourcePrincipal),
			ResourceID: c.PrincipalID, Details: map[string]any{"driver": flow.Driver},
		})
	}
	return s.refuseLogin(ctx, authorize.ActionAuthLoginComplete, c.PrincipalID, flow.Driver)
}

// login is the unit of a proven person: flow, device, session, audit.
func (s *Service) login(ctx context.Context, flow Flow, c Candidate, key []byte, rehash string) (LoginResult, error) {
	var made issued
	var account Account
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.consume(ctx, flow.ID); err != nil {
			return err
		}
		active, err := s.Store.SharePrincipal(ctx, c.PrincipalID)
		if err != nil {
			return err
		}
		if !active {
			return errLoginFailed()
		}
		if err := s.settleCredential(ctx, c, rehash); err != nil {
			return err
		}
		made, account, err = s.enter(ctx, flow, c.PrincipalID, key, provenByPassword)
		return err
	})
	if err != nil {
		return LoginResult{}, err
	}
	r, err := s.result(ctx, made, &account)
	r.MustChangePassword = c.MustChange
	return r, err
}

func (s *Service) consume(ctx context.Context, flow ids.ID) error {
	won, err := s.Store.ConsumeFlow(ctx, flow)
	if err != nil {
		return err
	}
	if !won {
		return errFlowExpired()
	}
	return nil
}

func (s *Service) settleCredential(ctx context.Context, c Candidate, rehash string) error {
	if rehash != "" {
		if err := s.Store.Rehash(ctx, c.PrincipalID, c.PasswordHash, rehash); err != nil {
			return err
		}
	}
	if c.Failures.Count == 0 {
		return nil
	}
	return s.Store.SetFailures(ctx, c.PrincipalID, domain.Failures{})
}

// enter gives a proven person her device and, unless the device has to wait for approval, her
// session, in the running unit. From here on the unit acts as that person.
func (s *Service) enter(ctx context.Context, flow Flow, principal ids.ID, key []byte, how provenBy) (issued, Account, error) {
	flow.AMR = how.amr
	device, err := s.loginDevice(asPerson(ctx, Device{PrincipalID: principal}), flow, principal, key)
	if err != nil {
		return issued{}, Account{}, err
	}
	ctx = asPerson(ctx, device)
	if device.State == devicePending {
		account, err := s.person(ctx, principal)
		if err != nil {
			return issued{}, Account{}, err
		}
		return issued{device: device}, account, s.hold(ctx, flow, device)
	}
	return s.open(ctx, flow, device, how)
}

// open starts the session of a proven person on her active device.
func (s *Service) open(ctx context.Context, flow Flow, device Device, how provenBy) (issued, Account, error) {
	ctx = asPerson(ctx, device)
	if err := s.Store.NoteLogin(ctx, device.PrincipalID, s.now(ctx)); err != nil {
		return issued{}, Account{}, err
	}
	made, err := s.startSession(ctx, flow, device.PrincipalID, device, how)
	if err != nil {
		return issued{}, Account{}, err
	}
	account, err := s.person(ctx, device.PrincipalID)
	if err != nil {
		return issued{}, Account{}, err
	}
	return made, account, s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionAuthLoginComplete), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: device.PrincipalID,
		Details: map[string]any{"driver": flow.Driver, "device_id": device.ID},
	})
}
