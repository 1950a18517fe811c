// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/harness"
)

func number(n int64) string { return strconv.FormatInt(n, 10) }

func TestASnapshotAndTheEventsBehindIt(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	place := s.Space(t, "write", ana)
	first := ana.Call(t, "getSnapshot").OK(t)
	if n := len(first.List("sections.spaces")); n != 2 || first.Str("sections.spaces.1.space.id") != place.Space {
		t.Errorf("%d spaces in the snapshot: %v", n, first.At("sections.spaces"))
	}
	ana.Call(t, "getSnapshot", harness.Query{"sections": "spaces,channels", "targets": "space:" + place.Space}).OK(t)
	said := ana.Say(t, place.Thread, "after the snapshot")
	head, epoch := first.Int("head_seq"), first.Str("sync_epoch")
	harness.Eventually(t, "the event is listed", func() bool {
		events := ana.Call(t, "listSyncEvents", harness.Query{"after": number(head), "sync_epoch": epoch, "limit": "10"}).OK(t)
		return events.Str("events.0.data.message.id") == said.Str("id")
	})
	refuse(t,
		refusal{"bad cursor", ana, "getSnapshot", with(harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"bad section", ana, "getSnapshot", with(harness.Query{"sections": "moon"}), "validation_failed", ""},
		refusal{"no position", ana, "listSyncEvents", with(harness.Query{"sync_epoch": epoch}), "validation_failed", ""},
		refusal{"other epoch", ana, "listSyncEvents", with(harness.Query{"after": "0", "sync_epoch": harness.NewID()}), "resync_required", "epoch"},
		refusal{"future", ana, "listSyncEvents", with(harness.Query{"after": "99999999", "sync_epoch": epoch}), "resync_required", "future"},
	)
}

// block holds a table until the returned function is called.
func block(t *testing.T, s *harness.Server, table string) (release func()) {
	t.Helper()
	conn, err := s.DB.Pool.Acquire(context.Background())
	harness.Must(t, err)
	_, err = conn.Exec(context.Background(), "BEGIN; LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
	harness.Must(t, err)
	return func() {
		_, err := conn.Exec(context.Background(), "ROLLBACK")
		conn.Release()
		harness.Must(t, err)
	}
}

func waiting(t *testing.T, s *harness.Server) bool {
	return s.DB.Count(t, "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE NOT l.granted AND d.datname = current_database()") > 0
}

func TestSnapshotsWaitForEachOtherOnlySoLong(t *testing.T) {
	s := harness.Start(t, harness.WithKeys(map[string]string{"sync.snapshot_max_concurrent": "1", "sync.snapshot_page_items": "50"}))
	owner := s.Owner(t)
	for range 60 {
		owner.Call(t, "createUser", harness.Body{"handle": s.Unique("crew"), "display_name": s.Unique("Crew")}).OK(t)
	}
	page := owner.Call(t, "getSnapshot").OK(t)
	if page.Str("next_cursor") == "" {
		t.Fatalf("all in one page: %s", page.Body)
	}
	release := block(t, s, "spaces")
	first, second := make(chan *harness.Response, 1), make(chan *harness.Response, 1)
	go func() { first <- owner.Call(t, "getSnapshot") }()
	harness.Eventually(t, "the first snapshot holds the slot", func() bool { return waiting(t, s) })
	go func() { second <- owner.Call(t, "getSnapshot") }()
	var refused *harness.Response
	harness.Eventually(t, "the second gives up", func() bool {
		select {
		case refused = <-second:
			return true
		default:
			s.Clock.Advance(2 * time.Second)
			return false
		}
	})
	release()
	refused.Refused(t, "unavailable")
	if refused.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	<-first
	owner.Call(t, "getSnapshot", harness.Query{"cursor": page.Str("next_cursor")}).OK(t)
	// The log begins anew, as after a restore.
	s.DB.Exec(t, "UPDATE instance SET sync_epoch = gen_random_uuid()")
	owner.Call(t, "getSnapshot", harness.Query{"cursor": page.Str("next_cursor")}).Refused(t, "resync_required")
}

func TestReadPositionsMoveForward(t *testing.T) {
	s := shared.Use(t)
	ana, bob, out := s.Person(t, "ana"), s.Person(t, "bob"), s.Person(t, "out")
	place := s.Space(t, "write", ana, bob)
	watching := ana.Connect(t)
	ana.Call(t, "getSnapshot").OK(t)
	for _, text := range []string{"one", "two", "three"} {
		bob.Say(t, place.Thread, text)
	}
	read := ana.Call(t, "updateReadState", place.Thread, harness.Body{"last_read_thread_seq": 2}).OK(t)
	if read.Int("last_read_thread_seq") != 2 || read.Int("unread_count") != 1 {
		t.Errorf("read state: %s", read.Body)
	}
	watching.Event(t, "read_state.updated", func(e harness.Event) bool { return e.Int("data.read_states.0.last_read_thread_seq") == 2 })
	if back := ana.Call(t, "updateReadState", place.Thread, harness.Body{"last_read_thread_seq": 1}).OK(t); back.Int("last_read_thread_seq") != 2 {
		t.Errorf("the position moved back: %s", back.Body)
	}
	unread := ana.Call(t, "markThreadUnread", place.Thread, harness.Body{"from_thread_seq": 1}).Is(t, http.StatusOK)
	if unread.Int("manually_unread_from") != 1 {
		t.Errorf("read state: %s", unread.Body)
	}
	refuse(t,
		refusal{"hidden", out, "updateReadState", with(place.Thread, harness.Body{"last_read_thread_seq": 1}), "not_found", ""},
		refusal{"hidden", out, "markThreadUnread", with(place.Thread, harness.Body{"from_thread_seq": 1}), "not_found", ""},
		refusal{"beyond", ana, "markThreadUnread", with(place.Thread, harness.Body{"from_thread_seq": 9}), "validation_failed", ""},
	)
}

func TestWritingReadsTheThreadWithoutAnEventOfItsOwn(t *testing.T) {
	s := shared.Use(t)
	ana, bob := s.Person(t, "ana"), s.Person(t, "bob")
	place := s.Space(t, "write", ana, bob)
	other := newMirror(t, ana)
	device := ana.Connect(t)
	bob.Say(t, place.Thread, "one")
	ana.Call(t, "markThreadUnread", place.Thread, harness.Body{"from_thread_seq": 1}).OK(t)
	ana.Say(t, place.Thread, "two")
	bob.Say(t, place.Thread, "three")
	device.Event(t, "message.created", func(e harness.Event) bool { return e.Int("data.message.thread_seq") == 3 })
	other.follow(t, device)
	fresh := newMirror(t, ana)
	if diff := other.differences(fresh); len(diff) > 0 {
		t.Errorf("after the events: %v", diff)
	}
	state := fresh.things["read_states"][place.Thread].value
	if state["last_read_thread_seq"] != 2.0 || state["unread_count"] != 1.0 || state["manually_unread_from"] != nil {
		t.Errorf("read state: %v", state)
	}
	if known := other.things["read_states"][place.Thread].value; known["version"] != state["version"] || known["updated_at"] != state["updated_at"] {
		t.Errorf("derived %v, stored %v", known, state)
	}
	updates := 0
	for _, e := range device.Events() {
		if e.Type == "read_state.updated" {
			updates++
		}
	}
	if updates != 1 {
		t.Errorf("%d events about the position, want the one of the manual mark", updates)
	}
}
