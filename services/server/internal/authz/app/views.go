// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const (
	settingViewAs      = "access.view_as_enabled"
	reasonViewReadOnly = "view_as_read_only"
	reasonViewDisabled = "view_as_disabled"
)

// StartViewAs lets an owner look at the instance as a person for a short while, read-only.
// The person finds it among her sessions. The token is shown once.
func (s *Service) StartViewAs(ctx context.Context, person ids.ID) (authz.ViewSession, string, error) {
	var view authz.ViewSession
	err := s.units.Do(ctx, func(ctx context.Context) error {
		r := authorize.Resource{Kind: authorize.ResourcePrincipal, ID: person}
		if err := s.Authorize(ctx, authorize.ActionAccessViewAs, r); err != nil {
			return err
		}
		if err := s.mayBeViewed(ctx, person); err != nil {
			return err
		}
		enabled, err := s.settings.Bool(ctx, settingViewAs)
		if err != nil {
			return fmt.Errorf("read whether views are on: %w", err)
		}
		if !enabled {
			s.recordDenial(ctx, authorize.ActionAccessViewAs, r, reasonViewDisabled)
			return errs.Forbidden(reasonViewDisabled)
		}
		if view, err = s.views.BeginView(ctx, person, s.cfg.ViewAsTTL); err != nil {
			return err
		}
		return s.audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionAccessViewAs), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: person,
			Details: map[string]any{"session_id": view.SessionID, "expires_at": view.ExpiresAt},
		})
	})
	if err != nil {
		return authz.ViewSession{}, "", err
	}
	token, err := s.views.ViewToken(ctx, view.SessionID)
	if err != nil {
		return authz.ViewSession{}, "", fmt.Errorf("make the token of a view: %w", err)
	}
	idempotency.ShowsSecret(ctx, view.SessionID)
	return view, token, nil
}

func (s *Service) mayBeViewed(ctx context.Context, person ids.ID) error {
	found, err := s.principals.Principals(ctx, []ids.ID{person})
	if err != nil {
		return fmt.Errorf("read the person: %w", err)
	}
	switch {
	case len(found) == 0 || found[0].Kind != actor.KindPerson || !found[0].Active:
		return errs.NotFound()
	case person == actor.From(ctx).ID:
		return errs.Invalid("/principal_id", "self", "You see the instance as yourself already.")
	}
	return nil
}

// withinView holds a view to reading, and to what the owner who looks may see as well: an
// owner is no part of other people's direct conversations.
func (s *Service) withinView(ctx context.Context, q *request, viewer ids.ID, held domain.Held) (verdict, error) {
	if !q.spec.ViewAs {
		return deny(errs.CodeForbidden, reasonViewReadOnly, held), nil
	}
	owner, err := s.entry(ctx, viewer)
	if err != nil {
		return verdict{}, err
	}
	if !owner.Active || !owner.Owner {
		return deny(errs.CodeUnauthenticated, reasonPrincipalInactive, held), nil
	}
	if q.spec.Self && q.own() {
		return verdict{held: held}, nil
	}
	oq := *q
	oq.caller = viewer
	return judge(&oq, owner), nil
}
