// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

var _ authz.HandleSource = (*Sources)(nil)

// CheckHandle implements authz.HandleSource.
func (s *Sources) CheckHandle(handle string) string { return string(domain.CheckHandle(handle)) }

// ClaimHandle implements authz.HandleSource.
func (s *Sources) ClaimHandle(ctx context.Context, handle string) (bool, error) {
	if err := s.store.LockHandle(ctx, handle); err != nil {
		return false, err
	}
	at := s.clock.Now()
	if u := txn.Current(ctx); u != nil {
		at = u.Now()
	}
	_, _, held, err := s.store.HandleHolder(ctx, handle, at)
	return held, err
}
