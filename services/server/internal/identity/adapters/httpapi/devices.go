// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

const listDevices = "devices"

// ListDevices implements rest.StrictServerInterface.
func (h *Handlers) ListDevices(ctx context.Context, r rest.ListDevicesRequestObject) (rest.ListDevicesResponseObject, error) {
	page, err := devicePage(r.Params.Cursor, r.Params.Limit, r.Params.State, func(f app.DeviceFilter) ([]app.DeviceView, error) {
		return h.service.ListDevices(ctx, f)
	})
	return rest.ListDevices200JSONResponse(page), err
}

// ListUserDevices implements rest.StrictServerInterface.
func (h *Handlers) ListUserDevices(ctx context.Context, r rest.ListUserDevicesRequestObject) (rest.ListUserDevicesResponseObject, error) {
	page, err := devicePage(r.Params.Cursor, r.Params.Limit, r.Params.State, func(f app.DeviceFilter) ([]app.DeviceView, error) {
		f.PrincipalID = r.UserID
		return h.service.ListUserDevices(ctx, f)
	})
	return rest.ListUserDevices200JSONResponse(page), err
}

func devicePage(c *rest.Cursor, size *rest.Limit, state *rest.DeviceState, list func(app.DeviceFilter) ([]app.DeviceView, error)) (rest.DeviceList, error) {
	before, err := position[ids.ID](listDevices, c)
	if err != nil {
		return rest.DeviceList{}, err
	}
	limit := paging.Limit(size)
	views, err := list(app.DeviceFilter{State: string(deref(state)), Before: before, Limit: limit + 1})
	if err != nil {
		return rest.DeviceList{}, err
	}
	out := rest.DeviceList{Items: []rest.Device{}}
	for _, v := range views[:min(limit, len(views))] {
		out.Items = append(out.Items, device(v))
	}
	if len(views) > limit {
		out.NextCursor, err = cursor(listDevices, views[limit-1].ID)
	}
	return out, err
}

// RenameDevice implements rest.StrictServerInterface.
func (h *Handlers) RenameDevice(ctx context.Context, r rest.RenameDeviceRequestObject) (rest.RenameDeviceResponseObject, error) {
	version, err := ifMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	v, err := h.service.RenameDevice(ctx, r.DeviceID, version, r.Body.Name)
	if err != nil {
		return nil, err
	}
	return rest.RenameDevice200JSONResponse{Body: device(v), Headers: rest.RenameDevice200ResponseHeaders{ETag: etag(v.Version)}}, nil
}

// RevokeDevice implements rest.StrictServerInterface.
func (h *Handlers) RevokeDevice(ctx context.Context, r rest.RevokeDeviceRequestObject) (rest.RevokeDeviceResponseObject, error) {
	if err := h.service.RevokeDevice(ctx, r.DeviceID); err != nil {
		return nil, err
	}
	return rest.RevokeDevice204Response{}, nil
}

// ApproveDevice implements rest.StrictServerInterface.
func (h *Handlers) ApproveDevice(ctx context.Context, r rest.ApproveDeviceRequestObject) (rest.ApproveDeviceResponseObject, error) {
	v, err := h.service.ApproveDevice(ctx, r.DeviceID, r.Body.VerificationCode)
	if err != nil {
		return nil, err
	}
	return rest.ApproveDevice200JSONResponse{Body: device(v), Headers: rest.ApproveDevice200ResponseHeaders{ETag: etag(v.Version)}}, nil
}

func device(v app.DeviceView) rest.Device {
	out := rest.Device{
		ID: v.ID, Name: v.Name, Platform: rest.Platform(v.Platform), Client: rest.ClientKind(v.Client), ClientVersion: v.ClientVersion,
		State: rest.DeviceState(v.State), Current: v.Current, Network: rest.SessionNetworkOther,
		LastSeenAt: jsontype.At(v.LastSeenAt), CreatedAt: jsontype.At(v.CreatedAt), Version: v.Version,
	}
	if v.SameNetwork {
		out.Network = rest.SessionNetworkCurrent
	}
	if v.ApprovedVia != "" {
		via := rest.DeviceApproval(v.ApprovedVia)
		out.ApprovedVia = &via
	}
	if code := v.VerificationCode(); code != "" {
		until := jsontype.At(v.PendingUntil)
		out.PendingUntil, out.VerificationCode = &until, &code
	}
	return out
}
