// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"
)

// Retention removes what has been over since before the cutoff, at most one batch at a time,
// and tells how much it was. Nothing that is alive is touched.
type Retention interface {
	// PurgeRefreshTokens removes tokens that were exchanged; the newest of a living family stays.
	PurgeRefreshTokens(ctx context.Context, cutoff time.Time, batch int) (int, error)
	// PurgeSessions removes sessions with their families.
	PurgeSessions(ctx context.Context, cutoff time.Time, batch int) (int, error)
	// PurgeDevices removes devices with their keys, once their sessions are gone.
	PurgeDevices(ctx context.Context, cutoff time.Time, batch int) (int, error)
	PurgeTokens(ctx context.Context, cutoff time.Time, batch int) (int, error)
	PurgePasskeys(ctx context.Context, cutoff time.Time, batch int) (int, error)
	PurgeCodes(ctx context.Context, cutoff time.Time, batch int) (int, error)
}

// purge removes credentials that have been over for longer than the security class is kept.
// The order follows the references: what refers to a row goes before it.
func (s *Service) purge(ctx context.Context) error {
	if s.cfg.SecurityRetention == 0 {
		return nil
	}
	cutoff := s.Clock.Now().Add(-s.cfg.SecurityRetention)
	for _, step := range []struct {
		name   string
		remove func(context.Context, time.Time, int) (int, error)
	}{
		{"refresh tokens", s.Store.PurgeRefreshTokens},
		{"sessions", s.Store.PurgeSessions},
		{"devices", s.Store.PurgeDevices},
		{"API tokens", s.Store.PurgeTokens},
		{"passkeys", s.Store.PurgePasskeys},
		{"enrollment codes", s.Store.PurgeCodes},
	} {
		if err := s.inBatches(ctx, cutoff, step.remove); err != nil {
			return fmt.Errorf("remove old %s: %w", step.name, err)
		}
	}
	return nil
}
