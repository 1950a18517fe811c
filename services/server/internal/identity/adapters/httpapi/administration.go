// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
)

// UpdateUser implements rest.StrictServerInterface.
func (h *Handlers) UpdateUser(ctx context.Context, r rest.UpdateUserRequestObject) (rest.UpdateUserResponseObject, error) {
	version, err := ifMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	b := r.Body
	s, err := h.service.UpdateUser(authz.WithResolution(ctx, b.ResolveI1.Choice()), r.UserID, app.UpdateUserInput{
		Version: version, Handle: changed(b.Handle), DisplayName: changed(b.DisplayName), Title: patched(b.Title), Email: patched(b.Email),
		EmailVerified: changed(b.EmailVerified), Guest: changed(b.Guest),
	})
	if err != nil {
		return nil, err
	}
	return rest.UpdateUser200JSONResponse{Body: user(s), Headers: rest.UpdateUser200ResponseHeaders{ETag: etag(s.Version)}}, nil
}

// AddOwner implements rest.StrictServerInterface.
func (h *Handlers) AddOwner(ctx context.Context, r rest.AddOwnerRequestObject) (rest.AddOwnerResponseObject, error) {
	if err := h.service.AddOwner(ctx, r.UserID); err != nil {
		return nil, err
	}
	return rest.AddOwner204Response{}, nil
}

// RemoveOwner implements rest.StrictServerInterface.
func (h *Handlers) RemoveOwner(ctx context.Context, r rest.RemoveOwnerRequestObject) (rest.RemoveOwnerResponseObject, error) {
	if err := h.service.RemoveOwner(ctx, r.UserID); err != nil {
		return nil, err
	}
	return rest.RemoveOwner204Response{}, nil
}

// GetPrincipalByHandle implements rest.StrictServerInterface.
func (h *Handlers) GetPrincipalByHandle(ctx context.Context, r rest.GetPrincipalByHandleRequestObject) (rest.GetPrincipalByHandleResponseObject, error) {
	s, err := h.service.MemberByHandle(ctx, r.Handle)
	if err != nil {
		return nil, err
	}
	return rest.GetPrincipalByHandle200JSONResponse{Body: directoryEntry(s), Headers: rest.GetPrincipalByHandle200ResponseHeaders{ETag: etag(s.Version)}}, nil
}
