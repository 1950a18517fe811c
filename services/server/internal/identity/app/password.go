// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// SetPassword replaces the caller's password. The fresh proof that the action needs has
// shown the old one. Other sessions end unless the caller keeps them.
func (s *Service) SetPassword(ctx context.Context, password string, endOthers bool) error {
	who := actor.From(ctx)
	if err := s.maySetPassword(ctx, who); err != nil {
		return err
	}
	account, err := s.person(ctx, who.ID)
	if err != nil {
		return err
	}
	if err := s.checkPassword(ctx, "/password", password, account.Handle, account.Person.Email); err != nil {
		return err
	}
	hash, err := s.Hasher.Hash(ctx, password)
	if err != nil {
		return err
	}
	return s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.maySetPassword(ctx, who); err != nil {
			return err
		}
		return s.replacePassword(ctx, who, hash, endOthers)
	})
}

// maySetPassword is the check of local_credential.set: the right to act, and a proof of the
// person that is fresh.
func (s *Service) maySetPassword(ctx context.Context, who actor.Actor) error {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionLocalCredentialSet, authorize.Self(who.ID)); err != nil {
		return err
	}
	return s.needProof(ctx, authorize.ActionLocalCredentialSet, who)
}

func (s *Service) replacePassword(ctx context.Context, who actor.Actor, hash string, endOthers bool) error {
	before, err := s.lockedPerson(ctx, who.ID)
	if err != nil {
		return err
	}
	if before.Status != identity.StatusActive {
		return errs.NotFound()
	}
	if err := s.Store.SetPassword(ctx, who.ID, hash, s.now(ctx)); err != nil {
		return err
	}
	if endOthers {
		why := endBy{reason: "password_changed", by: bySelf}
		err := s.endSessions(ctx, who.ID, why, func(r SessionRef) bool { return r.ID != who.SessionID && r.ParentID != who.SessionID })
		if err != nil {
			return err
		}
	}
	change := "changed"
	if !before.Person.HasPassword {
		change = "set"
	}
	return s.passwordChanged(ctx, who, change)
}

// RemovePassword takes the caller's password away, unless it is her last way in. Who has
// none is left as she is.
func (s *Service) RemovePassword(ctx context.Context) error {
	who := actor.From(ctx)
	return s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.maySetPassword(ctx, who); err != nil {
			return err
		}
		before, err := s.lockedPerson(ctx, who.ID)
		if err != nil || !before.Person.HasPassword {
			return err
		}
		left := before.waysIn()
		left.Password = false
		if err := s.mayLoseWay(ctx, before, left, who); err != nil {
			return err
		}
		if err := s.Store.DeletePassword(ctx, who.ID); err != nil {
			return err
		}
		return s.passwordChanged(ctx, who, "removed")
	})
}

// passwordChanged tells the person's clients and the audit log.
func (s *Service) passwordChanged(ctx context.Context, who actor.Actor, change string) error {
	if _, err := s.announceUserByID(ctx, who.ID, changeProfile); err != nil {
		return err
	}
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionLocalCredentialSet), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: who.ID,
		Details: map[string]any{"change": change},
	})
}
