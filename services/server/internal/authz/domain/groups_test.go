// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"reflect"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestRemindersBehindAreCounted(t *testing.T) {
	before := []time.Duration{7 * 24 * time.Hour, 24 * time.Hour}
	for left, want := range map[time.Duration]int{
		30 * 24 * time.Hour: 0, 7*24*time.Hour + time.Second: 0, 7 * 24 * time.Hour: 1, 25 * time.Hour: 1, 24 * time.Hour: 2, time.Minute: 2,
	} {
		if got := ReminderStage(before, now, now.Add(left)); got != want {
			t.Errorf("%s before the end: %d, want %d", left, got, want)
		}
	}
	if got := ReminderStage(before, now, time.Time{}); got != 0 {
		t.Errorf("without an end: %d", got)
	}
}

func TestClaimsAreComparedWithWhatStillCounts(t *testing.T) {
	a, b, c := id('g', 0), id('g', 1), id('g', 2)
	soon, over := now.Add(time.Hour), now
	for name, x := range map[string]struct {
		present []Membership
		wanted  []ids.ID
		want    ClaimDiff
	}{
		"nothing":         {nil, nil, ClaimDiff{}},
		"the same":        {[]Membership{{a, soon}}, []ids.ID{a}, ClaimDiff{Kept: []ids.ID{a}}},
		"join and leave":  {[]Membership{{a, soon}, {b, soon}}, []ids.ID{c, b}, ClaimDiff{Added: []ids.ID{c}, Removed: []ids.ID{a}, Kept: []ids.ID{b}}},
		"over is no more": {[]Membership{{a, over}}, []ids.ID{a}, ClaimDiff{Added: []ids.ID{a}}},
		"over and out":    {[]Membership{{a, over}}, nil, ClaimDiff{Removed: []ids.ID{a}}},
		"without an end":  {[]Membership{{GroupID: a}}, []ids.ID{a}, ClaimDiff{Kept: []ids.ID{a}}},
	} {
		if got := CompareClaims(x.present, x.wanted, now); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
}
