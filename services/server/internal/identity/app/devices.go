// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// DeviceView is a device in a list.
type DeviceView struct {
	Device
	// Current marks the device that asks; SameNetwork one last used from the caller's network.
	Current, SameNetwork bool
}

func (s *Service) viewDevice(ctx context.Context, d Device) DeviceView {
	here := s.network(ctx)
	return DeviceView{Device: d, Current: d.ID == actor.From(ctx).DeviceID, SameNetwork: here != "" && d.Network == here}
}

// ListDevices gives devices of the caller, newest first. The filter's person is the caller.
func (s *Service) ListDevices(ctx context.Context, f DeviceFilter) ([]DeviceView, error) {
	who, err := s.self(ctx, authorize.ActionDeviceList)
	if err != nil {
		return nil, err
	}
	f.PrincipalID = who.ID
	return s.listDevices(ctx, f)
}

// ListUserDevices gives the devices of any person to an owner.
func (s *Service) ListUserDevices(ctx context.Context, f DeviceFilter) ([]DeviceView, error) {
	if err := s.onPerson(ctx, authorize.ActionDeviceList, f.PrincipalID); err != nil {
		return nil, err
	}
	return s.listDevices(ctx, f)
}

func (s *Service) listDevices(ctx context.Context, f DeviceFilter) ([]DeviceView, error) {
	list, err := s.Store.ListDevices(ctx, f)
	if err != nil {
		return nil, err
	}
	views := make([]DeviceView, len(list))
	for i, d := range list {
		views[i] = s.viewDevice(ctx, d)
	}
	return views, nil
}

// RenameDevice changes the name of an own device that is not revoked.
func (s *Service) RenameDevice(ctx context.Context, id ids.ID, version int64, name string) (DeviceView, error) {
	var v errs.Validation
	addFault(&v, "/name", domain.CheckName(name, domain.DeviceNameMax))
	if err := v.Err(); err != nil {
		return DeviceView{}, err
	}
	var renamed Device
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		who, err := s.self(ctx, authorize.ActionSelfProfileUpdate)
		if err != nil {
			return err
		}
		device, err := s.lockedDevice(ctx, who.ID, id)
		if err != nil {
			return err
		}
		if err := checkVersion(device.Version, version); err != nil {
			return err
		}
		if err := s.Store.RenameDevice(ctx, id, name); err != nil {
			return err
		}
		renamed, _, err = s.Store.DeviceByID(ctx, id)
		return err
	})
	return s.viewDevice(ctx, renamed), err
}

// lockedDevice locks the living devices of a person and gives one of them.
func (s *Service) lockedDevice(ctx context.Context, principal, id ids.ID) (Device, error) {
	living, err := s.Store.LockDevices(ctx, principal)
	if err != nil {
		return Device{}, err
	}
	i := slices.IndexFunc(living, func(d Device) bool { return d.ID == id })
	if i < 0 {
		return Device{}, errs.NotFound()
	}
	return living[i], nil
}

// RevokeDevice ends a device of the caller, or of anybody for an owner, with its sessions.
// Refusing one that waits takes nothing away that works, so it needs no fresh proof. It works
// in maintenance; repeating it changes nothing.
func (s *Service) RevokeDevice(ctx context.Context, id ids.ID) error {
	return s.Units.Do(ctx, func(ctx context.Context) error {
		device, err := s.deviceFor(ctx, authorize.ActionDeviceRevoke, id)
		if err != nil {
			return err
		}
		if device.State == deviceActive {
			if err := s.needStepUp(ctx); err != nil {
				return err
			}
		}
		if _, err := s.Store.LockPrincipal(ctx, device.PrincipalID); err != nil {
			return err
		}
		// What was seen waiting may have been approved meanwhile: that is another act.
		expected := device.State
		why := revokedBy(ctx, device.PrincipalID)
		why.reason = reasonDeviceRevoked
		ended, err := s.endDevices(ctx, device.PrincipalID, why, func(d Device) bool { return d.ID == id && d.State == expected })
		if err != nil || ended == 0 {
			return err
		}
		return s.auditDevice(ctx, authorize.ActionDeviceRevoke, device.PrincipalID, map[string]any{"device_id": id})
	}, txn.WithWriteInMaintenance())
}

// deviceFor reads a device and checks an action on its person.
func (s *Service) deviceFor(ctx context.Context, action authorize.Action, id ids.ID) (Device, error) {
	device, found, err := s.Store.DeviceByID(ctx, id)
	if err != nil {
		return Device{}, err
	}
	if !found {
		return Device{}, errs.NotFound()
	}
	return device, hidden(s.Authorizer.Authorize(ctx, action, onPrincipal(device.PrincipalID)))
}

// The decisions about a device or a pairing.
const (
	decisionApprove = "approve"
	decisionDeny    = "deny"
)

// pickUpTime is how long a device that was approved may take to come for its session.
const pickUpTime = 24 * time.Hour

// ApproveDevice lets a waiting device in. The caller tells the six digits that the new device
// shows, so that of two that wait the right one is meant.
func (s *Service) ApproveDevice(ctx context.Context, id ids.ID, code string) (DeviceView, error) {
	var approved Device
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		device, err := s.deviceFor(ctx, authorize.ActionDeviceApprove, id)
		if err != nil {
			return err
		}
		if err := s.needStepUp(ctx); err != nil {
			return err
		}
		approved, err = s.approveDevice(ctx, device.PrincipalID, id, code)
		return err
	})
	return s.viewDevice(ctx, approved), err
}

func (s *Service) approveDevice(ctx context.Context, person, id ids.ID, code string) (Device, error) {
	active, err := s.Store.SharePrincipal(ctx, person)
	if err != nil {
		return Device{}, err
	}
	now := s.now(ctx)
	device, err := s.lockedDevice(ctx, person, id)
	switch {
	case errs.Is(err, errs.CodeNotFound), err == nil && (!active || !device.waits(now)):
		return Device{}, errs.Conflict("not_pending", "This device does not wait for approval any more.")
	case err != nil:
		return Device{}, err
	case subtle.ConstantTimeCompare([]byte(code), []byte(device.VerificationCode())) != 1:
		return Device{}, errs.Invalid("/verification_code", "mismatch", "The new device shows other digits. Do not approve a device that you cannot see.")
	}
	if err := s.Store.ApproveDevice(ctx, id, actor.From(ctx).ID, domain.ApprovedApproval, now); err != nil {
		return Device{}, err
	}
	if err := s.Store.ExtendFlow(ctx, device.FlowID, now.Add(pickUpTime)); err != nil {
		return Device{}, err
	}
	if err := s.announceDevice(ctx, device, resolvedApproved); err != nil {
		return Device{}, err
	}
	approved, _, err := s.Store.DeviceByID(ctx, id)
	if err != nil {
		return Device{}, err
	}
	return approved, s.auditDevice(ctx, authorize.ActionDeviceApprove, person, map[string]any{"device_id": id, "decision": decisionApprove})
}

func (s *Service) auditDevice(ctx context.Context, action authorize.Action, person ids.ID, details map[string]any) error {
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(action), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: person, Details: details,
	})
}
