// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Source is a grant that has come to a principal, with the way it came.
type Source struct {
	Counted
	GrantID ids.ID
	// GroupID is set when the grant came through a group, Everyone when that is the group of
	// all members.
	GroupID  ids.ID
	Everyone bool
	// GrantUntil and MemberUntil are the ends of the grant and of the membership, zero for
	// none.
	GrantUntil, MemberUntil time.Time
}

// Code is the kind of a reason.
type Code string

// The kinds of reasons.
const (
	CodeOwner             Code = "owner"
	CodeGrantDirect       Code = "grant_direct"
	CodeGrantGroup        Code = "grant_group"
	CodeEveryone          Code = "everyone"
	CodeInheritedSpace    Code = "inherited_space"
	CodeInheritedInstance Code = "inherited_instance"
	CodeBarrier           Code = "barrier"
	CodeExpired           Code = "expired"
	CodeParticipant       Code = "dm_participant"
	CodeOperator          Code = "operator"
	CodeDisabled          Code = "principal_disabled"
	CodeArchived          Code = "archived"
	CodeReadOnly          Code = "read_only"
)

// Step is one reason for what a principal holds, or one why something adds nothing.
type Step struct {
	Code Code
	// Contributes is what the reason adds by itself.
	Contributes Held
	Counted     bool
	// Source is the grant behind the reason, nil for reasons without one.
	Source *Source
}

// Spot is a target with what decisions need to know of it.
type Spot struct {
	Target Target
	// SpaceArchived and Channel are set by the kind of the target.
	SpaceArchived bool
	Channel       Channel
}

// Held is what the holder of the entry has on the spot.
func (s Spot) Held(e *Entry) Held {
	switch s.Target.Kind {
	case TargetInstance:
		return e.Instance()
	case TargetSpace:
		return e.Space(s.Target.ID)
	case TargetChannel:
		return e.Channel(s.Channel)
	default:
		return Held{}
	}
}

// Sources gives the grants without the way they came, as Compile takes them.
func Sources(list []Source) []Counted {
	out := make([]Counted, len(list))
	for i, s := range list {
		out[i] = s.Counted
	}
	return out
}

// Derive gives what the principal holds on the spot, by the arithmetic of every decision,
// and the reasons for it, the strongest first.
func Derive(p Principal, spot Spot, sources []Source, now time.Time) (Held, []Step) {
	held := spot.Held(Compile(p, 0, Sources(sources), now))
	var steps []Step
	if !p.Active {
		steps = append(steps, Step{Code: CodeDisabled})
	}
	takesPart := spot.Channel.Direct && slices.Contains(spot.Channel.Participants, p.ID)
	if p.Owner && (takesPart || !spot.Channel.Direct) {
		steps = append(steps, Step{Code: CodeOwner, Contributes: ownerHeld, Counted: p.Active})
	}
	if takesPart {
		steps = append(steps, Step{Code: CodeParticipant, Contributes: participantHeld, Counted: p.Active})
	}
	if !spot.Channel.Operator.IsZero() && spot.Channel.Operator == p.ID {
		steps = append(steps, Step{Code: CodeOperator, Contributes: operatorHeld, Counted: p.Active})
	}
	for i := range sources {
		if s, touches := spot.step(&sources[i], now); touches {
			s.Counted = s.Counted && p.Active
			steps = append(steps, s)
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		if a.Counted != b.Counted {
			if a.Counted {
				return -1
			}
			return 1
		}
		return int(b.Contributes.Level) - int(a.Contributes.Level)
	})
	if spot.SpaceArchived || spot.Channel.Archived {
		steps = append(steps, Step{Code: CodeArchived})
	}
	if spot.Channel.ReadOnly {
		steps = append(steps, Step{Code: CodeReadOnly})
	}
	return held, steps
}

// step is what one grant means on the spot; touches is false for grants elsewhere.
func (s Spot) step(src *Source, now time.Time) (out Step, touches bool) {
	out = Step{Code: CodeGrantDirect, Contributes: HeldBy(src.Level, src.Caps), Counted: true, Source: src}
	switch {
	case src.Everyone:
		out.Code = CodeEveryone
	case !src.GroupID.IsZero():
		out.Code = CodeGrantGroup
	}
	inherited := src.Target != s.Target
	if inherited {
		switch {
		case s.Channel.Direct || s.Target.Kind == TargetInstance:
			return Step{}, false
		case src.Target.Kind == TargetInstance:
			out.Code = CodeInheritedInstance
		case s.Target.Kind == TargetChannel && src.Target == Target{TargetSpace, s.Channel.SpaceID}:
			out.Code = CodeInheritedSpace
		default:
			return Step{}, false
		}
	}
	if !src.ExpiresAt.IsZero() && !src.ExpiresAt.After(now) {
		out.Code, out.Counted = CodeExpired, false
		return out, true
	}
	if inherited && s.Target.Kind == TargetChannel && !s.Channel.Inherits {
		if out.Contributes = out.Contributes.ThroughBarrier(); out.Contributes.Empty() {
			out.Code, out.Counted = CodeBarrier, false
			out.Contributes = HeldBy(src.Level, src.Caps)
		}
	}
	return out, true
}
