// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// UpdateBranding changes the named members and leaves the others; nil restores a default. All
// take effect or none does. version must be the present one.
func (s *Service) UpdateBranding(ctx context.Context, changes map[string]*string, version int64) (out Branding, err error) {
	err = s.units.Do(ctx, func(ctx context.Context) error {
		if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionInstanceBrandingUpdate, authorize.Instance()); err != nil {
			return err
		}
		section, err := s.store.LockSection(ctx, SectionBranding)
		if err != nil {
			return fmt.Errorf("lock branding: %w", err)
		}
		if max(section.Version, 1) != version {
			return errs.New(errs.CodeVersionConflict, "The branding has changed. Load it and try again.")
		}
		if err := applyBranding(section.Document, changes); err != nil {
			return err
		}
		section.Version = version + 1
		if err := s.store.SaveSection(ctx, SectionBranding, section, actor.From(ctx).ID, s.now(ctx)); err != nil {
			return fmt.Errorf("store branding: %w", err)
		}
		if err := s.peers.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionInstanceBrandingUpdate), ResourceKind: string(authorize.ResourceInstance),
			Details: map[string]any{"keys": slices.Sorted(maps.Keys(changes))},
		}); err != nil {
			return err
		}
		public, err := s.public(ctx)
		if err != nil {
			return err
		}
		out = public.Branding
		return s.tellPublic(ctx, "branding", public)
	})
	s.Invalidate()
	return out, err
}

func applyBranding(document map[string]json.RawMessage, changes map[string]*string) error {
	var v errs.Validation
	for _, member := range slices.Sorted(maps.Keys(changes)) {
		value := changes[member]
		if value == nil {
			delete(document, member)
			continue
		}
		if fault := domain.CheckBranding(member, *value); fault != nil {
			v.Add("/"+member, fault.Code, fault.Message)
			continue
		}
		raw, err := json.Marshal(*value)
		if err != nil {
			return fmt.Errorf("encode %s: %w", member, err)
		}
		document[member] = raw
	}
	return v.Err()
}

// brandingSection gives the stored branding, from memory while it is young. Inside a unit of
// work the row is read, since the unit may have changed it.
func (s *Service) brandingSection(ctx context.Context) (Section, error) {
	load := func() (Section, error) {
		section, err := s.store.Section(ctx, SectionBranding)
		if err != nil {
			return section, fmt.Errorf("read branding: %w", err)
		}
		return section, nil
	}
	if u := txn.Current(ctx); u != nil && !u.ReadOnly() {
		return load()
	}
	return s.branding.get(s.clock.Now(), s.cfg.SettingsTTL, load)
}

// brandingWith puts the stored branding and the defaults together.
func brandingWith(section Section, product string) Branding {
	b := domain.BrandingOf(section.Document, product)
	return Branding{
		ProductName: b.ProductName, Accent: b.Accent, LoginMessage: b.LoginMessage, SupportURL: optional(b.SupportURL),
		ImprintURL: optional(b.ImprintURL), PrivacyURL: optional(b.PrivacyURL), Version: max(section.Version, 1),
	}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
