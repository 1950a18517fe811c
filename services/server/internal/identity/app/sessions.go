// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// SessionView is a session in the caller's list.
type SessionView struct {
	ListedSession
	// Current marks the session that asks; SameNetwork one last used from the caller's network.
	Current, SameNetwork bool
}

// ListSessions gives the caller's living sessions, newest first, older than before.
func (s *Service) ListSessions(ctx context.Context, before ids.ID, limit int) ([]SessionView, error) {
	who, err := s.self(ctx, authorize.ActionSessionList)
	if err != nil {
		return nil, err
	}
	list, err := s.Store.ListSessions(ctx, who.ID, before, s.now(ctx), limit)
	if err != nil {
		return nil, err
	}
	here := s.network(ctx)
	views := make([]SessionView, len(list))
	for i, l := range list {
		views[i] = SessionView{ListedSession: l, Current: l.ID == who.SessionID, SameNetwork: here != "" && l.Network == here}
	}
	return views, nil
}

// RevokeSession ends a session of the caller, or of anybody for an owner.
func (s *Service) RevokeSession(ctx context.Context, id ids.ID) error {
	return s.Units.Do(ctx, func(ctx context.Context) error {
		session, found, err := s.Store.SessionByID(ctx, id)
		if err != nil {
			return err
		}
		if !found {
			return errs.NotFound()
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionSessionRevoke, onPrincipal(session.PrincipalID)); err != nil {
			return hidden(err)
		}
		why := endBy{reason: "revoked", by: bySelf}
		if actor.From(ctx).ID != session.PrincipalID {
			why = endBy{reason: "owner_revoked", by: byOwner}
		}
		ended, err := s.endSessionsCounted(ctx, session.PrincipalID, why, func(r SessionRef) bool { return r.ID == id })
		if err != nil || ended == 0 {
			return err
		}
		return s.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionSessionRevoke), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: session.PrincipalID,
			Details: map[string]any{"session_id": session.ID, "device_id": session.DeviceID},
		})
	})
}

// Logout ends the caller's session with its children.
func (s *Service) Logout(ctx context.Context) error {
	return s.Units.Do(ctx, func(ctx context.Context) error {
		who, err := s.self(ctx, authorize.ActionAuthLogout)
		if err != nil {
			return err
		}
		why := endBy{reason: "logout", by: bySelf}
		if err := s.endSessions(ctx, who.ID, why, func(r SessionRef) bool { return r.ID == who.SessionID }); err != nil {
			return err
		}
		return s.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionAuthLogout), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: who.ID,
		})
	})
}
