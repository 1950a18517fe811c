// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// maxAttempts is how many wrong proofs a flow takes.
const maxAttempts = 5

// ProofInput is a DPoP proof as a request without an access token shows it.
type ProofInput struct{ Compact, Method, URL string }

func (p ProofInput) request() domain.ProofRequest {
	return domain.ProofRequest{Method: p.Method, URL: p.URL}
}

// BeginLoginInput begins a login.
type BeginLoginInput struct {
	Proof  ProofInput
	Driver string
	// Code is for enrollment alone.
	Code string
	// ProviderID and ReturnTo are for oidc alone; Browser is what the browser shows from an
	// earlier attempt.
	ProviderID        ids.ID
	ReturnTo, Browser string
	Device            DeviceInfo
}

// BegunLogin is a flow to be completed with the same key.
type BegunLogin struct {
	Flow Flow
	// The rest is set for enrollment: what the code is for, and for whom.
	Purpose             domain.CodePurpose
	Handle, DisplayName string
	Methods             []string
	// Passkey is set for passkey and enrollment: what to ask the authenticator.
	Passkey *PasskeyRequest
	// External is set for oidc: where the browser goes.
	External ExternalRequest
}

// BeginLogin makes a flow that is bound to the key of the proof. It never tells whether a
// name exists; a wrong code is login_failed.
func (s *Service) BeginLogin(ctx context.Context, in BeginLoginInput) (BegunLogin, error) {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionAuthLoginBegin, authorize.Resource{Kind: authorize.ResourceNone}); err != nil {
		return BegunLogin{}, err
	}
	if err := in.validate(); err != nil {
		return BegunLogin{}, err
	}
	proof, err := s.Proofs.Verify(in.Proof.Compact, in.Proof.request())
	if err != nil {
		return BegunLogin{}, err
	}
	now := s.now(ctx)
	begun := BegunLogin{Flow: Flow{
		ID: ids.NewAt(now), Driver: in.Driver, Purpose: purposeLogin, JKT: proof.JKT, Device: in.Device,
		State: flowOpen, CreatedAt: now, ExpiresAt: now.Add(s.cfg.LoginFlowTTL),
	}}
	if err := s.needDriver(ctx, in.Driver); err != nil {
		return BegunLogin{}, err
	}
	challenge, err := s.beginDriver(ctx, in, &begun)
	if err != nil {
		return BegunLogin{}, err
	}
	return begun, s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Store.InsertFlow(ctx, begun.Flow); err != nil || challenge == nil {
			return err
		}
		return s.Store.InsertChallenge(ctx, *challenge)
	})
}

// beginDriver does what the driver needs at the beginning, and gives the challenge of the
// flow when there is one.
func (s *Service) beginDriver(ctx context.Context, in BeginLoginInput, begun *BegunLogin) (*Challenge, error) {
	switch in.Driver {
	case DriverEnrollment:
		return s.beginEnrollment(ctx, in.Code, begun)
	case DriverPasskey:
		c := s.beginPasskeyLogin(ctx, begun)
		return &c, nil
	case DriverOIDC:
		return nil, s.beginOIDC(ctx, in, begun)
	default:
		return nil, nil
	}
}

func (in BeginLoginInput) validate() error {
	var v errs.Validation
	if !slices.Contains(drivers, in.Driver) {
		v.Add("/driver", "unknown", "Use one of the login options of the discovery document.")
	}
	if (in.Driver == DriverEnrollment) != (in.Code != "") {
		v.Add("/code", "mismatch", "A code goes with the driver enrollment, and only with it.")
	}
	if oidc := in.Driver == DriverOIDC; oidc == in.ProviderID.IsZero() || !oidc && in.ReturnTo != "" {
		v.Add("/provider_id", "mismatch", "A provider and where to return go with the driver oidc, and only with it.")
	}
	in.Device.validate(&v)
	return v.Err()
}

var (
	drivers   = []string{DriverLocal, DriverPasskey, DriverOIDC, DriverEnrollment}
	platforms = []string{"web", "ios", "android", "macos", "windows", "linux", "other"}
	clients   = []string{"app", "console", "cli"}
)

func (d DeviceInfo) validate(v *errs.Validation) {
	addFault(v, "/device/name", domain.CheckName(d.Name, domain.DeviceNameMax))
	addFault(v, "/device/client_version", domain.CheckOptional(d.ClientVersion, domain.VersionTextMax))
	if !slices.Contains(platforms, d.Platform) {
		v.Add("/device/platform", "unknown", "This is no known platform.")
	}
	if !slices.Contains(clients, d.Client) {
		v.Add("/device/client", "unknown", "This is no known client.")
	}
}

