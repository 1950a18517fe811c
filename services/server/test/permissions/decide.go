// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Question is one that production is asked as well.
type Question struct {
	Action   authorize.Action
	Resource authorize.Resource
	Caller   ids.ID
	// Scopes are those of an API token; nil for a login session.
	Scopes []string
	// Fresh is set when the caller has just proved her presence.
	Fresh bool
	// For is the person on whose order an agent works, zero without an order.
	For ids.ID
	// Viewer is the owner who looks at the instance as the caller, zero for the caller herself.
	Viewer ids.ID
}

// Answer is allowed when Code is empty. Reason is given where the specification names one.
type Answer struct{ Code, Reason string }

var (
	notFound  = Answer{Code: "not_found"}
	forbidden = func(reason string) Answer { return Answer{"forbidden", reason} }
)

// Decide walks through the checks in their order and stops at the first that fails (AC-11).
func (w *World) Decide(q Question) Answer {
	spec, known := authorize.SpecOf(q.Action)
	if !known {
		return Answer{Code: "internal_error"}
	}
	p := w.Principal(q.Caller)
	if p == nil || !p.Active {
		return Answer{Code: "unauthenticated"}
	}
	steps := []func() Answer{
		func() Answer { return w.seen(spec, q, p) },
		func() Answer { return open(spec, p) },
		func() Answer { return w.scoped(spec, q) },
		func() Answer { return w.enough(spec, q, p) },
		func() Answer { return w.takesWrites(spec, q) },
		func() Answer { return w.personal(spec, q) },
		func() Answer { return w.ordered(spec, q) },
		func() Answer { return w.viewed(spec, q) },
		func() Answer {
			if spec.StepUp == authorize.StepUpAlways && !q.Fresh {
				return Answer{Code: "step_up_required"}
			}
			return Answer{}
		},
	}
	for _, step := range steps {
		if a := step(); a.Code != "" {
			return a
		}
	}
	return Answer{}
}

// target is the place whose rights decide about a resource; ok is false for what lies nowhere.
func (w *World) target(r authorize.Resource) (t Target, ok bool) {
	channel, space := r.ChannelID, r.SpaceID
	switch r.Kind {
	case authorize.ResourceInstance:
		return Instance, true
	case authorize.ResourceSpace:
		return SpaceTarget(r.ID), true
	case authorize.ResourceChannel:
		return ChannelTarget(r.ID), true
	case authorize.ResourceThread, authorize.ResourceMessage, authorize.ResourceRun:
		return ChannelTarget(channel), true
	case authorize.ResourceGrant, authorize.ResourceTarget:
		switch {
		case !channel.IsZero():
			return ChannelTarget(channel), true
		case !space.IsZero():
			return SpaceTarget(space), true
		}
		return Instance, true
	case authorize.ResourceAgent:
		if !channel.IsZero() {
			return ChannelTarget(channel), true
		}
	}
	return Target{}, false
}

// own tells whether the resource is the caller's (AC-38, self).
func own(q Question, who ids.ID) bool {
	switch q.Resource.Kind {
	case authorize.ResourceSelf, authorize.ResourcePrincipal, authorize.ResourceAgent:
		if q.Resource.ID == who {
			return true
		}
	}
	return q.Resource.OwnerID == who || slices.Contains(q.Resource.Related, who)
}

// seen is check 3: what is hidden does not exist.
func (w *World) seen(spec *authorize.Spec, q Question, p *Principal) Answer {
	t, placed := w.target(q.Resource)
	reads := placed && w.Sees(p.ID, t)
	mine := own(q, p.ID)
	var ok bool
	switch q.Resource.Kind {
	case authorize.ResourceNone, authorize.ResourceInstance:
		ok = true
	case authorize.ResourcePrincipal: // Members see all, the others who shares a place (ID-47).
		full := p.Kind == "person" && !p.Guest
		ok = mine || full || spec.ID == "user.create" || w.SharePlace(p.ID, q.Resource.ID)
	case authorize.ResourceSelf:
		ok = mine
	case authorize.ResourceSpace, authorize.ResourceChannel, authorize.ResourceThread, authorize.ResourceMessage:
		ok = reads
	case authorize.ResourceRun: // An agent knows its own runs, the others need the channel.
		ok = reads || q.Resource.OwnerID == p.ID
	case authorize.ResourceAgent: // Chapter 09: itself, owners, and who reads a place that it reads.
		ok = mine || p.Owner || q.Resource.ID.IsZero() || reads || !placed && w.SharePlace(p.ID, q.Resource.ID)
	case authorize.ResourceGroup: // Guests see their own groups alone; one to be made is nobody's.
		ok = mine || !p.Guest || q.Resource.ID.IsZero() || slices.Contains(w.GroupsOf(p.ID), q.Resource.ID)
	case authorize.ResourceGrant:
		h := w.Held(p.ID, t)
		ok = mine || p.Owner || reads && (h.AtLeast("manage") || h.Has("members.manage"))
	case authorize.ResourceTarget:
		ok = mine || reads || t == Instance
	}
	if !ok {
		return notFound
	}
	return Answer{}
}

// open is check 4.
func open(spec *authorize.Spec, p *Principal) Answer {
	if !slices.Contains(spec.Callers, authorize.CallerKind(p.Kind)) {
		return forbidden("subject_kind_not_allowed")
	}
	return Answer{}
}

// scoped is check 5 (AC-40).
func (w *World) scoped(spec *authorize.Spec, q Question) Answer {
	scope := spec.Scope
	if q.Scopes == nil || scope == "none" || scope == "" {
		return Answer{}
	}
	if spec.ID == "message.delete" && !own(q, q.Caller) {
		scope = "messaging.admin"
	}
	if scope == "session" || !slices.Contains(q.Scopes, scope) {
		return Answer{Code: "scope_missing"}
	}
	return Answer{}
}

