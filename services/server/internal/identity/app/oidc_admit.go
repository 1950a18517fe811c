// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// admission is who an external person is here, as far as it was looked up.
type admission struct {
	how domain.Admission
	// principal is the person; for a new one the ID she will have.
	principal ids.ID
	// identity is the link that is known, zero otherwise.
	identity ids.ID
	refusal  string
}

// errAdmissionMoved means that somebody was linked, made or changed since the look.
var errAdmissionMoved = errors.New("who the external person is has changed meanwhile")

// admissionTries bounds the repetitions of a login whose ground moves under it.
const admissionTries = 3

// admitExternal lets a verified person in. Whether her login changes rights, because she is
// new or her groups have changed, is declared before the unit and checked inside it.
func (s *Service) admitExternal(ctx context.Context, flow Flow, p Provider, key []byte) (LoginResult, error) {
	var moved error
	for range admissionTries {
		a, err := s.lookUp(ctx, p, *flow.By.Person)
		if err != nil {
			return LoginResult{}, err
		}
		if a.refusal != "" {
			return LoginResult{}, s.refuseAdmission(ctx, flow, p, a)
		}
		if a.how == domain.AdmitProvision {
			a.principal = ids.NewAt(s.now(ctx))
		}
		result, err := s.enterExternal(ctx, flow, p, a, key)
		if !errors.Is(err, errAdmissionMoved) && !errors.Is(err, authz.ErrClaimsMoved) {
			return result, err
		}
		moved = err
	}
	return LoginResult{}, errs.Unavailable(moved)
}

// lookUp finds out who an external person is. It works inside and outside units.
func (s *Service) lookUp(ctx context.Context, p Provider, e domain.External) (admission, error) {
	var a admission
	link, known, err := s.Store.IdentityBySubject(ctx, p.ID, e.Issuer, e.Subject)
	if err != nil {
		return a, err
	}
	var match PersonMatch
	if !known && p.LinkByEmail && e.EmailVerified {
		if match, err = s.Store.PersonByEmail(ctx, p.ID, e.Email); err != nil {
			return a, err
		}
	}
	a.how, a.refusal = domain.Admit(p.rules(), e, known, match.EmailMatch)
	switch a.how {
	case domain.AdmitKnown:
		a.identity, a.principal = link.ID, link.PrincipalID
	case domain.AdmitLink:
		a.principal = match.PrincipalID
	}
	return a, nil
}

func (s *Service) refuseAdmission(ctx context.Context, flow Flow, p Provider, a admission) error {
	s.auditVisit(ctx, flow, p.Key, a.refusal)
	return errs.New(errs.CodeForbidden, refusalTexts[a.refusal]).WithReason(a.refusal)
}

var refusalTexts = map[string]string{
	domain.RefuseACR:            "The provider did not prove you in the way that is asked for here.",
	domain.RefuseClaim:          "The provider did not give your e-mail address, which is needed here.",
	domain.RefuseNotProvisioned: "You have no account here. Ask an owner to invite you, or link this identity to your account first.",
	domain.RefuseDomain:         "Accounts are made for addresses of certain domains only, and yours is not one of them.",
}

// claimsOf are the groups of an external person for authz.
func claimsOf(p Provider, principal ids.ID, e domain.External) authz.Claims {
	return authz.Claims{PrincipalID: principal, ProviderID: p.ID, Values: e.Groups, ValidFor: p.ClaimTTL}
}

func (s *Service) enterExternal(ctx context.Context, flow Flow, p Provider, a admission, key []byte) (LoginResult, error) {
	claims := claimsOf(p, a.principal, *flow.By.Person)
	var options []txn.Option
	var err error
	if a.how == domain.AdmitProvision {
		options = append(options, txn.WithRightsChange(txn.RightsChange{Action: string(authorize.ActionUserCreate), Principals: []ids.ID{a.principal}}))
	} else if options, err = s.ClaimGroups.Declare(ctx, claims); err != nil {
		return LoginResult{}, err
	}
	var made issued
	var account Account
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.consume(ctx, flow.ID); err != nil {
			return err
		}
		if err := s.settleExternal(ctx, flow, p, a); err != nil {
			return err
		}
		if err := s.ClaimGroups.Sync(ctx, claims); err != nil {
			return err
		}
		made, account, err = s.enter(ctx, flow, a.principal, key, provenByProvider(p, *flow.By.Person))
		return err
	}, options...)
	if err != nil {
		return LoginResult{}, err
	}
	return s.result(ctx, made, &account)
}

// provenByProvider is no fresh proof of presence: the provider may have asked long ago. A
// second factor counts only where the provider is believed about it.
func provenByProvider(p Provider, e domain.External) provenBy {
	how := provenBy{amr: []string{DriverOIDC}}
	if p.TrustMFA && e.MFA {
		how.amr = append(how.amr, "mfa")
	}
	return how
}

