// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"testing"

	"pgregory.net/rapid"
)

// What the counted reasons add up to is what every decision works with, on every target.
func TestReasonsAddUpToWhatIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		sources := make([]Source, len(w.grants))
		for i, g := range w.grants {
			sources[i] = Source{Counted: g}
			if rapid.Bool().Draw(t, "by group") {
				sources[i].GroupID = id('g', i)
			}
		}
		st, e := w.structure(), w.entry(1)
		spots := []Spot{{Target: Target{Kind: TargetInstance}}}
		for _, sid := range st.Spaces() {
			sp, _ := st.Space(sid)
			spots = append(spots, Spot{Target: Target{TargetSpace, sid}, SpaceArchived: sp.Archived})
		}
		for _, cid := range st.Channels() {
			c, _ := st.Channel(cid)
			spots = append(spots, Spot{Target: Target{TargetChannel, cid}, Channel: c})
		}
		for _, spot := range spots {
			held, steps := Derive(w.p, spot, sources, now)
			if want := spot.Held(e); held != want {
				t.Fatalf("%+v: explained %+v, decided %+v", spot, held, want)
			}
			var sum Held
			for _, s := range steps {
				if s.Counted {
					sum = sum.And(s.Contributes)
				}
			}
			if spot.Target.Kind == TargetChannel {
				sum = capped(spot.Channel, sum)
			}
			if sum != held {
				t.Fatalf("%+v: reasons add up to %+v, held is %+v\n%+v", spot, sum, held, steps)
			}
		}
	})
}
