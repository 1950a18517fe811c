// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// kindView is the kind of a session in which an owner looks at the instance as somebody else.
// It belongs to the person who is looked at, so that she finds it among her sessions and ends
// it as any other; the owner's session is its parent and her device holds its key.
const kindView = "view_as"

var _ authz.ViewSessions = (*Service)(nil)

// BeginView implements authz.ViewSessions.
func (s *Service) BeginView(ctx context.Context, person ids.ID, ttl time.Duration) (authz.ViewSession, error) {
	who, now := actor.From(ctx), s.now(ctx)
	parent, found, err := s.Store.LockSession(ctx, who.SessionID)
	if err != nil {
		return authz.ViewSession{}, err
	}
	if !found || !parent.Live(now) {
		return authz.ViewSession{}, errSessionEnded()
	}
	looking, err := s.Store.HasView(ctx, parent.ID, now)
	if err != nil {
		return authz.ViewSession{}, err
	}
	if looking {
		return authz.ViewSession{}, errs.Conflict("already_viewing", "You are looking as somebody already. End that first.")
	}
	view := Session{
		ID: ids.NewAt(now), PrincipalID: person, DeviceID: parent.DeviceID, ParentID: parent.ID, Kind: kindView, Driver: parent.Driver,
		AMR: parent.AMR, AuthTime: parent.AuthTime, JKT: parent.JKT, ExpiresAt: now.Add(ttl),
	}
	if view.ExpiresAt.After(parent.ExpiresAt) {
		view.ExpiresAt = parent.ExpiresAt
	}
	return authz.ViewSession{SessionID: view.ID, ExpiresAt: view.ExpiresAt}, s.Store.InsertView(ctx, view, who.ID, now)
}

// ViewToken implements authz.ViewSessions.
func (s *Service) ViewToken(ctx context.Context, session ids.ID) (string, error) {
	view, found, err := s.Store.SessionByID(ctx, session)
	if err != nil {
		return "", err
	}
	if !found {
		return "", errSessionEnded()
	}
	return s.accessToken(ctx, view, s.Clock.Now())
}

// EndViewAs ends a view: the owner who looks may, from the view itself or from another
// session of hers, and the person who is looked at.
func (s *Service) EndViewAs(ctx context.Context, id ids.ID) error {
	return s.Units.Do(ctx, func(ctx context.Context) error {
		viewer, found, err := s.Store.Viewer(ctx, id, s.now(ctx))
		if err != nil {
			return err
		}
		view, _, err := s.Store.SessionByID(ctx, id)
		if err != nil {
			return err
		}
		r := onPrincipal(view.PrincipalID)
		r.Related = append(r.Related, viewer)
		if err := s.Authorizer.Authorize(ctx, authorize.ActionAccessViewAsEnd, r); err != nil {
			return hidden(err)
		}
		if !found {
			return errs.NotFound()
		}
		why := endBy{reason: "revoked", by: bySelf}
		if who := actor.From(ctx); who.ID == viewer || who.ViewedBy == viewer {
			why.by = byOwner
		}
		if err := s.endSessions(ctx, view.PrincipalID, why, func(r SessionRef) bool { return r.ID == id }); err != nil {
			return err
		}
		return s.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionAccessViewAsEnd), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: view.PrincipalID,
			Details: map[string]any{"session_id": id, "viewer_id": viewer},
		})
	})
}
