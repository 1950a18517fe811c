// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// The bounds of a grant's end, so that it is neither over when it arrives nor for ever by
// mistake.
const (
	MinGrantTime = 5 * time.Minute
	MaxGrantTime = 5 * 365 * 24 * time.Hour
)

// Grant is a right of a subject on a target.
type Grant struct {
	Target    Target
	Level     Level
	Caps      Caps
	ExpiresAt time.Time
}

// Strong reports whether giving or taking the grant needs a fresh proof of the person: it
// reaches the whole instance or a machine, hands on the management, or reveals or spends.
func (g Grant) Strong() bool {
	return g.Target.Kind == TargetInstance || g.Target.Kind == TargetHost || g.Level == Manage || g.Caps&SpecialCaps != 0
}

// The reasons why somebody may not give or take a grant.
const (
	ReasonNotOwner          = "not_owner"
	ReasonLevelInsufficient = "level_insufficient"
	ReasonCapabilityMissing = "capability_missing"
)

// MayHandle says whether someone who holds h on the grant's target may give or take it:
// empty for yes, otherwise the reason. Nobody hands on more than she has, and a manager of
// members cannot touch a manager.
func (g Grant) MayHandle(owner bool, h Held) string {
	switch {
	case owner:
		return ""
	case g.Target.Kind == TargetInstance || g.Target.Kind == TargetHost || g.Caps&SpecialCaps != 0:
		return ReasonNotOwner
	case h.Level < Manage && !h.Caps.Has(MembersManage):
		return ReasonLevelInsufficient
	case g.Level > h.Level:
		return ReasonLevelInsufficient
	case !h.Caps.Has(g.Caps):
		return ReasonCapabilityMissing
	default:
		return ""
	}
}

// CheckExpiry says what is wrong with the end of a new grant: empty, too_soon or too_far.
// Zero means that the grant does not end.
func CheckExpiry(now, expires time.Time) string {
	switch {
	case expires.IsZero():
		return ""
	case expires.Before(now.Add(MinGrantTime)):
		return "too_soon"
	case expires.After(now.Add(MaxGrantTime)):
		return "too_far"
	default:
		return ""
	}
}
