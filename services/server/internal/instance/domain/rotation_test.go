// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// TestRotationNeverLeavesAGap lets months pass, with a job that runs late now and then and an
// owner who prepares keys early. There is always one active key; none signs before everybody
// could know it; what a key signed is accepted for its time.
func TestRotationNeverLeavesAGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rotation{Interval: 90 * 24 * time.Hour, Lead: 24 * time.Hour}
		rule := PurposeRule{Accepted: 10 * time.Minute}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var keys []SigningKey
		add := func(state KeyState) {
			k := SigningKey{ID: ids.ID{byte(len(keys))}, State: state, Published: true, CreatedAt: now}
			if state == KeyActive {
				at := now
				k.ActivatedAt = &at
			}
			keys = append(keys, k)
		}
		for range rapid.IntRange(1, 300).Draw(t, "runs") {
			switch r.Step(keys, now) {
			case StepPrepare:
				add(KeyNext)
			case StepReplace:
				add(KeyActive)
			case StepActivate:
				active, next := Current(keys)
				if active != nil {
					at := now
					active.State, active.RetiredAt, active.UnpublishAt = KeyRetired, &at, rule.UnpublishAt(now)
				}
				if now.Sub(next.CreatedAt) < r.Lead {
					t.Fatalf("a key signs after %s", now.Sub(next.CreatedAt))
				}
				at := now
				next.State, next.ActivatedAt = KeyActive, &at
			case StepNone:
			}
			n := 0
			for _, k := range keys {
				if k.State == KeyActive {
					n++
				}
				if k.State == KeyRetired && k.Accepted(*k.RetiredAt) != k.Accepted(k.RetiredAt.Add(rule.Accepted)) {
					t.Fatal("a token dies before its time")
				}
			}
			if n != 1 {
				t.Fatalf("%d active keys", n)
			}
			if _, next := Current(keys); next == nil && rapid.IntRange(0, 30).Draw(t, "owner") == 0 {
				add(KeyNext)
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 72).Draw(t, "hours")) * time.Hour)
		}
	})
}

func TestOnlyRetiredKeysAreLeftOvers(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	for name, c := range map[string]struct {
		key  SigningKey
		want bool
	}{
		"active":       {SigningKey{State: KeyActive}, false},
		"next":         {SigningKey{State: KeyNext}, false},
		"just retired": {SigningKey{State: KeyRetired, RetiredAt: ago(time.Minute - time.Second)}, false},
		"retired":      {SigningKey{State: KeyRetired, RetiredAt: ago(time.Minute)}, true},
	} {
		if got := c.key.Leftover(now, 30*time.Second); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
