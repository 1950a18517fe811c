// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Scope implements authorize.Authorizer.
func (s *Service) Scope(ctx context.Context, action authorize.Action) (authorize.Scope, error) {
	scope, v, err := s.scope(ctx, action)
	r := authorize.Resource{Kind: authorize.ResourceNone}
	authorize.Note(ctx, authorize.Check{Action: action, Resource: r, Scoped: true, Allowed: err == nil && v.code == ""})
	if err != nil {
		return authorize.Scope{}, sourceError(action, err)
	}
	if v.code != "" {
		s.recordDenial(ctx, action, r, v.reason)
		return authorize.Scope{}, denial(action, v)
	}
	return scope, nil
}

func (s *Service) scope(ctx context.Context, action authorize.Action) (authorize.Scope, verdict, error) {
	spec, ok := s.spec(action)
	if !ok {
		return authorize.Scope{}, verdict{}, errs.Internal(fmt.Errorf("scope of %s: %s", action, reasonUnknownAction))
	}
	a := actor.From(ctx)
	// The checks that do not depend on a target are those of a request without one.
	open := *spec
	open.Level, open.Capability, open.AnyOf, open.Self = authorize.LevelNone, "", nil, false
	v, err := s.scopeAllowed(ctx, &open, a)
	if err != nil || v.code != "" {
		return authorize.Scope{}, v, err
	}
	version, err := s.version(ctx)
	if err != nil {
		return authorize.Scope{}, v, err
	}
	st, err := s.structureFor(ctx, version)
	if err != nil {
		return authorize.Scope{}, v, err
	}
	e, err := s.entry(ctx, a.ID)
	if err != nil {
		return authorize.Scope{}, v, err
	}
	reach := e.Reach(st)
	limitedBy := a.ViewedBy
	if a.ActingFor != nil {
		limitedBy = a.ActingFor.PrincipalID
	}
	if !limitedBy.IsZero() {
		other, err := s.entry(ctx, limitedBy)
		if err != nil {
			return authorize.Scope{}, v, err
		}
		reach = common(e, other, st)
	}
	return toScope(reach, version), v, nil
}

func (s *Service) scopeAllowed(ctx context.Context, spec *authorize.Spec, a actor.Actor) (verdict, error) {
	switch a.Kind {
	case actor.KindPerson, actor.KindAgent, actor.KindApp:
	default:
		return deny(errs.CodeUnauthenticated, reasonKindNotAllowed, domain.Held{}), nil
	}
	v, err := s.decidePrincipal(ctx, spec, actor.Actor{
		ID: a.ID, Kind: a.Kind, SessionID: a.SessionID, DeviceID: a.DeviceID, TokenID: a.TokenID,
		Scopes: a.Scopes, StepUpUntil: a.StepUpUntil, CredentialExpiresAt: a.CredentialExpiresAt,
	}, authorize.Resource{Kind: authorize.ResourceNone})
	if err == nil && v.code == "" && orderIsOver(spec, a) {
		return deny(errs.CodeForbidden, reasonOrderIsOver, domain.Held{}), nil
	}
	if err == nil && v.code == "" && !a.ViewedBy.IsZero() && !spec.ViewAs {
		return deny(errs.CodeForbidden, reasonViewReadOnly, domain.Held{}), nil
	}
	if err == nil && v.code == "" && a.ActingFor != nil && !spec.ActingFor {
		return deny(errs.CodeForbidden, reasonActingForLimited, domain.Held{}), nil
	}
	return v, err
}

// common is what two can both see, place by place: an agent and the person it works for, a
// person and the owner who looks as her.
func common(one, other *domain.Entry, st *domain.Structure) domain.Reach {
	var out domain.Reach
	for _, id := range st.Spaces() {
		if one.Space(id).Visible() && other.Space(id).Visible() {
			out.Spaces = append(out.Spaces, id)
		}
	}
	for _, id := range st.Channels() {
		c, ok := st.Channel(id)
		if !ok || !one.Channel(c).Visible() || !other.Channel(c).Visible() {
			continue
		}
		out.Channels = append(out.Channels, id)
		if _, whole := slices.BinarySearchFunc(out.Spaces, c.SpaceID, ids.ID.Compare); !whole && !c.Direct {
			out.PassingSpaces = append(out.PassingSpaces, c.SpaceID)
		}
	}
	out.PassingSpaces = sortedUnique(out.PassingSpaces)
	return out
}

func toScope(r domain.Reach, version int64) authorize.Scope {
	return authorize.Scope{
		All: r.All, Spaces: r.Spaces, Channels: r.Channels, PassingSpaces: r.PassingSpaces, PermissionVersion: version,
	}
}
