// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"slices"

	"pgregory.net/rapid"

	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
	authzdomain "github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/test/permissions"
)

// noPlace is where nothing is.
var noPlace = ids.New()

// resources lists things of a kind: in every place there is, in one that does not exist, of the
// caller and of somebody else.
func (s *stage) resources(kind authorize.ResourceKind, caller ids.ID) []authorize.Resource {
	nobody, missing := ids.New(), noPlace
	var out []authorize.Resource
	channels := []ids.ID{missing}
	for _, c := range s.world.Channels {
		channels = append(channels, c.ID)
	}
	spaces := []ids.ID{missing}
	for _, sp := range s.world.Spaces {
		spaces = append(spaces, sp.ID)
	}
	owned := func(r authorize.Resource) {
		for _, who := range []ids.ID{caller, nobody} {
			r.OwnerID = who
			out = append(out, r)
		}
	}
	switch kind {
	case authorize.ResourceNone, authorize.ResourceInstance:
		out = append(out, authorize.Resource{Kind: kind})
	case authorize.ResourceSelf:
		out = append(out, authorize.Self(caller), authorize.Self(nobody))
	case authorize.ResourcePrincipal:
		out = append(out, authorize.Resource{Kind: kind, ID: caller}, authorize.Resource{Kind: kind, ID: s.owner}, authorize.Resource{Kind: kind, ID: missing})
	case authorize.ResourceSpace:
		for _, id := range spaces {
			out = append(out, authorize.Space(id))
		}
	case authorize.ResourceChannel:
		for _, id := range channels {
			out = append(out, authorize.Channel(id))
		}
	case authorize.ResourceThread:
		for _, id := range channels {
			out = append(out, authorize.Thread(ids.New(), id))
		}
	case authorize.ResourceMessage, authorize.ResourceRun:
		for _, id := range channels {
			owned(authorize.Resource{Kind: kind, ID: ids.New(), ChannelID: id})
		}
	case authorize.ResourceAgent:
		out = append(out, authorize.Resource{Kind: kind})
		for _, agent := range s.ofKind("agent") {
			out = append(out, authorize.Resource{Kind: kind, ID: agent})
			for _, id := range channels {
				out = append(out, authorize.Resource{Kind: kind, ID: agent, ChannelID: id})
			}
		}
	case authorize.ResourceGroup:
		for _, g := range s.world.Groups {
			out = append(out, authorize.Resource{Kind: kind, ID: g.ID})
		}
	case authorize.ResourceGrant, authorize.ResourceTarget:
		owned(authorize.Resource{Kind: kind, ID: ids.New()})
		for _, id := range spaces {
			owned(authorize.Resource{Kind: kind, ID: ids.New(), SpaceID: id})
		}
		for _, id := range channels {
			owned(authorize.Resource{Kind: kind, ID: ids.New(), ChannelID: id})
		}
	}
	return out
}

// credential is how a question is asked: with a login or with a token, with or without a fresh
// proof, on an order or not, by the caller herself or by somebody who looks as her.
type credential struct {
	scopes        []string
	fresh         bool
	order, viewer ids.ID
}

func (s *stage) credentials(rt *rapid.T, caller ids.ID) []credential {
	out := []credential{{fresh: true}}
	switch rapid.IntRange(0, 4).Draw(rt, "credential") {
	case 0:
		out = append(out, credential{})
	case 1:
		out = append(out, credential{scopes: []string{"chat.read", "messaging.write", "identity.read", "agents.admin"}, fresh: true})
	case 2:
		if s.world.Principal(caller).Kind == "agent" {
			out = append(out, credential{fresh: true, order: one(rt, s.ofKind("person"), "order of")})
		}
	case 3:
		if s.world.Principal(caller).Kind == "person" {
			out = append(out, credential{fresh: true, viewer: one(rt, s.ofKind("person")[:2], "viewer")})
		}
	}
	return out
}

