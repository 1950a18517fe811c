// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Triggers implements app.TriggerStore.
func (s *Store) Triggers(ctx context.Context) (app.TriggerRows, error) {
	grants, err := s.queries(ctx).TriggerGrants(ctx)
	if err != nil {
		return app.TriggerRows{}, fmt.Errorf("list the grants of trigger: %w", err)
	}
	var out app.TriggerRows
	var groups []ids.ID
	for _, r := range grants {
		g := app.TriggerGrant{ID: r.ID, PrincipalID: ids.Deref(r.PrincipalID), GroupID: ids.Deref(r.GroupID), Everyone: r.Everyone}
		g.Target = domain.Target{Kind: domain.TargetKind(r.TargetKind), ID: ids.Deref(r.TargetID)}
		g.Level, _ = domain.ParseLevel(r.Level)
		g.Caps, g.ExpiresAt = domain.ParseCaps(r.Capabilities), timeOf(r.ExpiresAt)
		out.Grants = append(out.Grants, g)
		if r.GroupID != nil && !r.Everyone {
			groups = append(groups, *r.GroupID)
		}
	}
	if len(groups) == 0 {
		return out, nil
	}
	members, err := s.queries(ctx).TriggerMembers(ctx, groups)
	if err != nil {
		return app.TriggerRows{}, fmt.Errorf("list the members of groups with trigger: %w", err)
	}
	for _, m := range members {
		out.Members = append(out.Members, app.TriggerMember{
			MemberKey: domain.MemberKey{Group: m.GroupID, Principal: m.PrincipalID}, Claimed: m.Source == "claim", ExpiresAt: timeOf(m.ExpiresAt),
		})
	}
	return out, nil
}
