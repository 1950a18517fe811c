// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// sweepBatch bounds the grants, and the memberships, that one change of rights ends.
const sweepBatch = 200

// errNothingEnded rolls a unit back in which another worker was faster, so that no change of
// rights is counted that changed nothing.
var errNothingEnded = errors.New("nothing has ended")

// ExpirySweep is the periodic job that removes grants and memberships which have ended. They
// count for nothing from their moment on; the job tells those who held them, and ends what
// they may no longer do. Running it twice at once is safe: each takes what the other does not
// hold.
type ExpirySweep struct{ s *Service }

// ExpirySweep gives the job.
func (s *Service) ExpirySweep() *ExpirySweep { return &ExpirySweep{s: s} }

// Run removes everything that has ended, in batches.
func (j *ExpirySweep) Run(ctx context.Context) error {
	ctx = actor.With(ctx, actor.System())
	for {
		grants, members, err := j.s.store.HasExpired(ctx, j.s.now(ctx))
		if err != nil {
			return fmt.Errorf("look for what has ended: %w", err)
		}
		action := authorize.ActionGrantExpire
		switch {
		case !grants && !members:
			return nil
		case !grants:
			action = authorize.ActionGroupMemberExpire
		}
		err = j.s.units.Do(ctx, j.batch, txn.WithRightsChange(txn.RightsChange{Action: string(action)}))
		if errors.Is(err, errNothingEnded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove what has ended: %w", err)
		}
	}
}

// batch ends grants and memberships in one change of rights, so that who loses by both hears
// of it once.
func (j *ExpirySweep) batch(ctx context.Context) error {
	s := j.s
	grants, err := s.store.LockExpired(ctx, s.now(ctx), sweepBatch)
	if err != nil {
		return err
	}
	members, err := s.store.LockExpiredMembers(ctx, s.now(ctx), sweepBatch)
	if err != nil {
		return err
	}
	if len(grants) == 0 && len(members) == 0 {
		return errNothingEnded
	}
	for _, g := range grants {
		if err := s.affectSubject(ctx, g.SubjectKind, g.SubjectID); err != nil {
			return err
		}
	}
	affected := make([]ids.ID, len(members))
	for i, m := range members {
		affected[i] = m.PrincipalID
	}
	if err := s.Affect(ctx, affected...); err != nil {
		return err
	}
	if err := s.endGrants(ctx, grants); err != nil {
		return err
	}
	return s.endMembers(ctx, members)
}

func (s *Service) endGrants(ctx context.Context, list []GrantRow) error {
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

func (s *Service) endMembers(ctx context.Context, list []MemberRow) error {
	groups, err := s.groupsOf(ctx, list)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := s.store.DeleteMember(ctx, m.ID); err != nil {
			return fmt.Errorf("delete a membership: %w", err)
		}
		details := map[string]any{"principal_id": m.PrincipalID, "role": m.Role, "expires_at": m.ExpiresAt}
		payload := groupChangedPayload{
			Change: "member_expired", Group: groupPayloadOf(groups[m.GroupID]), Members: []memberPayload{memberPayloadOf(m)},
		}
		if err := s.groupDone(ctx, authorize.ActionGroupMemberExpire, details, payload); err != nil {
			return err
		}
	}
	return nil
}

// groupsOf reads the groups of memberships.
func (s *Service) groupsOf(ctx context.Context, list []MemberRow) (map[ids.ID]GroupRow, error) {
	var wanted []ids.ID
	for _, m := range list {
		wanted = append(wanted, m.GroupID)
	}
	out := map[ids.ID]GroupRow{}
	if len(wanted) == 0 {
		return out, nil
	}
	groups, err := s.store.GroupsByID(ctx, sortedUnique(wanted))
	for _, g := range groups {
		out[g.ID] = g
	}
	return out, err
}