func (s *stage) asking(caller ids.ID, c credential) context.Context {
	a := actor.Actor{ID: caller, Kind: actor.Kind(s.world.Principal(caller).Kind), SessionID: ids.New(), Scopes: c.scopes}
	if c.fresh {
		a.StepUpUntil = s.clock.Now().Add(1 << 30)
	}
	if !c.order.IsZero() {
		a.ActingFor = &actor.ActingFor{PrincipalID: c.order, RunID: ids.New()}
	}
	a.ViewedBy = c.viewer
	return authzapp.WithRequest(actor.With(s.ctx, a))
}

// answerOf reads the answer of production in the words of the model.
func answerOf(err error) permissions.Answer {
	if err == nil {
		return permissions.Answer{}
	}
	e := errs.As(err)
	return permissions.Answer{Code: string(e.Code), Reason: e.Reason}
}

func agree(got, want permissions.Answer) bool {
	return got.Code == want.Code && (want.Reason == "" || got.Reason == want.Reason)
}

// askAll asks one process every question of one caller.
func (s *stage) askAll(rt *rapid.T, name string, svc *authzapp.Service, caller ids.ID, c credential, every int) {
	ctx := s.asking(caller, c)
	n := 0
	for i := range authorize.Catalogue {
		spec := &authorize.Catalogue[i]
		for _, r := range s.resources(spec.Resource, caller) {
			if n++; n%every != 0 {
				continue
			}
			q := permissions.Question{Action: spec.ID, Resource: r, Caller: caller, Scopes: c.scopes, Fresh: c.fresh, For: c.order, Viewer: c.viewer}
			got, want := answerOf(svc.Authorize(ctx, spec.ID, r)), s.world.Decide(q)
			if systemOnly(spec) && got.Code != "" {
				continue // Nobody asks this, so that it is refused is enough.
			}
			if !agree(got, want) {
				rt.Fatalf("%s: %s\n got %+v\nwant %+v", name, s.say(q), got, want)
			}
		}
	}
}

func systemOnly(spec *authorize.Spec) bool {
	return !slices.ContainsFunc(spec.Callers, func(k authorize.CallerKind) bool { return k != authorize.CallerSystem })
}

// askFilter asks in the mode of lists.
func (s *stage) askFilter(rt *rapid.T, svc *authzapp.Service, caller ids.ID, actions ...authorize.Action) {
	ctx := s.asking(caller, credential{fresh: true})
	for _, action := range actions {
		spec, _ := authorize.SpecOf(action)
		for _, r := range s.resources(spec.Resource, caller) {
			q := permissions.Question{Action: action, Resource: r, Caller: caller, Fresh: true}
			got, err := svc.Allowed(ctx, action, r)
			if want := s.world.Decide(q).Code == ""; err != nil || got != want {
				rt.Fatalf("filter: %s\n got %v, %v\nwant %v", s.say(q), got, err, want)
			}
		}
	}
}

// askUnit asks inside a unit that writes, where structure is read from the rows.
func (s *stage) askUnit(rt *rapid.T, svc *authzapp.Service, caller ids.ID) {
	err := s.r.units.Do(s.asking(caller, credential{fresh: true}), func(ctx context.Context) error {
		for _, action := range []authorize.Action{authorize.ActionMessageCreate, authorize.ActionChannelUpdate} {
			spec, _ := authorize.SpecOf(action)
			for _, r := range s.resources(spec.Resource, caller) {
				q := permissions.Question{Action: action, Resource: r, Caller: caller, Fresh: true}
				if got, want := answerOf(svc.Authorize(ctx, action, r)), s.world.Decide(q); !agree(got, want) {
					rt.Fatalf("in a unit: %s\n got %+v\nwant %+v", s.say(q), got, want)
				}
			}
		}
		return nil
	})
	must(rt, "ask in a unit", err)
}

