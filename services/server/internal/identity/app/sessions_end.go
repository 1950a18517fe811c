// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"maps"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Who ended a session, for the event.
const (
	bySelf   = "self"
	byOwner  = "owner"
	bySystem = "system"
)

type endBy struct{ reason, by string }

// endSessions ends the living sessions of a principal that the choice names, with the
// children of those, in the running unit: rows, families, the in-transaction event and the
// durable one.
func (s *Service) endSessions(ctx context.Context, principal ids.ID, why endBy, choose func(SessionRef) bool) error {
	_, err := s.endSessionsCounted(ctx, principal, why, choose)
	return err
}

func (s *Service) endSessionsCounted(ctx context.Context, principal ids.ID, why endBy, choose func(SessionRef) bool) (int, error) {
	live, err := s.Store.LockLiveSessions(ctx, principal)
	if err != nil {
		return 0, err
	}
	ending := chosenSessions(live, choose)
	if len(ending) == 0 {
		return 0, nil
	}
	list := make([]ids.ID, len(ending))
	for i, r := range ending {
		list[i] = r.ID
	}
	if err := s.Store.EndSessions(ctx, list, why.reason, s.now(ctx)); err != nil {
		return 0, err
	}
	for _, r := range ending {
		if err := s.announceEnd(ctx, r, why); err != nil {
			return 0, err
		}
	}
	return len(ending), nil
}

// chosenSessions adds the children of every chosen session. Children have none themselves.
func chosenSessions(live []SessionRef, choose func(SessionRef) bool) []SessionRef {
	chosen := map[ids.ID]bool{}
	for _, r := range live {
		if choose(r) {
			chosen[r.ID] = true
		}
	}
	var out []SessionRef
	for _, r := range live {
		if chosen[r.ID] || chosen[r.ParentID] {
			out = append(out, r)
		}
	}
	return out
}

func (s *Service) announceEnd(ctx context.Context, r SessionRef, why endBy) error {
	ended := identity.SessionEnded{SessionID: r.ID, DeviceID: r.DeviceID, PrincipalID: r.PrincipalID, Kind: r.Kind, Reason: why.reason}
	if err := txn.Publish(ctx, ended); err != nil {
		return err
	}
	return s.Events.Append(ctx, sessionRevoked(r, why))
}

// reasonDeviceRevoked is why the sessions of a device end with it.
const reasonDeviceRevoked = "device_revoked"

// endDevices revokes the living devices of a principal that the choice names, with their keys
// and sessions, and tells how many. For those that wait it is the end of waiting, which is
// told to whoever could have approved them.
func (s *Service) endDevices(ctx context.Context, principal ids.ID, why endBy, choose func(Device) bool) (int, error) {
	living, err := s.Store.LockDevices(ctx, principal)
	if err != nil {
		return 0, err
	}
	ending := slices.DeleteFunc(living, func(d Device) bool { return !choose(d) })
	if len(ending) == 0 {
		return 0, nil
	}
	gone := map[ids.ID]bool{}
	byReason := map[string][]ids.ID{}
	for _, d := range ending {
		gone[d.ID] = true
		reason := endOfDevice(d, why)
		byReason[reason] = append(byReason[reason], d.ID)
	}
	if err := s.endSessions(ctx, principal, why, func(r SessionRef) bool { return gone[r.DeviceID] }); err != nil {
		return 0, err
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		if err := s.Store.RevokeDevices(ctx, byReason[reason], reason, s.now(ctx)); err != nil {
			return 0, err
		}
	}
	for _, d := range ending {
		if err := s.announceDeviceEnd(ctx, d, why); err != nil {
			return 0, err
		}
	}
	return len(ending), nil
}

// endOfDevice is the reason stored with a device that ends.
func endOfDevice(d Device, why endBy) string {
	switch {
	case d.State != devicePending:
		return why.reason
	case why.by == bySystem:
		return resolvedExpired
	default:
		return resolvedDenied
	}
}

func (s *Service) announceDeviceEnd(ctx context.Context, d Device, why endBy) error {
	if d.State == devicePending {
		if err := s.announceDevice(ctx, d, endOfDevice(d, why)); err != nil {
			return err
		}
	}
	return txn.Publish(ctx, identity.DeviceRevoked{DeviceID: d.ID, PrincipalID: d.PrincipalID, Reason: why.reason})
}

func everySession(SessionRef) bool { return true }

func everyDevice(Device) bool { return true }