// settleExternal makes sure, in the unit, that the person is still who she was found to be,
// and writes what the login changes about her.
func (s *Service) settleExternal(ctx context.Context, flow Flow, p Provider, a admission) error {
	e := *flow.By.Person
	now, err := s.lookUp(ctx, p, e)
	if err != nil {
		return err
	}
	if now.how != a.how || a.how != domain.AdmitProvision && now.principal != a.principal {
		return errAdmissionMoved
	}
	if a.how == domain.AdmitProvision {
		return s.provision(ctx, p, a, e)
	}
	person, err := s.lockedPerson(ctx, a.principal)
	if err != nil {
		return err
	}
	if person.Status != identity.StatusActive {
		return errLoginFailed()
	}
	if a.how == domain.AdmitLink {
		if _, err := s.link(asPerson(ctx, Device{PrincipalID: a.principal}), p, a.principal, e, true); err != nil {
			return err
		}
	} else if err := s.Store.UseIdentity(ctx, a.identity, s.now(ctx)); err != nil {
		return err
	}
	return s.updateEmail(ctx, p, person, e)
}

// provision makes the person of a first login.
func (s *Service) provision(ctx context.Context, p Provider, a admission, e domain.External) error {
	in := CreateUserInput{DisplayName: e.Name, Locale: e.Locale}
	if err := s.defaultRegion(ctx, &in); err != nil {
		return err
	}
	var err error
	if in.Handle, err = s.freeHandle(ctx, a.principal, e); err != nil {
		return err
	}
	// A name that could be taken for an owner's is no reason to keep somebody out.
	if in.DisplayName == "" || s.checkDisplayName(ctx, in.DisplayName, a.principal) != nil {
		in.DisplayName = in.Handle
	}
	taken, err := s.emailTaken(ctx, e.Email, a.principal)
	if err != nil {
		return err
	}
	if !taken {
		in.Email = e.Email
	}
	ctx = asPerson(ctx, Device{PrincipalID: a.principal})
	if err := s.insertPerson(ctx, a.principal, in); err != nil {
		return err
	}
	if in.Email != "" && e.EmailVerified {
		if err := s.Store.SetVerifiedEmail(ctx, a.principal, in.Email, true); err != nil {
			return err
		}
	}
	if _, err := s.link(ctx, p, a.principal, e, true); err != nil {
		return err
	}
	if _, err := s.announceUserByID(ctx, a.principal, changeCreated); err != nil {
		return err
	}
	if taken {
		s.auditTakenEmail(ctx, p, a.principal)
	}
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionUserCreate), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: a.principal,
		Details: map[string]any{"handle": in.Handle, "guest": false, "issue_code": false},
	})
}

// handleTries is how many numbers are tried behind a taken handle.
const handleTries = 100

// freeHandle finds a handle for a new person. Handles are locked one after the other, each
// only to be looked at; two logins at a time that meet there make one of them repeat.
func (s *Service) freeHandle(ctx context.Context, principal ids.ID, e domain.External) (string, error) {
	for attempt := 1; attempt <= handleTries; attempt++ {
		handle := domain.SuggestHandle(e, attempt)
		if err := s.lockHandles(ctx, handle); err != nil {
			return "", err
		}
		err := s.claimHandle(ctx, handle, principal)
		if err == nil {
			return handle, nil
		}
		if !errs.Is(err, errs.CodeConflict) {
			return "", err
		}
	}
	return "user-" + strings.ToLower(principal.String())[24:], nil
}

// emailTaken reports whether somebody else has the address. No address is free.
func (s *Service) emailTaken(ctx context.Context, email string, principal ids.ID) (bool, error) {
	if email == "" {
		return false, nil
	}
	holder, found, err := s.Store.EmailHolder(ctx, email)
	return found && holder != principal, err
}

// updateEmail follows the provider: its address becomes the person's, unless somebody else
// has it. A provider that tells none changes nothing, and an address that nobody verified
// does not take the place of one that somebody did.
func (s *Service) updateEmail(ctx context.Context, p Provider, person Account, e domain.External) error {
	same := strings.EqualFold(person.Person.Email, e.Email)
	if e.Email == "" || person.Person.EmailVerified && (same || !e.EmailVerified) || same && !e.EmailVerified {
		return nil
	}
	taken, err := s.emailTaken(ctx, e.Email, person.ID)
	if err != nil {
		return err
	}
	if taken {
		s.auditTakenEmail(ctx, p, person.ID)
		return nil
	}
	if err := s.Store.SetVerifiedEmail(ctx, person.ID, e.Email, e.EmailVerified); err != nil {
		return err
	}
	_, err = s.announceUserByID(asPerson(ctx, Device{PrincipalID: person.ID}), person.ID, changeProfile)
	return err
}

func (s *Service) auditTakenEmail(ctx context.Context, p Provider, principal ids.ID) {
	s.Audit.Denied(ctx, auditing.Entry{
		Action: string(authorize.ActionAuthLoginComplete), Reason: "email_taken", ResourceKind: string(authorize.ResourcePrincipal),
		ResourceID: principal, Details: map[string]any{"driver": DriverOIDC, "provider": p.Key},
	})
}
