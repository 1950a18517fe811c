// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
)

// BeginPairing implements rest.StrictServerInterface.
func (h *Handlers) BeginPairing(ctx context.Context, r rest.BeginPairingRequestObject) (rest.BeginPairingResponseObject, error) {
	p, err := h.service.BeginPairing(ctx, app.BeginPairingInput{
		Proof: proofOf(ctx), ClientKind: string(r.Body.ClientKind), Device: deviceInfo(r.Body.Device),
	})
	if err != nil {
		return nil, err
	}
	return rest.BeginPairing201JSONResponse{
		DeviceCode: p.DeviceCode, UserCode: p.UserCode, VerificationURI: p.Address, VerificationURIComplete: p.AddressWithCode,
		ExpiresAt: jsontype.At(p.ExpiresAt), IntervalMs: p.Interval.Milliseconds(),
	}, nil
}

// PollPairing implements rest.StrictServerInterface.
func (h *Handlers) PollPairing(ctx context.Context, r rest.PollPairingRequestObject) (rest.PollPairingResponseObject, error) {
	p, err := h.service.PollPairing(ctx, proofOf(ctx), r.Body.DeviceCode)
	if err != nil {
		return nil, err
	}
	if p.Result == nil {
		return rest.PollPairing202JSONResponse{Status: rest.PairingPendingStatusPending, IntervalMs: p.Interval.Milliseconds()}, nil
	}
	return rest.PollPairing200JSONResponse(loginResult(*p.Result)), nil
}

// ResolvePairing implements rest.StrictServerInterface.
func (h *Handlers) ResolvePairing(ctx context.Context, r rest.ResolvePairingRequestObject) (rest.ResolvePairingResponseObject, error) {
	p, err := h.service.ResolvePairing(ctx, r.Body.UserCode)
	if err != nil {
		return nil, err
	}
	return rest.ResolvePairing200JSONResponse{
		PairingID: p.ID, ClientKind: rest.PairingClientKind(p.ClientKind), SameNetwork: p.SameNetwork,
		Device: rest.DeviceInfo{
			Name: p.Device.Name, Platform: rest.Platform(p.Device.Platform), Client: rest.ClientKind(p.Device.Client),
			ClientVersion: p.Device.ClientVersion,
		},
		CreatedAt: jsontype.At(p.CreatedAt), ExpiresAt: jsontype.At(p.ExpiresAt),
	}, nil
}

// DecidePairing implements rest.StrictServerInterface.
func (h *Handlers) DecidePairing(ctx context.Context, r rest.DecidePairingRequestObject) (rest.DecidePairingResponseObject, error) {
	approve := r.Body.Decision == rest.DecidePairingRequestDecisionApprove
	if err := h.service.DecidePairing(ctx, r.PairingID, r.Body.UserCode, approve); err != nil {
		return nil, err
	}
	return rest.DecidePairing204Response{}, nil
}
