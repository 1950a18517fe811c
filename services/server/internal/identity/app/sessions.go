// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
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
	return s.listSessions(ctx, who.ID, before, limit)
}

// ListUserSessions gives the sessions of any person to an owner.
func (s *Service) ListUserSessions(ctx context.Context, person, before ids.ID, limit int) ([]SessionView, error) {
	if err := s.onPerson(ctx, authorize.ActionSessionList, person); err != nil {
		return nil, err
	}
	return s.listSessions(ctx, person, before, limit)
}

// onPerson checks an action on a person whose devices and sessions only she and owners know
// of.
func (s *Service) onPerson(ctx context.Context, action authorize.Action, id ids.ID) error {
	_, absent := s.person(ctx, id)
	if absent != nil && !errs.Is(absent, errs.CodeNotFound) {
		return absent
	}
	if err := s.Authorizer.Authorize(ctx, action, onPrincipal(id)); err != nil {
		return hidden(err)
	}
	return absent
}

func (s *Service) listSessions(ctx context.Context, person, before ids.ID, limit int) ([]SessionView, error) {
	list, err := s.Store.ListSessions(ctx, person, before, s.now(ctx), limit)
	if err != nil {
		return nil, err
	}
	who, here := actor.From(ctx), s.network(ctx)
	views := make([]SessionView, len(list))
	for i, l := range list {
		views[i] = SessionView{ListedSession: l, Current: l.ID == who.SessionID, SameNetwork: here != "" && l.Network == here}
	}
	return views, nil
}

// RevokeSession ends a session of the caller, or of anybody for an owner. It works in
// maintenance, as every act that takes a way in away: a stolen device cannot wait.
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
		if who := actor.From(ctx); session.ParentID.IsZero() || session.ParentID != who.SessionID {
			if err := s.needStepUp(ctx); err != nil {
				return err
			}
		}
		ended, err := s.endSessionsCounted(ctx, session.PrincipalID, revokedBy(ctx, session.PrincipalID), func(r SessionRef) bool { return r.ID == id })
		if err != nil || ended == 0 {
			return err
		}
		return s.auditSessions(ctx, session.PrincipalID, map[string]any{"session_id": session.ID, "device_id": session.DeviceID})
	}, txn.WithWriteInMaintenance())
}

// RevokeOtherSessions ends every session of the caller but the one that asks, with its
// children, and tells how many.
func (s *Service) RevokeOtherSessions(ctx context.Context) (int, error) {
	own := actor.From(ctx).SessionID
	return s.revokeSessions(ctx, actor.From(ctx).ID, func(r SessionRef) bool { return r.ID != own && r.ParentID != own })
}

// RevokeUserSessions ends every session of a person and tells how many.
func (s *Service) RevokeUserSessions(ctx context.Context, person ids.ID) (int, error) {
	return s.revokeSessions(ctx, person, everySession)
}

func (s *Service) revokeSessions(ctx context.Context, person ids.ID, choose func(SessionRef) bool) (ended int, err error) {
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.onPerson(ctx, authorize.ActionSessionRevoke, person); err != nil {
			return err
		}
		if err := s.needStepUp(ctx); err != nil {
			return err
		}
		var err error
		if ended, err = s.endSessionsCounted(ctx, person, revokedBy(ctx, person), choose); err != nil || ended == 0 {
			return err
		}
		return s.auditSessions(ctx, person, map[string]any{"ended": ended})
	}, txn.WithWriteInMaintenance())
	return ended, err
}

// revokedBy tells why a session of the person ends when the caller ends it.
func revokedBy(ctx context.Context, person ids.ID) endBy {
	if actor.From(ctx).ID == person {
		return endBy{reason: "revoked", by: bySelf}
	}
	return endBy{reason: "owner_revoked", by: byOwner}
}

func (s *Service) auditSessions(ctx context.Context, person ids.ID, details map[string]any) error {
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionSessionRevoke), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: person, Details: details,
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
