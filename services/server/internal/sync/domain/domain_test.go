// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync/domain"
)

func TestReadPositionNeverFallsAndManualMarksOutliveReading(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const end = 50
		var r domain.ReadState
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := r
			if rapid.Bool().Draw(t, "mark") {
				from := rapid.Int64Range(1, end).Draw(t, "from")
				changed := r.MarkUnread(from)
				if r.LastRead != before.LastRead {
					t.Fatalf("marking moved the read position from %d to %d", before.LastRead, r.LastRead)
				}
				if r.Position() != from-1 {
					t.Fatalf("position %d behind a mark at %d", r.Position(), from)
				}
				if changed != (r != before) || changed != (r.Version == before.Version+1) {
					t.Fatalf("reported change %v from %+v to %+v", changed, before, r)
				}
				continue
			}
			upTo := rapid.Int64Range(0, 2*end).Draw(t, "upTo")
			clearMark := rapid.Bool().Draw(t, "clear")
			changed := r.Read(upTo, end, clearMark, domain.OriginUser)
			if r.LastRead < before.LastRead || r.LastRead > end {
				t.Fatalf("read position went from %d to %d with the end at %d", before.LastRead, r.LastRead, end)
			}
			if !clearMark && r.UnreadFrom != before.UnreadFrom {
				t.Fatal("reading removed a manual mark")
			}
			if clearMark && r.UnreadFrom != 0 {
				t.Fatal("the mark was to be cleared")
			}
			if changed != (r.LastRead != before.LastRead || r.UnreadFrom != before.UnreadFrom) {
				t.Fatalf("reported change %v from %+v to %+v", changed, before, r)
			}
		}
	})
}

func TestCheckCursor(t *testing.T) {
	t.Parallel()
	epoch, other := ids.New(), ids.New()
	log := domain.Log{Epoch: epoch, MinSeq: 11, Target: 100, MaxEvents: 80}
	for name, tc := range map[string]struct {
		epoch  ids.ID
		cursor int64
		want   string
	}{
		"at the head":                {epoch, 100, ""},
		"without an epoch":           {ids.ID{}, 100, ""},
		"as far back as allowed":     {epoch, 20, ""},
		"one step too far":           {epoch, 19, domain.ResyncTooFar},
		"just before the first kept": {epoch, 10, domain.ResyncTooFar},
		"behind the retention":       {epoch, 9, domain.ResyncRetention},
		"above the head":             {epoch, 101, domain.ResyncFuture},
		"negative":                   {epoch, -1, domain.ResyncFuture},
		"another epoch wins":         {other, 101, domain.ResyncEpoch},
	} {
		t.Run(name, func(t *testing.T) {
			if got := log.CheckCursor(tc.epoch, tc.cursor); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	empty := domain.Log{Epoch: epoch, MinSeq: 1, Target: 0, MaxEvents: 80}
	if got := empty.CheckCursor(epoch, 0); got != "" {
		t.Errorf("an empty log refused cursor 0 with %q", got)
	}
}
