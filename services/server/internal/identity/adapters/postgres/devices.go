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

const (
	devicePending = "pending"
	deviceActive  = "active"
	deviceRevoked = "revoked"
)

// DeviceByKey implements app.Devices.
func (s *Store) DeviceByKey(ctx context.Context, key domain.Thumbprint) (app.Device, bool, error) {
	r, err := s.read(ctx).DeviceByKey(ctx, key[:])
	if found, err := absent(err, "find the device of a key"); err != nil || !found {
		return app.Device{}, false, err
	}
	d, err := device(sqlcgen.DeviceByIDRow(r))
	return d, err == nil, err
}

// DeviceByID implements app.Devices.
func (s *Store) DeviceByID(ctx context.Context, id ids.ID) (app.Device, bool, error) {
	r, err := s.read(ctx).DeviceByID(ctx, id)
	if found, err := absent(err, "read a device"); err != nil || !found {
		return app.Device{}, false, err
	}
	d, err := device(r)
	return d, err == nil, err
}

// ListDevices implements app.Devices.
func (s *Store) ListDevices(ctx context.Context, f app.DeviceFilter) ([]app.Device, error) {
	if f.State == deviceRevoked {
		rows, err := s.read(ctx).DevicesRevokedOfPrincipal(ctx, f.PrincipalID, f.Before.Ptr(), int32(f.Limit))
		return devices(rows, err, "list revoked devices", func(r sqlcgen.DevicesRevokedOfPrincipalRow) sqlcgen.DeviceByIDRow {
			return sqlcgen.DeviceByIDRow(r)
		})
	}
	rows, err := s.read(ctx).DevicesOfPrincipal(ctx, sqlcgen.DevicesOfPrincipalParams{
		PrincipalID: f.PrincipalID, State: f.State, Before: f.Before.Ptr(), LimitRows: int32(f.Limit),
	})
	return devices(rows, err, "list devices", func(r sqlcgen.DevicesOfPrincipalRow) sqlcgen.DeviceByIDRow { return sqlcgen.DeviceByIDRow(r) })
}

// LockDevices implements app.Devices.
func (s *Store) LockDevices(ctx context.Context, principal ids.ID) ([]app.Device, error) {
	rows, err := s.read(ctx).DevicesLock(ctx, principal)
	return devices(rows, err, "lock devices", func(r sqlcgen.DevicesLockRow) sqlcgen.DeviceByIDRow { return sqlcgen.DeviceByIDRow(r) })
}

