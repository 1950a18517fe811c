// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// maxIdentities bounds the identities of one person.
const maxIdentities = 50

// Identity is who a person is at a provider.
type Identity struct {
	ID, PrincipalID, ProviderID ids.ID
	ProviderKey, ProviderName   string
	// Enabled says that people may sign in by the provider now.
	Enabled bool
	Label   string
	// Issuer and Subject are set when an identity is stored, and never shown.
	Issuer, Subject string
	LinkedAt        time.Time
	LastLoginAt     *time.Time
}

// ListIdentities gives the identities of a person: the caller, or for owners anybody.
func (s *Service) ListIdentities(ctx context.Context, principal ids.ID) ([]Identity, error) {
	if principal.IsZero() {
		principal = actor.From(ctx).ID
	}
	if err := s.Authorizer.Authorize(ctx, authorize.ActionIdentityRead, onPrincipal(principal)); err != nil {
		return nil, hidden(err)
	}
	if _, err := s.person(ctx, principal); err != nil {
		return nil, err
	}
	return s.Store.ListIdentities(ctx, principal, maxIdentities)
}

// BegunLink is a link under way.
type BegunLink struct {
	Flow     Flow
	External ExternalRequest
}

// BeginIdentityLink sends the browser of a signed-in person to a provider. browser is what
// it shows from an earlier attempt.
func (s *Service) BeginIdentityLink(ctx context.Context, provider ids.ID, returnTo, browser string) (BegunLink, error) {
	who, err := s.self(ctx, authorize.ActionIdentityLink)
	if err != nil {
		return BegunLink{}, err
	}
	var v errs.Validation
	target := returnTarget(returnTo, &v)
	if err := v.Err(); err != nil {
		return BegunLink{}, err
	}
	p, err := s.enabledProvider(ctx, provider)
	if err != nil {
		return BegunLink{}, err
	}
	session, found, err := s.Store.SessionByID(ctx, who.SessionID)
	if err != nil {
		return BegunLink{}, err
	}
	if !found || session.Kind != kindLogin {
		return BegunLink{}, errs.Forbidden("session_limited")
	}
	now := s.now(ctx)
	begun := BegunLink{Flow: Flow{
		ID: ids.NewAt(now), Driver: DriverOIDC, Purpose: purposeLink, PrincipalID: who.ID, SessionID: who.SessionID, JKT: session.JKT,
		State: flowOpen, CreatedAt: now, ExpiresAt: now.Add(s.cfg.LoginFlowTTL),
	}}
	if begun.External, err = s.goToProvider(ctx, p, target, browser, &begun.Flow); err != nil {
		return BegunLink{}, err
	}
	return begun, s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.InsertFlow(ctx, begun.Flow) })
}

// CompleteIdentityLink links what the provider said with the caller, in the session that
// began.
func (s *Service) CompleteIdentityLink(ctx context.Context, flowID ids.ID, code string) (Identity, error) {
	who, err := s.self(ctx, authorize.ActionIdentityLink)
	if err != nil {
		return Identity{}, err
	}
	flow, err := s.flow(ctx, flowID, purposeLink, flowExternal)
	if err != nil {
		return Identity{}, err
	}
	if flow.SessionID != who.SessionID || flow.PrincipalID != who.ID {
		return Identity{}, errFlowExpired()
	}
	fits, err := s.provenExternally(ctx, flow, code)
	if err != nil {
		return Identity{}, err
	}
	if !fits {
		return Identity{}, errFlowExpired()
	}
	var made Identity
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		who, err := s.self(ctx, authorize.ActionIdentityLink)
		if err != nil {
			return err
		}
		if err := s.consume(ctx, flow.ID); err != nil {
			return err
		}
		if _, err := s.lockedPerson(ctx, who.ID); err != nil {
			return err
		}
		p, err := s.enabledProvider(ctx, flow.By.ProviderID)
		if err != nil {
			return errFlowExpired()
		}
		if made, err = s.link(ctx, p, who.ID, *flow.By.Person, false); err != nil {
			return err
		}
		_, err = s.announceUserByID(ctx, who.ID, changeProfile)
		return err
	})
	return made, err
}

