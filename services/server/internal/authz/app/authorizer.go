// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Authorize implements authorize.Authorizer.
func (s *Service) Authorize(ctx context.Context, action authorize.Action, r authorize.Resource) error {
	v, err := s.decide(ctx, action, r)
	authorize.Note(ctx, authorize.Check{Action: action, Resource: r, Allowed: err == nil && v.code == ""})
	if err != nil {
		return err
	}
	if v.code == "" {
		return nil
	}
	s.recordDenial(ctx, action, r, v.reason)
	return denial(action, v)
}

// Prepare implements authorize.Preparer: the version of all rights is read by the next read of the unit. A change between
// that read and the commit repeats the unit, so reading early decides nothing too early.
func (s *Service) Prepare(ctx context.Context) error { return s.queueVersion(ctx) }

// Allowed implements authorize.Authorizer.
func (s *Service) Allowed(ctx context.Context, action authorize.Action, r authorize.Resource) (bool, error) {
	v, err := s.decide(ctx, action, r)
	allowed := err == nil && v.code == ""
	authorize.Note(ctx, authorize.Check{Action: action, Resource: r, Allowed: allowed})
	return allowed, err
}

// decide runs the checks in their order and stops at the first that fails. The error is for
// sources that cannot answer: never an allow.
func (s *Service) decide(ctx context.Context, action authorize.Action, r authorize.Resource) (verdict, error) {
	spec, ok := s.spec(action)
	if !ok {
		return verdict{}, errs.Internal(fmt.Errorf("authorize %s: %s", action, reasonUnknownAction))
	}
	a := actor.From(ctx)
	switch a.Kind {
	case actor.KindPerson, actor.KindAgent, actor.KindApp:
		v, err := s.decidePrincipal(ctx, spec, a, r)
		return v, sourceError(action, err)
	case actor.KindSystem:
		// The server's own acts need no right, but each must be one of them.
		if !spec.OpenTo(authorize.CallerSystem) {
			return deny(errs.CodeForbidden, reasonKindNotAllowed, domain.Held{}), nil
		}
		return verdict{}, nil
	default:
		if !spec.OpenTo(authorize.CallerKind(a.Kind)) {
			return deny(errs.CodeUnauthenticated, reasonKindNotAllowed, domain.Held{}), nil
		}
		return verdict{}, nil
	}
}

func (s *Service) decidePrincipal(ctx context.Context, spec *authorize.Spec, a actor.Actor, r authorize.Resource) (verdict, error) {
	if err := s.queueVersion(ctx); err != nil {
		return verdict{}, err
	}
	if err := s.checkCredential(ctx, a); err != nil {
		if errs.Is(err, errs.CodeUnauthenticated) {
			return deny(errs.CodeUnauthenticated, reasonCredentialRevoked, domain.Held{}), nil
		}
		return verdict{}, err
	}
	p, err := s.locate(ctx, r)
	if err != nil {
		return verdict{}, err
	}
	e, err := s.entry(ctx, a.ID)
	if err != nil {
		return verdict{}, err
	}
	if !e.Active {
		return deny(errs.CodeUnauthenticated, reasonPrincipalInactive, domain.Held{}), nil
	}
	q := request{spec: spec, kind: a.Kind, caller: a.ID, scopes: a.Scopes, r: r, p: p}
	if q.meets(e) {
		if q.shared, err = s.sharesPlace(ctx, e, r.ID); err != nil {
			return verdict{}, err
		}
	}
	v := judge(&q, e)
	if p.remembered && (v.code == errs.CodeNotFound || v.code != "" && !p.found && e.Owner) {
		// A place made a moment ago may not have come through the log yet. The source is asked
		// for hidden places as well, so that those take the same statements as missing ones. An
		// owner sees a grant wherever it lies, so for her a missing place is no hidden thing.
		if q.p, err = s.confirm(ctx, p); err != nil {
			return verdict{}, err
		}
		v = judge(&q, e)
	}
	if v.code != "" {
		return v, nil
	}
	return s.limits(ctx, &q, a, e)
}

// limits are the checks that only take away: invariants of agents, the person an agent works
// for, and the fresh proof, which comes last so that nobody proves herself in vain.
func (s *Service) limits(ctx context.Context, q *request, a actor.Actor, e *domain.Entry) (verdict, error) {
	held := q.p.held(e)
	if q.spec.ID == authorize.ActionAgentInvoke {
		ok, err := s.mayTrigger(ctx, a, q.r.ID)
		if err != nil {
			return verdict{}, err
		}
		if !ok {
			return deny(errs.CodeForbidden, reasonI1Personal, held), nil
		}
	}
	if orderIsOver(q.spec, a) {
		return deny(errs.CodeForbidden, reasonOrderIsOver, held), nil
	}
	if a.ActingFor != nil {
		ok, err := s.withinOrder(ctx, q, a)
		if err != nil {
			return verdict{}, err
		}
		if !ok {
			return deny(errs.CodeForbidden, reasonActingForLimited, held), nil
		}
	}
	if !a.ViewedBy.IsZero() {
		if v, err := s.withinView(ctx, q, a.ViewedBy, held); err != nil || v.code != "" {
			return v, err
		}
	}
	if q.spec.StepUp == authorize.StepUpAlways && !a.StepUpUntil.After(s.now(ctx)) {
		return deny(errs.CodeStepUpRequired, reasonStepUpMissing, held), nil
	}
	return verdict{held: held}, nil
}

