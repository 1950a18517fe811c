// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// resourceFor is something of the kind that lies in the open channel and belongs to nobody
// who asks.
func (b *bundle) resourceFor(kind authorize.ResourceKind) (r authorize.Resource, inPlace bool) {
	stranger := ids.New()
	switch kind {
	case authorize.ResourceSpace:
		return authorize.Space(b.space), true
	case authorize.ResourceChannel:
		return authorize.Channel(b.open), true
	case authorize.ResourceThread:
		return authorize.Thread(ids.New(), b.open), true
	case authorize.ResourceMessage:
		return authorize.Message(ids.New(), b.open, stranger), true
	case authorize.ResourceRun:
		return authorize.Resource{Kind: kind, ID: ids.New(), ChannelID: b.open, OwnerID: stranger}, true
	case authorize.ResourceAgent:
		return authorize.Resource{Kind: kind, ID: b.helper, ChannelID: b.open}, true
	case authorize.ResourceTarget:
		return authorize.Resource{Kind: kind, ID: b.space, SpaceID: b.space}, true
	case authorize.ResourceGrant:
		return authorize.Resource{Kind: kind, ID: ids.New(), SpaceID: b.space, OwnerID: stranger}, true
	case authorize.ResourceSelf:
		return authorize.Self(stranger), false
	default:
		return authorize.Resource{Kind: kind, ID: ids.New()}, false
	}
}

// Every action of the catalogue, by a person at each level: what is in a place is hidden
// below read, refused below the need and allowed at it, with every capability held.
func TestEveryActionAgainstEveryLevel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.agents[b.helper] = authz.AgentPolicy{AgentID: b.helper, BillingMode: "organization", Active: true}
	levels := []authorize.Level{authorize.LevelNone, authorize.LevelRead, authorize.LevelWrite, authorize.LevelTrigger, authorize.LevelManage}
	callers := map[authorize.Level]ids.ID{}
	var caps []string
	for _, c := range authorize.Capabilities() {
		caps = append(caps, string(c))
	}
	for _, l := range levels {
		callers[l] = b.person(authz.Principal{Kind: actor.KindPerson, Active: true})
		if l != authorize.LevelNone {
			b.give(callers[l], b.space, "space", string(l), caps...)
		}
	}
	for _, spec := range authorize.Catalogue {
		r, inPlace := b.resourceFor(spec.Resource)
		if !inPlace {
			continue
		}
		for _, l := range levels {
			err := b.svc.Authorize(b.as(callers[l]), spec.ID, r)
			if want := wanted(&spec, l); want == "" && err != nil || want != "" && !errs.Is(err, want) {
				t.Errorf("%s at %q: %v, want %q", spec.ID, l, err, want)
			}
		}
	}
}

func wanted(spec *authorize.Spec, l authorize.Level) errs.Code {
	person := spec.OpenTo(authorize.CallerPerson)
	visible := l.Includes(authorize.LevelRead)
	bare := spec.Level == authorize.LevelNone && spec.Capability == "" && len(spec.AnyOf) == 0 && !spec.OwnerOnly
	switch {
	case !visible, spec.Resource == authorize.ResourceGrant && len(spec.AnyOf) == 0:
		return errs.CodeNotFound // A grant shows only to who may manage it.
	case !person, spec.OwnerOnly, bare && spec.Self:
		return errs.CodeForbidden
	case len(spec.AnyOf) > 0: // Every capability is held, so one of the rights is.
		return ""
	case spec.Resource == authorize.ResourceAgent && spec.Effect == authorize.EffectRead:
		return ""
	case !l.Includes(spec.Level):
		return errs.CodeForbidden
	default:
		return ""
	}
}

// No action is open to a kind of caller that the catalogue does not name, whatever the
// caller holds.
func TestNoActionIsOpenToAnotherKindOfCaller(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.person(authz.Principal{Kind: actor.KindApp, Active: true})
	for _, p := range []ids.ID{b.helper, app} {
		b.give(p, ids.ID{}, "instance", "manage")
	}
	contexts := map[authorize.CallerKind]context.Context{
		authorize.CallerPerson: b.as(b.owner), authorize.CallerAgent: b.as(b.helper), authorize.CallerApp: b.as(app),
		authorize.CallerAnonymous: context.Background(),
		authorize.CallerSystem:    actor.With(context.Background(), actor.System()),
		authorize.CallerWebhook:   actor.With(context.Background(), actor.Actor{Kind: actor.KindWebhook}),
		authorize.CallerHost:      actor.With(context.Background(), actor.Actor{Kind: actor.KindHost}),
	}
	for _, spec := range authorize.Catalogue {
		for kind, ctx := range contexts {
			if spec.OpenTo(kind) {
				continue
			}
			r, _ := b.resourceFor(spec.Resource)
			if err := b.svc.Authorize(ctx, spec.ID, r); err == nil {
				t.Errorf("%s is open to %s", spec.ID, kind)
			}
		}
	}
}

// A token reaches what its scopes name and nothing that needs a session.
func TestEveryActionNeedsItsScope(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, spec := range authorize.Catalogue {
		r, _ := b.resourceFor(spec.Resource)
		if r.Kind == authorize.ResourceSelf {
			r = authorize.Self(b.owner)
		}
		if !spec.OpenTo(authorize.CallerPerson) || spec.Scope == authorize.ScopeNone {
			continue
		}
		with := func(scopes ...string) error {
			return b.svc.Authorize(actor.With(context.Background(), actor.Actor{
				ID: b.owner, Kind: actor.KindPerson, TokenID: ids.New(), Scopes: scopes,
			}), spec.ID, r)
		}
		if err := with("other.scope"); !errs.Is(err, errs.CodeScopeMissing) {
			t.Errorf("%s with another scope: %v", spec.ID, err)
		}
		err := with(spec.Scope, "messaging.admin")
		if session := spec.Scope == authorize.ScopeSession; session != errs.Is(err, errs.CodeScopeMissing) {
			t.Errorf("%s with the scope %s: %v", spec.ID, spec.Scope, err)
		}
	}
}