// enough are the checks 6 to 8.
func (w *World) enough(spec *authorize.Spec, q Question, p *Principal) Answer {
	mine := own(q, p.ID)
	message := q.Resource.Kind == authorize.ResourceMessage
	if spec.Self && mine && (!message || spec.Level == "") {
		return Answer{}
	}
	nothing := !spec.OwnerOnly && spec.Level == "" && spec.Capability == "" && len(spec.AnyOf) == 0
	if nothing && spec.Self {
		return Answer{Code: "forbidden"}
	}
	if spec.OwnerOnly && !p.Owner {
		return forbidden("not_owner")
	}
	t, placed := w.target(q.Resource)
	var h Held
	if placed {
		h = w.Held(p.ID, t)
	}
	if len(spec.AnyOf) > 0 && !anyOf(spec.AnyOf, h) {
		return Answer{Code: "forbidden"}
	}
	if level := w.levelFor(spec, q, p); !h.AtLeast(level) {
		return forbidden("level_insufficient")
	}
	if spec.Capability != "" && !h.Has(string(spec.Capability)) {
		return forbidden("capability_missing")
	}
	return Answer{}
}

// levelFor is the level of the catalogue. Who may know of an agent may read it, and an agent that
// hands work on needs to read the place: the person behind it needs the right (09, 6.11).
func (w *World) levelFor(spec *authorize.Spec, q Question, p *Principal) string {
	switch {
	case spec.ID == "agent.invoke" && p.Kind == "agent":
		return "read"
	case spec.ID == "agent.read":
		return ""
	default:
		return string(spec.Level)
	}
}

func anyOf(rights []authorize.Right, h Held) bool {
	for _, r := range rights {
		if r.Level != "" && h.AtLeast(string(r.Level)) || r.Capability != "" && h.Has(string(r.Capability)) {
			return true
		}
	}
	return false
}

// stillOpen lists what may be done in places that take no more writing (AC-10): what cleans up,
// acts on the place itself, and what concerns the reader or a run that is ending.
var stillOpen = map[authorize.Action]string{
	"message.delete": "AC-10", "reaction.remove": "AC-10", "pin.delete": "AC-10", "thread.move": "AC-10, as the source",
	"channel.archive": "the place itself", "space.archive": "the place itself", "channel.read_only.set": "the place itself",
	"channel.reorder": "the place itself", "space.reorder": "the place itself", "sidebar.update": "the reader",
	"grant.create": "the place itself", "grant.revoke": "the place itself",
	"read_state.update": "the reader", "read_state.mark_unread": "the reader", "draft.write": "the reader",
	"run.cancel": "the end of a run", "run.finish": "the end of a run", "run.update": "the end of a run", "run.token.renew": "the end of a run",
}

// takesWrites is check 9.
func (w *World) takesWrites(spec *authorize.Spec, q Question) Answer {
	t, placed := w.target(q.Resource)
	if spec.Effect != "write" || !placed || stillOpen[spec.ID] != "" {
		return Answer{}
	}
	if w.Archived(t) {
		return forbidden("target_archived")
	}
	c := w.Channel(t.ID)
	settings := q.Resource.Kind == authorize.ResourceChannel && spec.Level == "manage"
	if t.Kind == "channel" && c != nil && c.ReadOnly && !settings {
		return Answer{Code: "channel_read_only"}
	}
	return Answer{}
}

// personal is check 11 for I1: the agent that one person pays for works for her alone.
func (w *World) personal(spec *authorize.Spec, q Question) Answer {
	if spec.ID != "agent.invoke" {
		return Answer{}
	}
	who := q.Caller
	if !q.For.IsZero() {
		who = q.For
	}
	agent := w.Principal(q.Resource.ID)
	if agent == nil || agent.Kind != "agent" || !agent.Holder.IsZero() && agent.Holder != who {
		return forbidden("i1_personal")
	}
	return Answer{}
}

// viewed is check 12 (AC-36): who looks as another reads what both may, and changes nothing.
func (w *World) viewed(spec *authorize.Spec, q Question) Answer {
	if q.Viewer.IsZero() {
		return Answer{}
	}
	if !spec.ViewAs {
		return forbidden("view_as_read_only")
	}
	viewer := w.Principal(q.Viewer)
	if viewer == nil || !viewer.Active || !viewer.Owner {
		return Answer{Code: "unauthenticated"}
	}
	if spec.Self && own(q, q.Caller) {
		return Answer{}
	}
	for _, a := range []Answer{w.seen(spec, q, viewer), w.enough(spec, q, viewer), w.takesWrites(spec, q)} {
		if a.Code != "" {
			return a
		}
	}
	return Answer{}
}

// ordered is check 11 for I4: on an order an agent has no more than the person who gave it. What
// is the agent's own is not asked of the person.
func (w *World) ordered(spec *authorize.Spec, q Question) Answer {
	if q.For.IsZero() {
		return Answer{}
	}
	limited := forbidden("acting_for_limited")
	if !spec.ActingFor {
		return limited
	}
	if spec.Self && own(q, q.Caller) && q.Resource.Kind != authorize.ResourceMessage {
		return Answer{}
	}
	person := w.Principal(q.For)
	if person == nil || !person.Active {
		return limited
	}
	asked := q
	asked.Scopes, asked.For = nil, ids.ID{}
	if own(q, q.Caller) { // What the agent wrote counts as hers.
		asked.Resource.OwnerID = person.ID
	}
	for _, a := range []Answer{w.seen(spec, asked, person), w.enough(spec, asked, person), w.takesWrites(spec, asked)} {
		if a.Code != "" {
			return limited
		}
	}
	return Answer{}
}
