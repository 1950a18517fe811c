// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"
)

// PurgeRefreshTokens implements app.Retention, as do the other Purge methods.
func (s *Store) PurgeRefreshTokens(ctx context.Context, cutoff time.Time, batch int) (int, error) {
	n, err := s.read(ctx).RefreshTokensPurge(ctx, cutoff, int32(batch))
	return int(n), failed(err, "remove refresh tokens")
}

// PurgeSessions implements app.Retention.
func (s *Store) PurgeSessions(ctx context.Context, cutoff time.Time, batch int) (int, error) {
	n, err := s.read(ctx).SessionsPurge(ctx, cutoff, int32(batch))
	return int(n), failed(err, "remove sessions")
}

// PurgeDevices implements app.Retention.
func (s *Store) PurgeDevices(ctx context.Context, cutoff time.Time, batch int) (int, error) {
	n, err := s.read(ctx).DevicesPurge(ctx, cutoff, int32(batch))
	return int(n), failed(err, "remove devices")
}

// PurgeTokens implements app.Retention.
func (s *Store) PurgeTokens(ctx context.Context, cutoff time.Time, batch int) (int, error) {
	n, err := s.read(ctx).TokensPurge(ctx, cutoff, int32(batch))
	return int(n), failed(err, "remove API tokens")
}

// PurgePasskeys implements app.Retention.
func (s *Store) PurgePasskeys(ctx context.Context, cutoff time.Time, batch int) (int, error) {
	n, err := s.read(ctx).PasskeysPurge(ctx, cutoff, int32(batch))
	return int(n), failed(err, "remove passkeys")
}

// PurgeCodes implements app.Retention.
func (s *Store) PurgeCodes(ctx context.Context, cutoff time.Time, batch int) (int, error) {
	n, err := s.read(ctx).EnrollmentCodesPurge(ctx, cutoff, int32(batch))
	return int(n), failed(err, "remove enrollment codes")
}
