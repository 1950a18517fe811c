// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// sweepBatch bounds the grants that one change of rights ends.
const sweepBatch = 200

// errNothingEnded rolls a unit back in which another worker was faster, so that no change of
// rights is counted that changed nothing.
var errNothingEnded = errors.New("no grant has ended")

// ExpirySweep is the periodic job that removes grants which have ended. They count for
// nothing from their moment on; the job tells those who held them, and ends what they may no
// longer do. Running it twice at once is safe: each takes what the other does not hold.
type ExpirySweep struct{ s *Service }

// ExpirySweep gives the job.
func (s *Service) ExpirySweep() *ExpirySweep { return &ExpirySweep{s: s} }

// Run removes everything that has ended, in batches.
func (j *ExpirySweep) Run(ctx context.Context) error {
	ctx = actor.With(ctx, actor.System())
	for {
		due, err := j.s.store.HasExpired(ctx, j.s.now(ctx))
		if err != nil {
			return fmt.Errorf("look for ended grants: %w", err)
		}
		if !due {
			return nil
		}
		err = j.s.units.Do(ctx, j.batch, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionGrantExpire)}))
		if errors.Is(err, errNothingEnded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove ended grants: %w", err)
		}
	}
}

func (j *ExpirySweep) batch(ctx context.Context) error {
	s := j.s
	list, err := s.store.LockExpired(ctx, s.now(ctx), sweepBatch)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errNothingEnded
	}
	for _, g := range list {
		if err := s.affectSubject(ctx, g.SubjectKind, g.SubjectID); err != nil {
			return err
		}
	}
	for _, g := range list {
		if err := s.store.DeleteGrant(ctx, g.ID); err != nil {
			return fmt.Errorf("delete a grant: %w", err)
		}
		details := grantDetails(g)
		details["expires_at"] = g.ExpiresAt
		payload := grantChangedPayload{Change: "expired", Grant: grantPayloadOf(g)}
		if err := s.tell(ctx, authorize.ActionGrantExpire, g, payload, details); err != nil {
			return err
		}
	}
	return nil
}
