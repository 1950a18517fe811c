// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// lockHandles makes decisions about handles serial, in ascending order. It is taken before
// any other lock of the unit.
func (s *Service) lockHandles(ctx context.Context, handles ...string) error {
	slices.Sort(handles)
	for _, h := range slices.Compact(handles) {
		if err := s.Store.LockHandle(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// claimHandle checks that nobody else has or holds the handle, behind its lock. Her own
// former handle a principal may take back.
func (s *Service) claimHandle(ctx context.Context, handle string, principal ids.ID) error {
	holder, _, found, err := s.Store.HandleHolder(ctx, handle, s.now(ctx))
	if err != nil {
		return err
	}
	if found && holder != principal {
		return errHandleTaken()
	}
	taken, err := s.Groups.HandleTaken(ctx, handle)
	if err != nil {
		return err
	}
	if taken {
		return errHandleTaken()
	}
	return nil
}

func errHandleTaken() error {
	return errs.Conflict("handle_taken", "This handle is in use or was until recently. Take another.")
}

// checkDisplayName refuses a name that could be taken for an owner's.
func (s *Service) checkDisplayName(ctx context.Context, name string, principal ids.ID) error {
	owners, err := s.Store.OwnerNames(ctx)
	if err != nil {
		return err
	}
	for owner, taken := range owners {
		if owner != principal && domain.Skeleton(taken) == domain.Skeleton(name) {
			return errs.Conflict("name_confusable", "This name looks like that of an owner. Add something that sets it apart.")
		}
	}
	return nil
}

// rename gives the names after a change. The interval between renames counts when the
// principal renames itself.
func (s *Service) rename(a Account, handle, displayName string, byItself bool, now time.Time) (Names, error) {
	n := Names{Handle: handle, DisplayName: displayName, Former: a.FormerHandles, HandleChangedAt: a.HandleChangedAt}
	if handle == a.Handle {
		return n, nil
	}
	if byItself && !domain.MayRename(a.HandleChangedAt, now, s.cfg.HandleRenameInterval) {
		wait := a.HandleChangedAt.Add(s.cfg.HandleRenameInterval).Sub(now)
		return Names{}, errs.Conflict("handle_rename_wait", "You changed your handle not long ago. Try again later.").WithRetryAfter(wait)
	}
	n.Former = domain.RenameHandle(a.FormerHandles, a.Handle, handle, now, now.Add(s.cfg.HandleHold))
	n.HandleChangedAt = now
	return n, nil
}
