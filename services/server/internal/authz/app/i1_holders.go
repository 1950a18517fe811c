// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Triggerers implements authz.TriggerHolders.
func (s *Service) Triggerers(ctx context.Context, agent ids.ID) ([]authz.Triggerer, error) {
	var out []authz.Triggerer
	err := s.units.View(ctx, func(ctx context.Context) error {
		policies, err := s.agents.AgentPolicies(ctx, []ids.ID{agent})
		if err != nil || len(policies) == 0 {
			return err
		}
		st, err := s.readStructure(ctx)
		if err != nil {
			return err
		}
		entries, err := s.read(ctx, []ids.ID{agent})
		if err != nil {
			return err
		}
		people, _, err := s.triggerers(ctx, st, []ids.ID{agent})
		if err != nil {
			return err
		}
		for _, r := range domain.TriggerRights(entries[agent], people, st) {
			if policies[0].BillingMode == billingPersonal && r.Principal != policies[0].HolderID {
				continue
			}
			out = append(out, triggererOf(r))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list who can trigger an agent: %w", err)
	}
	return out, nil
}

func triggererOf(r domain.TriggerRight) authz.Triggerer {
	out := authz.Triggerer{PrincipalID: r.Principal, Target: portTarget(r.Target)}
	for _, p := range r.Paths {
		out.Paths = append(out.Paths, authz.TriggerPath{
			Code: p.Code, GrantID: p.GrantID, GroupID: p.GroupID, Target: portTarget(p.Target), Level: p.Level.String(),
		})
	}
	return out
}

func portTarget(t domain.Target) authz.Target { return authz.Target{Kind: string(t.Kind), ID: t.ID} }
