// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the operations of identity: it reads what the generated server
// hands over, calls one use case and writes the answer. Rules live in app and domain.
package httpapi

import (
	"context"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Handlers are the operations of identity of the generated strict server.
type Handlers struct {
	service *app.Service
	clock   clock.Clock
}

// New makes the handlers.
func New(service *app.Service, clk clock.Clock) *Handlers {
	return &Handlers{service: service, clock: clk}
}

// BeginLogin implements rest.StrictServerInterface.
func (h *Handlers) BeginLogin(ctx context.Context, r rest.BeginLoginRequestObject) (rest.BeginLoginResponseObject, error) {
	begun, err := h.service.BeginLogin(ctx, app.BeginLoginInput{
		Proof: proofOf(ctx), Driver: string(r.Body.Driver), Code: deref(r.Body.Code),
		ProviderID: ids.Deref(r.Body.ProviderID), ReturnTo: deref(r.Body.ReturnTo), Browser: browserOf(ctx), Device: deviceInfo(r.Body.Device),
	})
	if err != nil {
		return nil, err
	}
	out := rest.BeginLogin201JSONResponse{ExpiresAt: jsontype.At(begun.Flow.ExpiresAt), FlowID: begun.Flow.ID, Methods: begun.Methods}
	if begun.Purpose != "" {
		purpose := rest.EnrollmentPurpose(begun.Purpose)
		out.Purpose = &purpose
		out.Principal = &rest.FlowPrincipal{ID: begun.Flow.PrincipalID, Handle: begun.Handle, DisplayName: begun.DisplayName}
	}
	out.AuthorizationURL = goesTo(ctx, begun.External)
	out.PasskeyOptions, err = passkeyOptions(begun.Passkey)
	return out, err
}

// CompleteLogin implements rest.StrictServerInterface.
func (h *Handlers) CompleteLogin(ctx context.Context, r rest.CompleteLoginRequestObject) (rest.CompleteLoginResponseObject, error) {
	in := app.CompleteLoginInput{
		Proof: proofOf(ctx), FlowID: r.FlowID, Login: deref(r.Body.Login), Password: deref(r.Body.Password),
		Passkey: r.Body.Passkey, ResultCode: deref(r.Body.ResultCode),
	}
	if c := r.Body.Credential; c != nil {
		in.CredentialKind, in.NewPassword = string(c.Kind), deref(c.Password)
		in.NewPasskey, in.PasskeyName = c.Passkey, deref(c.Name)
	}
	result, err := h.service.CompleteLogin(ctx, in)
	if err != nil {
		return nil, err
	}
	if w := result.Waiting; w != nil {
		return rest.CompleteLogin202JSONResponse{
			Status: rest.DevicePendingStatusDevicePending, FlowID: w.FlowID, DeviceID: w.DeviceID, VerificationCode: w.VerificationCode,
			IntervalMs: w.Interval.Milliseconds(), ExpiresAt: jsontype.At(w.ExpiresAt),
		}, nil
	}
	return rest.CompleteLogin200JSONResponse(loginResult(result)), nil
}

// RefreshToken implements rest.StrictServerInterface.
func (h *Handlers) RefreshToken(ctx context.Context, r rest.RefreshTokenRequestObject) (rest.RefreshTokenResponseObject, error) {
	result, err := h.service.Refresh(ctx, proofOf(ctx), r.Body.RefreshToken)
	if err != nil {
		return nil, err
	}
	return rest.RefreshToken200JSONResponse(loginResult(result)), nil
}

// Logout implements rest.StrictServerInterface.
func (h *Handlers) Logout(ctx context.Context, _ rest.LogoutRequestObject) (rest.LogoutResponseObject, error) {
	if err := h.service.Logout(ctx); err != nil {
		return nil, err
	}
	return rest.Logout204Response{}, nil
}

// BeginStepUp implements rest.StrictServerInterface.
func (h *Handlers) BeginStepUp(ctx context.Context, r rest.BeginStepUpRequestObject) (rest.BeginStepUpResponseObject, error) {
	begun, err := h.service.BeginStepUp(ctx, string(r.Body.Method))
	if err != nil {
		return nil, err
	}
	options, err := passkeyOptions(begun.Passkey)
	return rest.BeginStepUp201JSONResponse{FlowID: begun.Flow.ID, ExpiresAt: jsontype.At(begun.Flow.ExpiresAt), PasskeyOptions: options}, err
}

// CompleteStepUp implements rest.StrictServerInterface.
func (h *Handlers) CompleteStepUp(ctx context.Context, r rest.CompleteStepUpRequestObject) (rest.CompleteStepUpResponseObject, error) {
	result, err := h.service.CompleteStepUp(ctx, r.FlowID, app.StepUpProof{Password: deref(r.Body.Password), Passkey: r.Body.Passkey})
	if err != nil {
		return nil, err
	}
	return rest.CompleteStepUp200JSONResponse{
		AccessToken: result.AccessToken, ExpiresInMs: result.ExpiresIn.Milliseconds(), StepUpUntil: jsontype.At(result.StepUpUntil),
	}, nil
}

// SetPassword implements rest.StrictServerInterface.
func (h *Handlers) SetPassword(ctx context.Context, r rest.SetPasswordRequestObject) (rest.SetPasswordResponseObject, error) {
	endOthers := r.Body.EndOtherSessions == nil || *r.Body.EndOtherSessions
	if err := h.service.SetPassword(ctx, r.Body.Password, endOthers); err != nil {
		return nil, err
	}
	return rest.SetPassword204Response{}, nil
}