func devices[R any](rows []R, err error, doing string, row func(R) sqlcgen.DeviceByIDRow) ([]app.Device, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	out := make([]app.Device, len(rows))
	for i, r := range rows {
		if out[i], err = device(row(r)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func device(r sqlcgen.DeviceByIDRow) (app.Device, error) {
	d := app.Device{
		ID: r.ID, PrincipalID: r.PrincipalID, State: r.State, PendingUntil: timeOr(r.PendingUntil), FlowID: ids.Deref(r.FlowID),
		DeviceInfo:  app.DeviceInfo{Name: r.Name, Platform: r.Platform, Client: r.Client, ClientVersion: r.ClientVersion},
		ApprovedVia: domain.DeviceApproval(textOr(r.ApprovedVia)), RevokeReason: textOr(r.RevokeReason), LastSeenAt: r.LastSeenAt,
		Network: r.IpPseudonym, CreatedAt: r.CreatedAt, Version: r.Version,
	}
	if r.FlowID == nil {
		return d, nil
	}
	var err error
	d.FlowKey, err = thumbprint(r.FlowJkt)
	return d, err
}

// InsertDevice implements app.Devices.
func (s *Store) InsertDevice(ctx context.Context, d app.NewDevice) error {
	p := sqlcgen.DeviceInsertParams{
		ID: d.ID, PrincipalID: d.PrincipalID, Name: d.Info.Name, Platform: d.Info.Platform, Client: d.Info.Client,
		ClientVersion: d.Info.ClientVersion, State: devicePending, PendingUntil: timePtr(d.PendingUntil), At: d.At,
		ApprovedBy: d.ApprovedBy.Ptr(), IpPseudonym: textPtr(d.Network),
	}
	if d.ApprovedVia != "" {
		p.State, p.ApprovedVia, p.ApprovedAt = deviceActive, textPtr(string(d.ApprovedVia)), &d.At
	}
	if d.PickedUp {
		p.PickedUpAt = &d.At
	}
	if err := write(ctx).DeviceInsert(ctx, p); err != nil {
		return err
	}
	return write(ctx, pg.MapError(violated)).DeviceKeyInsert(ctx, sqlcgen.DeviceKeyInsertParams{
		ID: ids.NewAt(d.At), DeviceID: d.ID, Jwk: d.JWK, Thumbprint: d.JKT[:], CreatedAt: d.At,
	})
}

// IntroduceDevice implements app.Devices.
func (s *Store) IntroduceDevice(ctx context.Context, id ids.ID, info app.DeviceInfo, network string, at time.Time) error {
	return write(ctx, expectOne("update a device")).DeviceIntroduce(ctx, sqlcgen.DeviceIntroduceParams{
		ID: id, ClientVersion: info.ClientVersion, At: at, IpPseudonym: textPtr(network),
	})
}

// RenameDevice implements app.Devices.
func (s *Store) RenameDevice(ctx context.Context, id ids.ID, name string) error {
	return write(ctx, expectOne("rename a device")).DeviceRename(ctx, name, id)
}

// ApproveDevice implements app.Devices.
func (s *Store) ApproveDevice(ctx context.Context, id, by ids.ID, via domain.DeviceApproval, at time.Time) error {
	return write(ctx, expectOne("approve a device")).DeviceApprove(ctx, sqlcgen.DeviceApproveParams{ID: id, ApprovedBy: by, Via: string(via), At: at})
}

// PickUpDevice implements app.Devices.
func (s *Store) PickUpDevice(ctx context.Context, id ids.ID, at time.Time) error {
	return write(ctx, expectOne("hand a device its session")).DevicePickUp(ctx, at, id)
}

// RevokeDevices implements app.Devices.
func (s *Store) RevokeDevices(ctx context.Context, list []ids.ID, reason string, at time.Time) error {
	if err := write(ctx).DevicesRevoke(ctx, at, reason, list); err != nil {
		return err
	}
	return write(ctx).DeviceKeysRetire(ctx, at, list)
}

// ExpiredDevices implements app.Devices.
func (s *Store) ExpiredDevices(ctx context.Context, x app.DeviceExpiry, batch int) ([]app.Device, error) {
	q, limit := s.read(ctx), int32(batch)
	unused, err := q.DevicesUnused(ctx, x.UnusedBefore, limit)
	if err != nil {
		return nil, fmt.Errorf("find unused devices: %w", err)
	}
	undecided, err := q.DevicesUndecided(ctx, x.Now, limit)
	if err != nil {
		return nil, fmt.Errorf("find devices that waited in vain: %w", err)
	}
	uncollected, err := q.DevicesUncollected(ctx, x.UncollectedBefore, limit)
	if err != nil {
		return nil, fmt.Errorf("find devices that never came: %w", err)
	}
	var out []app.Device
	for _, r := range unused {
		out = append(out, app.Device{ID: r.ID, PrincipalID: r.PrincipalID})
	}
	for _, r := range undecided {
		out = append(out, app.Device{ID: r.ID, PrincipalID: r.PrincipalID})
	}
	for _, r := range uncollected {
		out = append(out, app.Device{ID: r.ID, PrincipalID: r.PrincipalID})
	}
	return out, nil
}

// DeviceExpired implements app.Devices.
func (s *Store) DeviceExpired(ctx context.Context, id ids.ID, x app.DeviceExpiry) (bool, error) {
	_, err := s.read(ctx).DeviceExpiredLock(ctx, sqlcgen.DeviceExpiredLockParams{
		ID: id, UnusedBefore: x.UnusedBefore, Now: x.Now, UncollectedBefore: x.UncollectedBefore,
	})
	return absent(err, "lock a device that expires")
}
