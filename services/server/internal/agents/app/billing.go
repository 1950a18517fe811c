// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// SetBillingMode changes who pays for an agent. It is a change of rights: an agent on one
// person's own plan may be set to work by that person alone. version is the one the change
// was made from.
func (s *Service) SetBillingMode(ctx context.Context, id ids.ID, version int64, b domain.Billing) (View, error) {
	return s.bill(ctx, authorize.ActionAgentBillingModeSet, id, "/credential_holder_id", b.HolderID, func(a *domain.Agent, now time.Time) (bool, error) {
		if a.Version != version {
			return false, versionConflict(a.Version)
		}
		return a.Bill(b, now)
	})
}

// SetCredentialHolder makes another person the one whose plan a personal agent spends.
func (s *Service) SetCredentialHolder(ctx context.Context, id, holder ids.ID) (View, error) {
	return s.bill(ctx, authorize.ActionAgentCredentialHolderSet, id, "/person_id", holder, func(a *domain.Agent, now time.Time) (bool, error) {
		return a.HandOver(holder, now)
	})
}

func versionConflict(version int64) error {
	return errs.New(errs.CodeVersionConflict, "The agent has changed; load it again.").With("version", version)
}

// bill makes a change of who pays and tells of it.
func (s *Service) bill(ctx context.Context, action authorize.Action, id ids.ID, pointer string, holder ids.ID, change func(*domain.Agent, time.Time) (bool, error)) (View, error) {
	var view View
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		row, err := s.locked(ctx, action, id)
		if err != nil {
			return err
		}
		before := row.Billing
		changed, err := change(&row.Agent, txn.Current(ctx).Now())
		if err != nil {
			return err
		}
		if err := s.checkHolder(ctx, pointer, holder); err != nil {
			return err
		}
		p, err := s.principal(ctx, id)
		if err != nil {
			return err
		}
		view = View{Record: row, Principal: p, Warnings: s.warnings(row)}
		if !changed {
			return nil
		}
		return s.saveBilling(ctx, action, view, before)
	}, txn.WithRightsChange(txn.RightsChange{Action: string(action), Principals: []ids.ID{id}}))
	if err != nil {
		return View{}, err
	}
	if _, resolved := authz.ResolutionFrom(ctx); resolved {
		return s.read(ctx, id) // The remedy may have been another mode than the one asked for.
	}
	return s.overlay(view), nil
}

func (s *Service) saveBilling(ctx context.Context, action authorize.Action, v View, before domain.Billing) error {
	if err := s.d.Rows.Configure(ctx, v.Agent); err != nil {
		return fmt.Errorf("change who pays for the agent: %w", err)
	}
	details := map[string]any{"billing_mode_before": before.BillingMode, "billing_mode_after": v.BillingMode}
	if !before.HolderID.IsZero() {
		details["holder_before"] = before.HolderID
	}
	if !v.HolderID.IsZero() {
		details["holder_after"] = v.HolderID
	}
	return s.record(ctx, action, v, details)
}

// checkHolder refuses a holder who is no active person; zero is none.
func (s *Service) checkHolder(ctx context.Context, pointer string, holder ids.ID) error {
	if holder.IsZero() {
		return nil
	}
	found, err := s.d.Directory.ByID(ctx, []ids.ID{holder})
	if err != nil {
		return fmt.Errorf("find the holder: %w", err)
	}
	if p, ok := found[holder]; !ok || p.Kind != actor.KindPerson || !p.Active() {
		return errs.Invalid(pointer, "no_active_person", "Name an active person.")
	}
	return nil
}

// SetAllBillingModes has the organisation or its own hardware pay for the named agents, or
// for all when none is named. It gives those for which that is new, by ID.
func (s *Service) SetAllBillingModes(ctx context.Context, mode string, list []ids.ID) ([]ids.ID, error) {
	if mode == domain.BillingPersonal {
		return nil, errs.Invalid("/billing_mode", "not_allowed", "Each agent on a person's own plan is set by itself.")
	}
	action := authorize.ActionAgentBillingModeSetAll
	var changed []ids.ID
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		changed = nil
		if err := s.d.Authorizer.Authorize(ctx, action, authorize.Resource{Kind: authorize.ResourceAgent}); err != nil {
			return err
		}
		targets := slices.Clone(list)
		if len(targets) == 0 {
			var err error
			if targets, err = s.all(ctx); err != nil {
				return err
			}
		}
		slices.SortFunc(targets, ids.ID.Compare)
		for _, id := range slices.Compact(targets) {
			is, err := s.rebill(ctx, action, id, domain.Billing{BillingMode: mode})
			if err != nil {
				return err
			}
			if is {
				changed = append(changed, id)
			}
		}
		return nil
	}, txn.WithRightsChange(txn.RightsChange{Action: string(action)}))
	return changed, err
}

