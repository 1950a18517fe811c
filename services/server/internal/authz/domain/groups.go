// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ReminderStage is how many reminders of an end lie behind, each given as the time before
// the end at which it is due: that many need not be given any more.
func ReminderStage(before []time.Duration, now, ends time.Time) int {
	if ends.IsZero() {
		return 0
	}
	n := 0
	for _, d := range before {
		if !now.Before(ends.Add(-d)) {
			n++
		}
	}
	return n
}

// ClaimDiff is how the memberships that an identity provider decides differ from its claims.
type ClaimDiff struct {
	// Added are groups to join, Removed groups to leave, Kept those whose membership is
	// renewed. All ascend.
	Added, Removed, Kept []ids.ID
}

// Same reports whether no right changes.
func (d ClaimDiff) Same() bool { return len(d.Added) == 0 && len(d.Removed) == 0 }

// CompareClaims compares the present memberships with the wanted groups. A membership that
// has ended counts for nothing any more, so it is joined anew.
func CompareClaims(present []Membership, wanted []ids.ID, now time.Time) ClaimDiff {
	var d ClaimDiff
	for _, m := range present {
		switch ended := !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(now); {
		case !slices.Contains(wanted, m.GroupID):
			d.Removed = append(d.Removed, m.GroupID)
		case !ended:
			d.Kept = append(d.Kept, m.GroupID)
		}
	}
	for _, id := range wanted {
		if !slices.Contains(d.Kept, id) {
			d.Added = append(d.Added, id)
		}
	}
	slices.SortFunc(d.Added, ids.ID.Compare)
	slices.SortFunc(d.Removed, ids.ID.Compare)
	slices.SortFunc(d.Kept, ids.ID.Compare)
	return d
}
