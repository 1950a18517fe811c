// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The reasons of denials; those of levels and capabilities are the domain's.
const (
	reasonUnknownAction      = "unknown_action"
	reasonPrincipalInactive  = "principal_inactive"
	reasonCredentialRevoked  = "credential_revoked"
	reasonNotVisible         = "not_visible"
	reasonNotParticipant     = "not_participant"
	reasonKindNotAllowed     = "subject_kind_not_allowed"
	reasonScopeMissing       = "scope_missing"
	reasonNotOwn             = "not_own"
	reasonTargetArchived     = "target_archived"
	reasonChannelReadOnly    = "channel_read_only"
	reasonI1Personal         = "i1_personal"
	reasonActingForLimited   = "acting_for_limited"
	reasonOrderIsOver        = "invocation_token_invalid"
	reasonStepUpMissing      = "step_up_missing"
	scopeModeratesForeigners = "messaging.admin"
)

// place is where a resource lies, as far as it has been found.
type place struct {
	// kind is instance, space or channel; empty when the resource lies nowhere.
	kind  domain.TargetKind
	found bool
	// remembered is set when memory was asked instead of the source.
	remembered bool
	space      domain.Space
	channel    domain.Channel
}

func (p place) held(e *domain.Entry) domain.Held {
	switch {
	case p.kind == domain.TargetInstance:
		return e.Instance()
	case !p.found:
		return domain.Held{}
	case p.kind == domain.TargetSpace:
		return e.Space(p.space.ID)
	case p.kind == domain.TargetChannel:
		return e.Channel(p.channel)
	default:
		return domain.Held{}
	}
}

// verdict is what a check found. An empty code means allowed.
type verdict struct {
	code   errs.Code
	reason string
	held   domain.Held
}

func deny(code errs.Code, reason string, held domain.Held) verdict {
	return verdict{code: code, reason: reason, held: held}
}

// request is one question as the checks see it.
type request struct {
	spec *authorize.Spec
	kind actor.Kind
	// caller is whose rights are asked about.
	caller ids.ID
	// scopes are those of an API token; nil for a login session and for deliveries.
	scopes []string
	r      authorize.Resource
	p      place
	// shared is set for an agent without a place, or another principal, when both read a channel.
	shared bool
}

// own reports whether the resource is the caller's.
func (q *request) own() bool {
	if q.caller.IsZero() {
		return false
	}
	switch q.r.Kind {
	case authorize.ResourceSelf, authorize.ResourcePrincipal, authorize.ResourceAgent:
		if q.r.ID == q.caller {
			return true
		}
	}
	return q.r.OwnerID == q.caller || slices.Contains(q.r.Related, q.caller)
}

// judge runs the checks from visibility to the state of the target on an entry. Requests,
// lists and deliveries all come through here.
func judge(q *request, e *domain.Entry) verdict {
	held, own := q.p.held(e), q.own()
	if !visible(q, e, held, own) {
		if q.p.found && q.p.channel.Direct {
			return deny(errs.CodeNotFound, reasonNotParticipant, held)
		}
		return deny(errs.CodeNotFound, reasonNotVisible, held)
	}
	if !q.spec.OpenTo(authorize.CallerKind(q.kind)) {
		return deny(errs.CodeForbidden, reasonKindNotAllowed, held)
	}
	if !scoped(q, own) {
		return deny(errs.CodeScopeMissing, reasonScopeMissing, held)
	}
	if reason := sufficient(q, e, held, own); reason != "" {
		return deny(errs.CodeForbidden, reason, held)
	}
	return state(q, held)
}

// visible is the question whether the resource exists for the caller at all.
func visible(q *request, e *domain.Entry, held domain.Held, own bool) bool {
	switch q.r.Kind {
	case authorize.ResourceNone, authorize.ResourceInstance:
		return true
	case authorize.ResourcePrincipal:
		// Without an ID, and for the one that is to be made, it is nobody yet.
		return own || member(e) || q.shared || q.r.ID.IsZero() || q.spec.ID == authorize.ActionUserCreate
	case authorize.ResourceSelf:
		return own
	case authorize.ResourceSpace, authorize.ResourceChannel, authorize.ResourceThread, authorize.ResourceMessage:
		return held.Visible()
	case authorize.ResourceRun:
		return held.Visible() || q.r.OwnerID == q.caller && own
	case authorize.ResourceAgent:
		// Without an ID it is one that is to be made.
		return own || e.Owner || q.shared || q.r.ID.IsZero() || q.p.kind == domain.TargetChannel && held.Visible()
	case authorize.ResourceGroup:
		// Without an ID it is one that is to be made.
		return own || !e.Guest || e.InGroup(q.r.ID) || q.r.ID.IsZero()
	case authorize.ResourceGrant:
		return own || e.Owner || held.Visible() && anyOf(q.spec.AnyOf, held)
	case authorize.ResourceTarget:
		return own || q.p.kind == domain.TargetInstance || held.Visible()
	default:
		return false
	}
}

// member reports whether the entry is that of a person who sees all others. Guests, agents and
// apps see those with whom they share a place.
func member(e *domain.Entry) bool { return e.Kind == domain.Person && !e.Guest }

