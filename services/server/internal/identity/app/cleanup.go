// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
)

const (
	cleanupBatch = 1000
	// expireBatch bounds the devices of one run; what is left waits for the next.
	expireBatch = 200
)

var errKindNotOurs = errors.New("people are not changed through this port")

// Cleanup is the job identity.auth_cleanup: it deletes logins that are over, revokes devices
// that nobody has used for long, that waited in vain or never came for their session, and
// removes what ended long ago. No decision waits for it, and a repetition finds nothing.
func (s *Service) Cleanup(ctx context.Context) error {
	ctx = actor.With(ctx, actor.System())
	for name, remove := range map[string]func(context.Context, time.Time, int) (int, error){
		"logins": s.Store.DeleteExpiredFlows, "challenges": s.Store.DeleteExpiredChallenges,
		"pairings": s.Store.DeleteExpiredPairings,
	} {
		if err := s.inBatches(ctx, s.Clock.Now(), remove); err != nil {
			return fmt.Errorf("delete expired %s: %w", name, err)
		}
	}
	expired, err := s.Store.ExpiredDevices(ctx, s.expiry(s.Clock.Now()), expireBatch)
	if err != nil {
		return fmt.Errorf("find devices that expire: %w", err)
	}
	for _, d := range expired {
		if err := s.expireDevice(ctx, d); err != nil {
			return fmt.Errorf("revoke a device that expires: %w", err)
		}
	}
	return s.purge(ctx)
}

// inBatches removes what was over before the moment, one batch per unit.
func (s *Service) inBatches(ctx context.Context, before time.Time, remove func(ctx context.Context, before time.Time, batch int) (int, error)) error {
	for deleted := cleanupBatch; deleted == cleanupBatch; {
		err := s.Units.Do(ctx, func(ctx context.Context) error {
			var err error
			deleted, err = remove(ctx, before, cleanupBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) expiry(now time.Time) DeviceExpiry {
	return DeviceExpiry{UnusedBefore: now.Add(-s.cfg.DeviceInactiveRevoke), Now: now, UncollectedBefore: now.Add(-pickUpTime)}
}

// expireDevice revokes one device, unless it was used, approved or revoked meanwhile.
func (s *Service) expireDevice(ctx context.Context, d Device) error {
	return s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionDeviceExpire, onPrincipal(d.PrincipalID)); err != nil {
			return err
		}
		if _, err := s.Store.LockPrincipal(ctx, d.PrincipalID); err != nil {
			return err
		}
		still, err := s.Store.DeviceExpired(ctx, d.ID, s.expiry(s.now(ctx)))
		if err != nil || !still {
			return err
		}
		why := endBy{reason: reasonDeviceRevoked, by: bySystem}
		if _, err := s.endDevices(ctx, d.PrincipalID, why, func(living Device) bool { return living.ID == d.ID }); err != nil {
			return err
		}
		return s.auditDevice(ctx, authorize.ActionDeviceExpire, d.PrincipalID, map[string]any{"device_id": d.ID})
	})
}