// orderIsOver holds a credential of a run that has ended to that run, whose module answers by
// its state: the agent may end it once more, and learns of everything else that it is over.
func orderIsOver(spec *authorize.Spec, a actor.Actor) bool {
	return a.ActingFor != nil && a.ActingFor.Ended && (spec.Module != "runs" || spec.ID == authorize.ActionAgentInvoke)
}

// mayTrigger keeps an agent that one person pays for to that person.
func (s *Service) mayTrigger(ctx context.Context, a actor.Actor, agent ids.ID) (bool, error) {
	policies, err := s.agents.AgentPolicies(ctx, []ids.ID{agent})
	if err != nil {
		return false, fmt.Errorf("read the policy of an agent: %w", err)
	}
	person := a.ID
	if a.ActingFor != nil {
		person = a.ActingFor.PrincipalID
	}
	for _, p := range policies {
		if p.AgentID == agent {
			return p.BillingMode != billingPersonal || p.HolderID == person, nil
		}
	}
	return false, nil
}

const billingPersonal = "personal"

// withinOrder asks the same of the person on whose order the agent works: an order gives an
// agent nothing that the person does not have. What is the agent's own is not the person's.
func (s *Service) withinOrder(ctx context.Context, q *request, a actor.Actor) (bool, error) {
	if !q.spec.ActingFor {
		return false, nil
	}
	if q.spec.Self && q.own() && q.r.Kind != authorize.ResourceMessage {
		return true, nil
	}
	person, err := s.entry(ctx, a.ActingFor.PrincipalID)
	if err != nil {
		return false, err
	}
	if !person.Active {
		return false, nil
	}
	pq := *q
	pq.caller, pq.kind, pq.scopes = person.ID, a.Kind, nil
	if q.own() {
		// What the agent wrote counts as the person's for her rights on it.
		pq.r.OwnerID = person.ID
	}
	if q.spec.ID == authorize.ActionAgentInvoke {
		pq.kind = actor.KindPerson
	}
	if pq.shared = false; pq.meets(person) {
		if pq.shared, err = s.sharesPlace(ctx, person, pq.r.ID); err != nil {
			return false, err
		}
	}
	return judge(&pq, person).code == "", nil
}

// recordDenial writes the audit row of a denial where the catalogue asks for it.
func (s *Service) recordDenial(ctx context.Context, action authorize.Action, r authorize.Resource, reason string) {
	if spec, ok := s.spec(action); !ok || !spec.AuditDeny {
		return
	}
	s.audit.Denied(ctx, auditing.Entry{
		Action: string(action), Reason: reason, ResourceKind: string(r.Kind), ResourceID: r.ID,
		SpaceID: r.SpaceID, ChannelID: r.ChannelID,
	})
}

// denial puts a verdict into the words of the answer. What is hidden and what is missing
// sound the same.
func denial(action authorize.Action, v verdict) error {
	switch v.code {
	case errs.CodeNotFound:
		return errs.NotFound()
	case errs.CodeUnauthenticated:
		return errs.New(v.code, "Sign in again.")
	case errs.CodeScopeMissing:
		return errs.New(v.code, "The token lacks the scope for "+string(action)+".")
	case errs.CodeChannelReadOnly:
		return errs.New(v.code, "This channel takes no more messages.")
	case errs.CodeStepUpRequired:
		return stepUpRequired()
	}
	e := errs.Forbidden(v.reason)
	if v.reason == domain.ReasonLevelInsufficient && v.held.Level != domain.None {
		e.Message = "You have `" + v.held.Level.String() + "` here; this needs more."
	}
	return e
}

func stepUpRequired() error {
	return errs.New(errs.CodeStepUpRequired, "Prove again that it is you, then repeat.")
}

// requireStepUp is the check of actions whose need for a fresh proof depends on their content.
func (s *Service) requireStepUp(ctx context.Context) error {
	if actor.From(ctx).StepUpUntil.After(s.now(ctx)) {
		return nil
	}
	return stepUpRequired()
}

// sourceError makes every failure of a source a refusal that passes, but for the repetition
// of a unit and for what has a public meaning already.
func sourceError(action authorize.Action, err error) error {
	if err == nil {
		return nil // First, so that a decision from memory allocates nothing.
	}
	var public *errs.Error
	if errors.As(err, &public) || errors.Is(err, txn.ErrRetry) {
		return err
	}
	return errs.Unavailable(fmt.Errorf("authorize %s: %w", action, err))
}
