// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

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

// endDevices revokes the living devices of a principal with their keys and sessions.
func (s *Service) endDevices(ctx context.Context, principal ids.ID, why endBy, choose func(device ids.ID) bool) error {
	living, err := s.Store.LockDevices(ctx, principal)
	if err != nil {
		return err
	}
	var ending []ids.ID
	gone := map[ids.ID]bool{}
	for _, id := range living {
		if choose(id) {
			ending, gone[id] = append(ending, id), true
		}
	}
	if len(ending) == 0 {
		return nil
	}
	if err := s.endSessions(ctx, principal, why, func(r SessionRef) bool { return gone[r.DeviceID] }); err != nil {
		return err
	}
	if err := s.Store.RevokeDevices(ctx, ending, why.reason, s.now(ctx)); err != nil {
		return err
	}
	for _, id := range ending {
		if err := txn.Publish(ctx, identity.DeviceRevoked{DeviceID: id, PrincipalID: principal, Reason: why.reason}); err != nil {
			return err
		}
	}
	return nil
}

func everySession(SessionRef) bool { return true }

func everyDevice(ids.ID) bool { return true }