// addFault notes a fault of the domain, when there is one.
func addFault(v *errs.Validation, pointer string, f domain.Fault) {
	if f != domain.FaultNone {
		v.Add(pointer, string(f), faultText(f))
	}
}

func faultText(f domain.Fault) string {
	switch f {
	case domain.FaultTooShort:
		return "Use more characters."
	case domain.FaultTooLong:
		return "Use fewer characters."
	case domain.FaultCommon:
		return "Many people use this or something like it. Take something that is yours alone."
	case domain.FaultContext:
		return "Leave out your name, your address, the product and the instance."
	case domain.FaultReserved:
		return "This name has a meaning of its own. Take another."
	case "empty":
		return "Write something."
	default:
		return "Some characters or the form are not allowed here."
	}
}

// beginEnrollment finds whom a code is for, and asks for her passkey unless she has too many.
func (s *Service) beginEnrollment(ctx context.Context, text string, begun *BegunLogin) (*Challenge, error) {
	hash, err := domain.ParseEnrollmentCode(text)
	if err != nil {
		return nil, s.refuseLogin(ctx, authorize.ActionAuthLoginBegin, ids.ID{}, DriverEnrollment)
	}
	code, found, err := s.Store.CodeByHash(ctx, hash)
	if err != nil {
		return nil, err
	}
	if !found || !code.Open(s.now(ctx)) || code.Status != identity.StatusActive {
		return nil, s.refuseLogin(ctx, authorize.ActionAuthLoginBegin, code.PrincipalID, DriverEnrollment)
	}
	device, known, err := s.Store.DeviceByKey(ctx, begun.Flow.JKT)
	if err != nil {
		return nil, err
	}
	if known && device.PrincipalID != code.PrincipalID {
		return nil, errDeviceKeyInUse()
	}
	begun.Flow.PrincipalID, begun.Flow.EnrollmentCodeID = code.PrincipalID, code.ID
	begun.Purpose, begun.Handle, begun.DisplayName = code.Purpose, code.Handle, code.DisplayName
	return s.offerCredentials(ctx, code, begun)
}

// offerCredentials names what can be set with a code: what also signs in later, or both where
// nothing but providers does. A recovery takes all passkeys away, so it asks for a new one as
// if there were none.
func (s *Service) offerCredentials(ctx context.Context, code Code, begun *BegunLogin) (*Challenge, error) {
	on, err := s.drivers(ctx)
	if err != nil {
		return nil, err
	}
	if !on.Local && !on.Passkey {
		on = domain.Drivers{Local: true, Passkey: true}
	}
	var known []Passkey
	if code.Purpose != domain.PurposeRecovery {
		if known, err = s.Store.ListPasskeys(ctx, code.PrincipalID); err != nil {
			return nil, err
		}
	}
	if !on.Passkey || len(known) >= domain.PasskeyMax {
		begun.Methods = []string{methodPassword}
		return nil, nil
	}
	begun.Methods = []string{methodPasskey}
	if on.Local {
		begun.Methods = append(begun.Methods, methodPassword)
	}
	request, err := s.newPasskeyRequest(ctx, NewPasskeyFor{PrincipalID: code.PrincipalID, Handle: code.Handle, DisplayName: code.DisplayName}, known)
	if err != nil {
		return nil, err
	}
	begun.Passkey = &request
	c := s.challengeOf(request, ChallengeRegister)
	c.FlowID, c.PrincipalID = begun.Flow.ID, code.PrincipalID
	return &c, nil
}

// refuseLogin is the one answer to every failed proof of a person. Who was meant, if
// anybody, stands in the audit log alone.
func (s *Service) refuseLogin(ctx context.Context, action authorize.Action, principal ids.ID, driver string) error {
	e := auditing.Entry{Action: string(action), Reason: "login_failed", Details: map[string]any{}}
	if action != authorize.ActionAuthStepUp {
		e.Details["driver"] = driver
	}
	if !principal.IsZero() {
		e.ResourceKind, e.ResourceID = string(authorize.ResourcePrincipal), principal
	}
	s.Audit.Denied(ctx, e)
	return errLoginFailed()
}

func errLoginFailed() error {
	return errs.New(errs.CodeUnauthenticated, "That did not work. Check what you entered and try again.").WithReason("login_failed")
}
