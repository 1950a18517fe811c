// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// TestNothingArrivesBehindARevocation takes a right away and gives it back at random while
// messages flow. By the order of the log everything that was visible arrives and nothing else
// does.
func TestNothingArrivesBehindARevocation(t *testing.T) {
	const (
		length = 3 * time.Second
		pause  = 10 * time.Millisecond // one hundred messages a second
	)
	s := shared.Use(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	owner.StepUp(t)
	place := s.Space(t, "read")
	all, some := owner.Connect(t), ana.Connect(t)
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				owner.Call(t, "createMessage", place.Thread, harness.Message(fmt.Sprint("message ", i)))
			}
		}
	})
	wait.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		for ctx.Err() == nil {
			grant := owner.Call(t, "createGrant", grantOf(ana.ID, "space", place.Space, "read"))
			wander(ctx, random)
			owner.Call(t, "revokeGrant", grant.Str("id"))
			wander(ctx, random)
		}
	})
	wait.Wait()
	last := owner.Say(t, place.Thread, "the end")
	all.Reach(t, last.Seq())
	some.Reach(t, last.Seq())
	windows := visibleWindows(some.Events(), place.Space)
	if len(windows) < 5 {
		t.Fatalf("only %d changes of rights", len(windows))
	}
	got := map[int64]bool{}
	for _, e := range some.Events() {
		if e.Type == "message.created" && e.Str("place.space_id") == place.Space {
			got[e.Seq] = true
			if !within(windows, e.Seq) {
				t.Errorf("the message at %d arrived outside of %v", e.Seq, windows)
			}
		}
	}
	sent := 0
	for _, e := range all.Events() {
		if e.Type == "message.created" && e.Str("place.space_id") == place.Space {
			sent++
			if within(windows, e.Seq) && !got[e.Seq] {
				t.Errorf("the message at %d was visible and did not arrive; visible were %v", e.Seq, windows)
			}
		}
	}
	if sent < 50 || len(got) == 0 {
		t.Errorf("%d messages sent, %d received", sent, len(got))
	}
	t.Logf("%d messages, %d received, %d windows", sent, len(got), len(windows))
}

func wander(ctx context.Context, random *rand.Rand) {
	const most = 80
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(random.IntN(most)) * time.Millisecond):
	}
}

// window is a stretch of the log in which a space was visible, its ends not included.
type window struct{ from, to int64 }

// visibleWindows reads from the changes of the own rights when a space was visible.
func visibleWindows(events []harness.Event, space string) []window {
	const open = 1 << 62
	var out []window
	for _, e := range events {
		if e.Type != "access.changed" {
			continue
		}
		if names(e, "data.gained", "target.id", space) {
			out = append(out, window{e.Seq, open})
		}
		if names(e, "data.lost", "id", space) && len(out) > 0 {
			out[len(out)-1].to = e.Seq
		}
	}
	return out
}

func names(e harness.Event, list, path, id string) bool {
	entries, _ := harness.At(e.Body, list).([]any)
	for _, entry := range entries {
		if harness.At(entry, path) == id {
			return true
		}
	}
	return false
}

func within(windows []window, seq int64) bool {
	for _, w := range windows {
		if seq > w.from && seq < w.to {
			return true
		}
	}
	return false
}
