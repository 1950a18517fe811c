// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// GrantEveryone implements authz.Grants.
func (s *Service) GrantEveryone(ctx context.Context, t authz.Target, level authorize.Level, capabilities []authorize.Capability) error {
	g, err := s.store.Everyone(ctx)
	if err != nil {
		return fmt.Errorf("read the group of all members: %w", err)
	}
	return s.give(ctx, SubjectGroup, g.ID, t, level, capabilities)
}

// GrantPrincipal implements authz.Grants.
func (s *Service) GrantPrincipal(ctx context.Context, principal ids.ID, t authz.Target, level authorize.Level, capabilities []authorize.Capability) error {
	return s.give(ctx, SubjectPrincipal, principal, t, level, capabilities)
}

// give puts a grant for another module; what the subject had on the target before is
// replaced.
func (s *Service) give(ctx context.Context, kind string, subject ids.ID, t authz.Target, level authorize.Level, capabilities []authorize.Capability) error {
	now := s.now(ctx)
	g := GrantRow{ID: ids.NewAt(now), SubjectKind: kind, SubjectID: subject, CreatedAt: now, CreatedBy: actor.From(ctx).ID}
	g.Target = domain.Target{Kind: domain.TargetKind(t.Kind), ID: t.ID}
	g.Level = levelOf(level)
	for _, c := range capabilities {
		g.Caps |= capOf(c)
	}
	if g.Level == domain.None {
		return fmt.Errorf("authz: a grant without a level on %s", t.Kind)
	}
	if err := s.affectSubject(ctx, kind, subject); err != nil {
		return err
	}
	var replaced *GrantRow
	switch old, err := s.store.GrantOf(ctx, kind, subject, g.Target); {
	case err == nil:
		replaced = &old
	case !errors.Is(err, ErrNoRow):
		return err
	}
	return s.put(ctx, g, replaced)
}

// RevokeAll implements authz.Grants.
func (s *Service) RevokeAll(ctx context.Context, principal ids.ID) error {
	if err := s.Affect(ctx, principal); err != nil {
		return err
	}
	removed, err := s.store.DeleteGrantsOf(ctx, principal)
	if err != nil {
		return fmt.Errorf("delete the grants of a principal: %w", err)
	}
	for _, g := range removed {
		payload := grantChangedPayload{Change: "revoked", Grant: grantPayloadOf(g)}
		if err := s.tell(ctx, authorize.ActionGrantRevoke, g, payload, grantDetails(g)); err != nil {
			return err
		}
	}
	return nil
}