// askDelivery asks what the hub asks about an event, on rights in memory alone.
func (s *stage) askDelivery(rt *rapid.T, svc *authzapp.Service, caller ids.ID, every int) {
	version, err := s.version()
	must(rt, "read the version", err)
	n := 0
	for i := range authorize.Catalogue {
		spec := &authorize.Catalogue[i]
		if spec.Effect != authorize.EffectRead {
			continue
		}
		for _, r := range s.resources(spec.Resource, caller) {
			if n++; n%every != 0 {
				continue
			}
			q := permissions.Question{Action: spec.ID, Resource: r, Caller: caller, Fresh: true}
			got := svc.Admit(caller, spec.ID, r, version)
			if got == authorize.Unknown { // A right has ended: the hub reads anew and asks again.
				must(rt, "read rights anew", svc.Fill(s.ctx, caller))
				got = svc.Admit(caller, spec.ID, r, version)
			}
			want := authorize.Denied
			if s.world.Decide(q).Code == "" {
				want = authorize.Admitted
			}
			if got != want {
				rt.Fatalf("delivery: %s\n got %v\nwant %v", s.say(q), got, want)
			}
		}
	}
}

// reach is what all of the principals see, by the model.
func (s *stage) reach(all ...ids.ID) (spaces, passing, channels []ids.ID) {
	seen := func(t permissions.Target) bool {
		return !slices.ContainsFunc(all, func(id ids.ID) bool { return !s.world.Sees(id, t) })
	}
	inside := map[ids.ID]bool{}
	for _, c := range s.world.Channels {
		if seen(permissions.ChannelTarget(c.ID)) {
			channels, inside[c.Space] = append(channels, c.ID), true
		}
	}
	for _, sp := range s.world.Spaces {
		switch {
		case seen(permissions.SpaceTarget(sp.ID)):
			spaces = append(spaces, sp.ID)
		case inside[sp.ID]:
			passing = append(passing, sp.ID)
		}
	}
	return spaces, passing, channels
}

// checkScope holds a set of targets against what the model shows one by one.
func (s *stage) checkScope(rt *rapid.T, name string, caller ids.ID, scope authorize.Scope, limits ...ids.ID) {
	spaces, passing, channels := s.reach(append(limits, caller)...)
	var gotSpaces, gotPassing, gotChannels []ids.ID
	for _, sp := range s.world.Spaces {
		if scope.All || slices.Contains(scope.Spaces, sp.ID) {
			gotSpaces = append(gotSpaces, sp.ID)
		} else if slices.Contains(scope.PassingSpaces, sp.ID) {
			gotPassing = append(gotPassing, sp.ID)
		}
	}
	for _, c := range s.world.Channels {
		inside := !c.Direct && (scope.All || c.Inherits && slices.Contains(scope.Spaces, c.Space))
		if inside || slices.Contains(scope.Channels, c.ID) {
			gotChannels = append(gotChannels, c.ID)
		}
	}
	if !slices.Equal(gotSpaces, spaces) || !slices.Equal(gotPassing, passing) || !slices.Equal(gotChannels, channels) {
		rt.Fatalf("%s of %s: spaces %v, passing %v, channels %v\nwant %v, %v, %v", name, s.who(caller), gotSpaces, gotPassing, gotChannels, spaces, passing, channels)
	}
}

func (s *stage) askScope(rt *rapid.T, name string, svc *authzapp.Service, caller ids.ID) {
	scope, err := svc.Scope(s.asking(caller, credential{}), authorize.ActionChannelRead)
	if active := s.world.Principal(caller).Active; active != (err == nil) {
		rt.Fatalf("%s: the scope of %s: %v", name, s.who(caller), err)
	}
	if err == nil {
		s.checkScope(rt, name+": scope", caller, scope)
	}
}