// link stores who a person is at a provider, in the running unit. login says that she comes
// in by it at the same time.
func (s *Service) link(ctx context.Context, p Provider, principal ids.ID, e domain.External, login bool) (Identity, error) {
	now := s.now(ctx)
	known, err := s.Store.ListIdentities(ctx, principal, maxIdentities)
	if err != nil {
		return Identity{}, err
	}
	if len(known) == maxIdentities {
		return Identity{}, errs.Conflict("identity_limit", "There are too many identities. Unlink one first.")
	}
	_, taken, err := s.Store.IdentityBySubject(ctx, p.ID, e.Issuer, e.Subject)
	if err != nil {
		return Identity{}, err
	}
	if taken {
		return Identity{}, errs.Conflict("identity_in_use", "This identity is linked already, with you or with somebody else.")
	}
	one := Identity{
		ID: ids.NewAt(now), PrincipalID: principal, ProviderID: p.ID, ProviderKey: p.Key, ProviderName: p.DisplayName, Enabled: p.Enabled,
		Label: e.Label(), Issuer: e.Issuer, Subject: e.Subject, LinkedAt: now,
	}
	if login {
		one.LastLoginAt = &now
	}
	if err := s.Store.InsertIdentity(ctx, one); err != nil {
		return Identity{}, err
	}
	return one, s.auditIdentity(ctx, authorize.ActionIdentityLink, one)
}

func (s *Service) auditIdentity(ctx context.Context, action authorize.Action, one Identity) error {
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(action), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: one.PrincipalID,
		Details: map[string]any{"identity_id": one.ID, "provider": one.ProviderKey},
	})
}

// UnlinkIdentity takes an identity from a person: the caller, or for owners anybody. Nobody
// takes her own last way in, and no owner is left without one. Memberships that the groups
// of the provider brought end with the last identity there.
func (s *Service) UnlinkIdentity(ctx context.Context, principal, id ids.ID) error {
	if principal.IsZero() {
		principal = actor.From(ctx).ID
	}
	var err error
	for range admissionTries {
		if err = s.unlinkOnce(ctx, principal, id); !errors.Is(err, authz.ErrClaimsMoved) {
			return err
		}
	}
	return errs.Unavailable(err)
}

func (s *Service) unlinkOnce(ctx context.Context, principal, id ids.ID) error {
	one, last, err := s.identityOf(ctx, principal, id)
	if err != nil {
		return err
	}
	nothing := authz.Claims{PrincipalID: principal, ProviderID: one.ProviderID}
	if last {
		nothing.Values = []string{}
	}
	options, err := s.ClaimGroups.Declare(ctx, nothing)
	if err != nil {
		return err
	}
	return s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.unlink(ctx, principal, id); err != nil {
			return err
		}
		return s.ClaimGroups.Sync(ctx, nothing)
	}, options...)
}

// unlink is the unit, but for the groups.
func (s *Service) unlink(ctx context.Context, principal, id ids.ID) error {
	account, err := s.lockedPerson(ctx, principal)
	if err != nil {
		return err
	}
	one, _, err := s.identityOf(ctx, principal, id)
	if err != nil {
		return err
	}
	left := account.waysIn()
	if one.Enabled {
		left.Identities--
	}
	if err := s.mayLoseWay(ctx, account, left, actor.From(ctx)); err != nil {
		return err
	}
	if err := s.Store.DeleteIdentity(ctx, principal, id); err != nil {
		return err
	}
	if _, err := s.announceUserByID(ctx, principal, changeProfile); err != nil {
		return err
	}
	return s.auditIdentity(ctx, authorize.ActionIdentityUnlink, one)
}

// identityOf checks the action and reads an identity of a person; last says that she has no
// other one at that provider.
func (s *Service) identityOf(ctx context.Context, principal, id ids.ID) (one Identity, last bool, err error) {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionIdentityUnlink, onPrincipal(principal)); err != nil {
		return Identity{}, false, hidden(err)
	}
	list, err := s.Store.ListIdentities(ctx, principal, maxIdentities)
	if err != nil {
		return Identity{}, false, err
	}
	found, atProvider := false, map[ids.ID]int{}
	for _, each := range list {
		atProvider[each.ProviderID]++
		if each.ID == id {
			one, found = each, true
		}
	}
	if !found {
		return Identity{}, false, errs.NotFound()
	}
	return one, atProvider[one.ProviderID] == 1, nil
}
