// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const (
	cleanupBatch = 1000
	// expireBatch bounds the devices of one run; what is left waits for the next.
	expireBatch = 200
)

var errKindNotOurs = errors.New("people are not changed through this port")

// Cleanup is the job identity.auth_cleanup: it deletes logins that are over and revokes
// devices nobody has used for long. No decision waits for it, and a repetition finds
// nothing.
func (s *Service) Cleanup(ctx context.Context) error {
	ctx = actor.With(ctx, actor.System())
	for name, remove := range map[string]func(context.Context, time.Time, int) (int, error){
		"logins": s.Store.DeleteExpiredFlows, "challenges": s.Store.DeleteExpiredChallenges,
	} {
		if err := s.deleteExpired(ctx, remove); err != nil {
			return fmt.Errorf("delete expired %s: %w", name, err)
		}
	}
	unused, err := s.Store.UnusedDevices(ctx, s.Clock.Now().Add(-s.cfg.DeviceInactiveRevoke), expireBatch)
	if err != nil {
		return fmt.Errorf("find unused devices: %w", err)
	}
	for _, d := range unused {
		if err := s.expireDevice(ctx, d); err != nil {
			return fmt.Errorf("revoke an unused device: %w", err)
		}
	}
	return nil
}

// deleteExpired empties a table of what is over, one batch per unit.
func (s *Service) deleteExpired(ctx context.Context, remove func(ctx context.Context, before time.Time, batch int) (int, error)) error {
	for deleted := cleanupBatch; deleted == cleanupBatch; {
		err := s.Units.Do(ctx, func(ctx context.Context) error {
			var err error
			deleted, err = remove(ctx, s.now(ctx), cleanupBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expireDevice revokes one device, unless it was used or revoked meanwhile.
func (s *Service) expireDevice(ctx context.Context, d Device) error {
	return s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionDeviceExpire, onPrincipal(d.PrincipalID)); err != nil {
			return err
		}
		if _, err := s.Store.LockPrincipal(ctx, d.PrincipalID); err != nil {
			return err
		}
		still, err := s.Store.UnusedSince(ctx, d.ID, s.now(ctx).Add(-s.cfg.DeviceInactiveRevoke))
		if err != nil || !still {
			return err
		}
		why := endBy{reason: "device_revoked", by: bySystem}
		if err := s.endDevices(ctx, d.PrincipalID, why, func(id ids.ID) bool { return id == d.ID }); err != nil {
			return err
		}
		return s.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionDeviceExpire), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: d.PrincipalID,
			Details: map[string]any{"device_id": d.ID},
		})
	})
}