// askLimited asks for the scope of an agent on an order and of a person whom the owner looks at.
func (s *stage) askLimited(rt *rapid.T, svc *authzapp.Service, caller ids.ID) {
	p := s.world.Principal(caller)
	c := credential{viewer: s.owner}
	if p.Kind == "agent" {
		c = credential{order: one(rt, s.ofKind("person"), "order of")}
	}
	if !p.Active || p.Kind == "app" {
		return
	}
	scope, err := svc.Scope(s.asking(caller, c), authorize.ActionChannelRead)
	must(rt, "a limited scope", err)
	s.checkScope(rt, "limited scope", caller, scope, present(c.viewer, c.order)...)
}

// askHeld compares levels and capabilities on every target, as payloads and hints show them.
func (s *stage) askHeld(rt *rapid.T, name string, svc *authzapp.Service, caller ids.ID) {
	var targets []ids.ID
	for _, t := range s.world.Targets()[1:] {
		targets = append(targets, t.ID)
	}
	access, err := svc.AccessOf(s.asking(caller, credential{}), append(targets, ids.New()))
	must(rt, "read access", err)
	seen := 0
	for _, t := range s.world.Targets()[1:] {
		want := s.world.Held(caller, t)
		got := heldOf(access[t.ID])
		if want.Level != "" {
			seen++
		} else {
			want.Capabilities = nil
		}
		if got.Level != want.Level || !slices.Equal(got.Capabilities, want.Capabilities) {
			rt.Fatalf("%s: %s holds %+v on %s, the model says %+v", name, s.who(caller), got, s.where(t), want)
		}
	}
	if len(access) != seen {
		rt.Fatalf("%s: %d targets show, the model says %d", name, len(access), seen)
	}
}

func heldOf(a authorize.Access) permissions.Held {
	h := permissions.Held{Level: string(a.Level)}
	for _, c := range a.Capabilities {
		h.Capabilities = append(h.Capabilities, string(c))
	}
	return h
}

func (s *stage) askHints(rt *rapid.T, svc *authzapp.Service, caller ids.ID) {
	var targets []authzdomain.Target
	var want []permissions.Held
	for _, t := range s.world.Targets() {
		targets = append(targets, authzdomain.Target{Kind: authzdomain.TargetKind(t.Kind), ID: t.ID})
		if h := s.world.Held(caller, t); h.Level != "" || t == permissions.Instance {
			want = append(want, h)
		}
	}
	hints, _, err := svc.Hints(s.asking(caller, credential{}), targets)
	if !s.world.Principal(caller).Active {
		if err == nil {
			rt.Fatalf("hints for %s", s.who(caller))
		}
		return
	}
	must(rt, "read hints", err)
	if len(hints) != len(want) {
		rt.Fatalf("%d hints for %s, the model says %d", len(hints), s.who(caller), len(want))
	}
	for i, h := range hints {
		if h.Level.String() != want[i].Level || !slices.Equal(h.Caps.Names(), append([]string{}, want[i].Capabilities...)) {
			rt.Fatalf("a hint for %s on %v: %v %v, the model says %+v", s.who(caller), h.Target, h.Level, h.Caps.Names(), want[i])
		}
	}
}

// askOthers asks who may set agents to work in a channel, and what others hold there.
func (s *stage) askOthers(rt *rapid.T, svc *authzapp.Service, channel ids.ID) {
	got, err := svc.WithTrigger(s.ctx, channel)
	must(rt, "list who has trigger", err)
	if want := s.world.WithTrigger(channel); !slices.Equal(got, want) {
		rt.Fatalf("with trigger on %s: %v, the model says %v", s.where(permissions.ChannelTarget(channel)), got, want)
	}
	for _, p := range s.world.Principals {
		access, err := svc.PrincipalAccess(s.ctx, p.ID, channel)
		must(rt, "read the access of another", err)
		want := s.world.Held(p.ID, permissions.ChannelTarget(channel))
		if got := heldOf(access); got.Level != want.Level || !slices.Equal(got.Capabilities, want.Capabilities) {
			rt.Fatalf("%s holds %+v on %v, the model says %+v", s.who(p.ID), got, channel, want)
		}
	}
}