// pageOfAll is how many agents are read at a time.
const pageOfAll = 200

func (s *Service) all(ctx context.Context) ([]ids.ID, error) {
	var out []ids.ID
	var after ids.ID
	for {
		rows, err := s.d.Rows.After(ctx, after, Filter{}, pageOfAll)
		if err != nil {
			return nil, fmt.Errorf("list agents: %w", err)
		}
		for _, r := range rows {
			out = append(out, r.ID)
			after = r.ID
		}
		if len(rows) < pageOfAll {
			return out, nil
		}
	}
}

// rebill changes who pays for one agent in the running unit.
func (s *Service) rebill(ctx context.Context, action authorize.Action, id ids.ID, b domain.Billing) (changed bool, err error) {
	row, err := s.d.Rows.Lock(ctx, id)
	if err != nil {
		return false, fmt.Errorf("lock the agent: %w", err)
	}
	before := row.Billing
	if changed, err = row.Bill(b, txn.Current(ctx).Now()); err != nil || !changed {
		return false, err
	}
	p, err := s.principal(ctx, id)
	if err != nil {
		return false, err
	}
	return true, s.saveBilling(ctx, action, View{Record: row, Principal: p, Warnings: s.warnings(row)}, before)
}

// SwitchToOrganization implements authz.AgentPolicySwitch.
func (s *Service) SwitchToOrganization(ctx context.Context, list []ids.ID) error {
	for _, id := range list {
		if _, err := s.rebill(ctx, authorize.ActionAgentBillingModeSet, id, domain.Billing{BillingMode: domain.BillingOrganization}); err != nil {
			return err
		}
	}
	return nil
}

// SetToolClass changes what the runtime of an agent may touch. It counts at once: orders that
// wait are judged by the new class when they are delivered.
func (s *Service) SetToolClass(ctx context.Context, id ids.ID, version int64, class string) (View, error) {
	var view View
	err := s.d.Units.Do(ctx, func(ctx context.Context) error {
		row, err := s.locked(ctx, authorize.ActionAgentToolClassSet, id)
		if err != nil {
			return err
		}
		if row.Version != version {
			return versionConflict(row.Version)
		}
		before := row.ToolClass
		changed, err := row.Equip(class, txn.Current(ctx).Now())
		if err != nil {
			return err
		}
		p, err := s.principal(ctx, id)
		if err != nil {
			return err
		}
		view = View{Record: row, Principal: p, Warnings: s.warnings(row)}
		if !changed {
			return nil
		}
		if err := s.d.Rows.Configure(ctx, row.Agent); err != nil {
			return fmt.Errorf("change the tool class: %w", err)
		}
		return s.record(ctx, authorize.ActionAgentToolClassSet, view, map[string]any{"tool_class_before": before, "tool_class_after": class})
	})
	return s.overlay(view), err
}

// Triggerers lists who can set an agent to work, behind the given one and in order. more
// tells that there are further ones. The holder of a personal agent may ask as well.
func (s *Service) Triggerers(ctx context.Context, id ids.ID, after TriggererKey, limit int) (list []authz.Triggerer, more bool, err error) {
	rows, err := s.d.Rows.ByID(ctx, []ids.ID{id})
	if err != nil {
		return nil, false, fmt.Errorf("read the agent: %w", err)
	}
	resource := Resource(id)
	resource.Related = []ids.ID{rows[id].HolderID}
	if err := s.d.Authorizer.Authorize(ctx, authorize.ActionAgentTriggerersRead, resource); err != nil {
		return nil, false, err
	}
	if _, ok := rows[id]; !ok {
		return nil, false, errs.NotFound()
	}
	found, err := s.d.Holders.Triggerers(ctx, id)
	if err != nil {
		return nil, false, fmt.Errorf("list who can trigger the agent: %w", err)
	}
	found = slices.DeleteFunc(found, func(t authz.Triggerer) bool { return KeyOf(t).compare(after) <= 0 })
	if len(found) > limit {
		return found[:limit], true, nil
	}
	return found, false, nil
}

// TriggererKey is a place in the list of Triggerers.
type TriggererKey struct {
	Principal  ids.ID
	TargetKind string
	Target     ids.ID
}

func (k TriggererKey) compare(o TriggererKey) int {
	kinds := []string{"instance", "space", "channel"}
	return cmp.Or(
		k.Principal.Compare(o.Principal),
		cmp.Compare(slices.Index(kinds, k.TargetKind), slices.Index(kinds, o.TargetKind)), k.Target.Compare(o.Target),
	)
}

// KeyOf is the place of one.
func KeyOf(t authz.Triggerer) TriggererKey {
	return TriggererKey{Principal: t.PrincipalID, TargetKind: t.Target.Kind, Target: t.Target.ID}
}
