// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"sync"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// TestAListOfChannelsIsOneStatement lists five hundred channels, some of them behind barriers:
// what is visible is part of the statement that lists, so no channel is asked about by itself.
func TestAListOfChannelsIsOneStatement(t *testing.T) {
	const spaces, channels = 5, 100
	asked := &harness.Statements{}
	s := harness.Start(t, harness.WithStatements(asked))
	owner, ana := s.Owner(t), s.Person(t, "ana")
	group := newGroup(t, s, ana)
	for range spaces {
		space := owner.Call(t, "createSpace", harness.Body{"name": s.Unique("Space")}).OK(t).Str("id")
		grantGroup(t, s, group, "read", "space", space)
		var wait sync.WaitGroup
		for n := range 4 {
			wait.Go(func() {
				for i := n; i < channels; i += 4 {
					body := harness.Body{"kind": "text", "name": s.Unique("channel"), "inherits": i%10 != 0}
					id := owner.Call(t, "createChannel", space, body).OK(t).Str("id")
					if i%10 == 0 {
						owner.Call(t, "createGrant", grantOf(ana.ID, "channel", id, "read")).OK(t)
					}
				}
			})
		}
		wait.Wait()
	}
	ana.Call(t, "listChannels", harness.Query{"limit": "1"}).OK(t) // Rights and places are in memory from here on.
	seen, cursor := 0, ""
	for page := 0; page == 0 || cursor != ""; page++ {
		query := harness.Query{"limit": "200"}
		if cursor != "" {
			query["cursor"] = cursor
		}
		var r *harness.Response
		list := asked.During("FROM channels", func() { r = ana.Call(t, "listChannels", query).OK(t) })
		if len(list) != 1 {
			t.Errorf("page %d took %d statements about channels:\n%s", page, len(list), strings.Join(list, "\n---\n"))
		}
		seen, cursor = seen+len(r.List("items")), r.Str("next_cursor")
	}
	if want := spaces*channels + 1; seen != want { // With the one of the setup.
		t.Errorf("%d channels are listed, want %d", seen, want)
	}
	if list := asked.During("grants", func() { ana.Call(t, "listChannels", harness.Query{"limit": "200"}).OK(t) }); len(list) > 0 {
		t.Errorf("a list asks about rights again: %s", list)
	}
}