// meets reports whether the question is about a principal whom the holder of the entry knows only
// from a common place.
func (q *request) meets(e *domain.Entry) bool {
	switch {
	case q.r.ID.IsZero(), q.own():
		return false
	case q.r.Kind == authorize.ResourceAgent:
		return q.p.kind == "" && !e.Owner
	default:
		return q.r.Kind == authorize.ResourcePrincipal && !member(e)
	}
}

// scoped checks an API token's scopes. A scope never adds a right.
func scoped(q *request, own bool) bool {
	if q.scopes == nil || q.spec.Scope == authorize.ScopeNone || q.spec.Scope == "" {
		return true
	}
	if q.spec.Scope == authorize.ScopeSession {
		return false
	}
	needed := q.spec.Scope
	if q.spec.ID == authorize.ActionMessageDelete && !own {
		needed = scopeModeratesForeigners
	}
	return slices.Contains(q.scopes, needed)
}

// sufficient checks owner, level and capability; it returns the reason of a denial.
func sufficient(q *request, e *domain.Entry, held domain.Held, own bool) string {
	spec := q.spec
	needsNothing := !spec.OwnerOnly && spec.Level == authorize.LevelNone && spec.Capability == "" && len(spec.AnyOf) == 0
	// On a message the level is needed for one's own as well: who may only read a place
	// changes nothing there.
	lifted := spec.Self && own && (q.r.Kind != authorize.ResourceMessage || spec.Level == authorize.LevelNone)
	switch {
	case lifted:
		return ""
	case needsNothing && spec.Self && !readsPrincipal(q):
		return reasonNotOwn
	case spec.OwnerOnly && !(e.Owner && e.Active):
		return domain.ReasonNotOwner
	case len(spec.AnyOf) > 0 && !anyOf(spec.AnyOf, held):
		return domain.ReasonLevelInsufficient
	case held.Level < levelNeeded(q):
		return domain.ReasonLevelInsufficient
	case spec.Capability != "" && !held.Caps.Has(capOf(spec.Capability)):
		return domain.ReasonCapabilityMissing
	default:
		return ""
	}
}

// readsPrincipal: members may look at each other.
func readsPrincipal(q *request) bool {
	return q.r.Kind == authorize.ResourcePrincipal && q.spec.Effect == authorize.EffectRead
}

// levelNeeded is the level of the catalogue, but for an agent that sets another to work: its
// own right to see the place is enough, the person it works for needs the rest.
func levelNeeded(q *request) domain.Level {
	if q.spec.ID == authorize.ActionAgentInvoke && q.kind == actor.KindAgent {
		return domain.Read
	}
	if q.r.Kind == authorize.ResourceAgent && q.spec.Effect == authorize.EffectRead {
		return domain.None // Seeing the agent is the level.
	}
	return levelOf(q.spec.Level)
}

func anyOf(rights []authorize.Right, held domain.Held) bool {
	for _, r := range rights {
		if r.Level != authorize.LevelNone && held.Level >= levelOf(r.Level) {
			return true
		}
		if r.Capability != "" && held.Caps.Has(capOf(r.Capability)) {
			return true
		}
	}
	return false
}

// works in places that take no more writing: what cleans up, what ends, what is about the
// place itself or about the reader alone.
var writesInClosedPlaces = map[authorize.Action]bool{
	authorize.ActionMessageDelete: true, "reaction.remove": true, "pin.delete": true,
	authorize.ActionChannelArchive: true, "space.archive": true, "channel.read_only.set": true,
	"channel.reorder": true, "space.reorder": true, "sidebar.update": true,
	authorize.ActionReadStateUpdate: true, authorize.ActionReadStateMarkUnread: true, "draft.write": true,
	authorize.ActionGrantCreate: true, authorize.ActionGrantRevoke: true,
	authorize.ActionRunCancel: true, authorize.ActionRunFinish: true, authorize.ActionRunUpdate: true,
	authorize.ActionRunTokenRenew: true, "thread.move": true,
}

// state checks that the place takes writes.
func state(q *request, held domain.Held) verdict {
	if q.spec.Effect != authorize.EffectWrite || writesInClosedPlaces[q.spec.ID] {
		return verdict{held: held}
	}
	switch {
	case q.p.kind == domain.TargetSpace && q.p.space.Archived, q.p.kind == domain.TargetChannel && q.p.channel.Archived:
		return deny(errs.CodeForbidden, reasonTargetArchived, held)
	case q.p.kind == domain.TargetChannel && q.p.channel.ReadOnly && !managesPlace(q):
		return deny(errs.CodeChannelReadOnly, reasonChannelReadOnly, held)
	}
	return verdict{held: held}
}

// managesPlace: what is set on a channel itself is no writing in it.
func managesPlace(q *request) bool {
	return q.r.Kind == authorize.ResourceChannel && levelOf(q.spec.Level) == domain.Manage
}

func levelOf(l authorize.Level) domain.Level { return domain.Level(max(l.Rank(), 0)) }

func capOf(c authorize.Capability) domain.Caps {
	out, _ := domain.ParseCap(string(c))
	return out
}

func levelTo(l domain.Level) authorize.Level { return authorize.Level(l.String()) }

func capsTo(c domain.Caps) []authorize.Capability {
	names := c.Names()
	out := make([]authorize.Capability, len(names))
	for i, n := range names {
		out[i] = authorize.Capability(n)
	}
	return out
}
