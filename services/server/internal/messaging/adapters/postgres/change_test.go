// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// checkCounters compares what the threads count with a recount.
func (w *world) checkCounters() {
	w.t.Helper()
	wrong := w.db.Count(w.t, `
		SELECT count(*) FROM threads t
		  LEFT JOIN LATERAL (
		      SELECT count(*) AS numbered, coalesce(max(m.thread_seq), 0) AS last,
		             count(*) FILTER (WHERE m.kind = 'message' AND m.deleted_at IS NULL) AS messages,
		             coalesce(max(m.thread_seq) FILTER (WHERE m.kind = 'message' AND m.deleted_at IS NULL AND NOT m.imported), 0) AS countable
		        FROM messages m WHERE m.thread_id = t.id) r ON true
		 WHERE (t.last_thread_seq, t.message_count, t.last_countable_seq) IS DISTINCT FROM (r.last, r.messages, r.countable) OR r.numbered <> r.last`)
	if wrong != 0 {
		w.t.Errorf("%d threads count wrongly", wrong)
	}
}

func TestAnEditKeepsTheOldTextAndTakesItOutOfTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.send(w.anna, "the SECRET of @bob")
	out, err := w.messages.Update(w.as(w.anna), m.ID, m.Version, "nothing, @builder")
	if err != nil {
		t.Fatal(err)
	}
	e := out.Message
	if e.Revision != 2 || e.Version != 2 || e.EditedAt == nil || !slices.Equal(domain.Wakes(e.Mentions), []ids.ID{w.agent}) {
		t.Errorf("%+v", e)
	}
	if n := w.db.Count(t, "SELECT count(*) FROM event_log WHERE payload::text LIKE '%SECRET%'"); n != 0 {
		t.Errorf("the log tells the old text %d times", n)
	}
	if n := w.db.Count(t, "SELECT count(*) FROM message_revisions WHERE message_id = $1 AND revision = 1 AND content LIKE '%SECRET%'", m.ID); n != 1 {
		t.Error("the old text is not a revision")
	}
	if got := w.posted.edited; len(got) != 1 || !slices.Equal(got[0].Added, []ids.ID{w.agent}) {
		t.Errorf("%+v", got)
	}
	// Naming bob again is nothing new to him.
	if out, err = w.messages.Update(w.as(w.anna), m.ID, 2, "@bob again"); err != nil || len(w.posted.edited[1].Added) != 0 {
		t.Errorf("%+v, %v", w.posted.edited[1], err)
	}
	if got, err := w.messages.Read(w.as(w.anna), m.ID); err != nil || !slices.Equal(domain.Wakes(got.Mentions), []ids.ID{w.bob}) {
		t.Errorf("%+v, %v", got.Mentions, err)
	}
	w.checkLog()
	w.checkCounters()
	_ = out
}

func TestAnEditNamesTheVersionItWasMadeFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.send(w.anna, "a")
	head := w.head()
	if out, err := w.messages.Update(w.as(w.anna), m.ID, 1, "a"); err != nil || out.Message.Revision != 1 || w.head() != head {
		t.Errorf("the same text: %+v %v", out.Message, err)
	}
	if _, err := w.messages.Update(w.as(w.anna), m.ID, 1, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.messages.Update(w.as(w.anna), m.ID, 1, "c"); !errs.Is(err, errs.CodeVersionConflict) {
		t.Errorf("an old version: %v", err)
	}
	if _, err := w.messages.Update(w.as(w.bob), m.ID, 2, "c"); reasonOf(err) != "forbidden(not_author)" {
		t.Errorf("another author: %v", err)
	}
	if _, err := w.messages.Update(w.as(w.bob), ids.New(), 2, "c"); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("a stranger: %v", err)
	}
}

func TestOldRevisionsAreDroppedButTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.send(w.anna, "1")
	for i := range 6 {
		if _, err := w.messages.Update(w.as(w.anna), m.ID, int64(i)+1, fmt.Sprint(i+2)); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.db.Count(t, "SELECT count(*) FROM message_revisions WHERE message_id = $1 AND (revision = 1 OR revision >= 5)", m.ID); n != 3 {
		t.Errorf("%d of the kept revisions", n)
	}
	if n := w.db.Count(t, "SELECT count(*) FROM message_revisions WHERE message_id = $1", m.ID); n != 3 {
		t.Errorf("%d revisions", n)
	}
}

// TestADeletedTextIsNowhere scans every column of every table for the text.
func TestADeletedTextIsNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.send(w.bob, "before")
	m := w.send(w.anna, "MARKER one @bob")
	if _, err := w.messages.Update(w.as(w.anna), m.ID, 1, "MARKER two"); err != nil {
		t.Fatal(err)
	}
	if err := w.messages.Delete(w.as(w.anna), m.ID, ""); err != nil {
		t.Fatal(err)
	}
	if err := w.messages.Delete(w.as(w.anna), m.ID, ""); err != nil {
		t.Errorf("deleting again: %v", err)
	}
	rows, err := w.db.Pool.Query(context.Background(), "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	for _, name := range tables {
		if n := w.db.Count(t, "SELECT count(*) FROM "+name+" x WHERE x::text LIKE '%MARKER%'"); n != 0 {
			t.Errorf("%s still tells the text", name)
		}
	}
	if _, err := w.messages.Read(w.as(w.anna), m.ID); !errs.Is(err, errs.CodeMessageDeleted) {
		t.Errorf("reading it: %v", err)
	}
	if _, err := w.messages.Update(w.as(w.anna), m.ID, 3, "back"); !errs.Is(err, errs.CodeMessageDeleted) {
		t.Errorf("editing it: %v", err)
	}
	page, err := w.messages.List(w.as(w.anna), app.PageQuery{ThreadID: w.thread, Limit: 10})
	if err != nil || len(page.Items) != 2 || page.Items[1].Deleted == nil || page.Items[1].ThreadSeq != 2 || page.Counters.LastCountableSeq != before.ThreadSeq {
		t.Errorf("%+v, %v", page, err)
	}
	events := w.events(0)
	if last := events[len(events)-1]; last.Type != "message.deleted" || len(w.posted.deleted) != 1 {
		t.Errorf("%s, %d", last.Type, len(w.posted.deleted))
	}
	w.checkLog()
	w.checkCounters()
}

func TestAModeratorDeletesWithAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.send(w.anna, "rude")
	if err := w.messages.Delete(w.as(w.bob), m.ID, "rude"); err != nil {
		t.Fatal(err)
	}
	if n := w.db.Count(t, "SELECT count(*) FROM messages WHERE delete_kind = 'moderator' AND delete_reason = 'rude' AND deleted_by = $1", w.bob); n != 1 {
		t.Error("the deletion is not noted")
	}
}

func TestDeletingStaysPossibleInAnArchivedChannel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.send(w.anna, "a")
	if _, err := w.channels.Archive(w.as(w.anna), w.channel.ID, w.channel.Version); err != nil {
		t.Fatal(err)
	}
	if _, err := w.messages.Update(w.as(w.anna), m.ID, 1, "b"); reasonOf(err) != "forbidden(target_archived)" {
		t.Errorf("edit: %v", err)
	}
	if _, err := w.messages.Create(w.as(w.anna), w.thread, draft("b")); reasonOf(err) != "forbidden(target_archived)" {
		t.Errorf("create: %v", err)
	}
	if err := w.messages.Delete(w.as(w.anna), m.ID, ""); err != nil {
		t.Errorf("delete: %v", err)
	}
}

// TestEditAgainstDelete races the two: whatever comes first, no text comes back.
func TestEditAgainstDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 15 {
		m := w.send(w.anna, "text")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := w.messages.Update(w.as(w.anna), m.ID, 1, "changed MARKER"); err != nil && !errs.Is(err, errs.CodeMessageDeleted) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := w.messages.Delete(w.as(w.anna), m.ID, ""); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		var last string
		for _, e := range w.events(0) {
			if e.Resource != nil && *e.Resource == m.ID {
				last = e.Type
			}
		}
		if last != "message.deleted" {
			t.Fatalf("the last event is %s", last)
		}
	}
	if n := w.db.Count(t, "SELECT (SELECT count(*) FROM messages WHERE content <> '') + (SELECT count(*) FROM message_revisions) + (SELECT count(*) FROM event_log WHERE payload::text LIKE '%MARKER%')"); n != 0 {
		t.Errorf("%d places still tell a text", n)
	}
	w.checkCounters()
}

// TestCountersEqualARecount does random things to two threads.
func TestCountersEqualARecount(t *testing.T) {
	w := newWorld(t)
	side, err := w.messages.CreateThread(w.as(w.anna), app.NewThread{ChannelID: w.channel.ID, Title: "Side", Message: draft("begin")})
	if err != nil {
		t.Fatal(err)
	}
	known := []domain.Message{side.Message}
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			who := rapid.SampledFrom([]ids.ID{w.anna, w.bob, w.agent}).Draw(rt, "who")
			thread := rapid.SampledFrom([]ids.ID{w.thread, side.Message.ThreadID}).Draw(rt, "thread")
			m := rapid.SampledFrom(known).Draw(rt, "message")
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0, 1:
				out, err := w.messages.Create(w.as(who), thread, draft("hello"))
				if err != nil {
					rt.Fatal(err)
				}
				known = append(known, out.Message)
			case 2:
				if err := w.messages.Delete(w.as(who), m.ID, ""); err != nil {
					rt.Fatal(err)
				}
			case 3:
				_, err := w.messages.Update(w.as(m.AuthorID), m.ID, m.Version, "edited")
				if err != nil && !errs.Is(err, errs.CodeMessageDeleted) && !errs.Is(err, errs.CodeVersionConflict) && !errs.Is(err, errs.CodeConflict) {
					rt.Fatal(err)
				}
			case 4:
				err := w.units.Do(w.as(w.agent), func(ctx context.Context) error {
					anchor, err := w.port.Anchor(ctx, thread, ids.New(), w.agent)
					known = append(known, domain.Message{ID: anchor.ID, AuthorID: w.agent, Version: 1})
					return err
				})
				if err != nil {
					rt.Fatal(err)
				}
			}
		}
		w.checkCounters()
		if t.Failed() {
			rt.FailNow()
		}
	})
	w.checkLog()
}

func TestPagesOfAThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []domain.Message
	for i := range 10 {
		d := draft(fmt.Sprint(i + 1))
		if i == 9 {
			d.ReplyToID = all[0].ID
		}
		out, err := w.messages.Create(w.as(w.anna), w.thread, d)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out.Message)
	}
	number := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		q             app.PageQuery
		want          string
		before, after bool
	}{
		"newest":             {app.PageQuery{Limit: 3}, "8 9 10", true, false},
		"everything":         {app.PageQuery{Limit: 50}, "1 2 3 4 5 6 7 8 9 10", false, false},
		"before":             {app.PageQuery{Before: number(4), Limit: 2}, "2 3", true, true},
		"before the first":   {app.PageQuery{Before: number(1), Limit: 2}, "", false, true},
		"after":              {app.PageQuery{After: number(8), Limit: 5}, "9 10", true, false},
		"after the last":     {app.PageQuery{After: number(10), Limit: 5}, "", true, false},
		"around a number":    {app.PageQuery{AroundSeq: number(5), Limit: 4}, "3 4 5 6", true, true},
		"around a message":   {app.PageQuery{AroundID: all[4].ID, Limit: 3}, "4 5 6", true, true},
		"around the first":   {app.PageQuery{AroundSeq: number(1), Limit: 4}, "1 2 3 4", false, true},
		"from the beginning": {app.PageQuery{After: number(0), Limit: 2}, "1 2", false, true},
	} {
		c.q.ThreadID = w.thread
		page, err := w.messages.List(w.as(w.bob), c.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, m := range page.Items {
			got = append(got, m.Content)
		}
		if strings.Join(got, " ") != c.want || page.HasBefore != c.before || page.HasAfter != c.after {
			t.Errorf("%s: %v, before %v, after %v", name, got, page.HasBefore, page.HasAfter)
		}
		if name == "newest" && (len(page.Referenced) != 1 || page.Referenced[0].ID != all[0].ID || page.Items[2].ReplyTo.ThreadSeq != 1) {
			t.Errorf("answered messages %+v", page.Referenced)
		}
	}
	if _, err := w.messages.List(w.as(w.bob), app.PageQuery{ThreadID: w.thread, AroundID: ids.New(), Limit: 3}); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("around a stranger: %v", err)
	}
	both := rest.ListMessagesRequestObject{ThreadID: w.thread, Params: rest.ListMessagesParams{Before: number(1), After: number(2)}}
	if _, err := w.handlers.ListMessages(w.as(w.bob), both); !errs.Is(err, errs.CodeValidationFailed) {
		t.Errorf("two positions: %v", err)
	}
}

func TestASideThreadBeginsAtAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parent := w.send(w.anna, "shall we?")
	head := w.head()
	n := app.NewThread{ChannelID: w.channel.ID, ParentID: parent.ID, Message: draft("> no\n\n**Yes**, let us do all of this at once")}
	out, err := w.messages.CreateThread(w.as(w.bob), n)
	if err != nil || !out.Created || !strings.Contains(string(out.Thread), `"title":"Yes, let us do all o"`) {
		t.Fatalf("%s, %v", out.Thread, err)
	}
	if got := types(w.events(head)); !slices.Equal(got, []string{"thread.created", "message.created", "message.updated"}) {
		t.Errorf("events %v", got)
	}
	read, err := w.messages.Read(w.as(w.anna), parent.ID)
	if err != nil || read.StartedThreadID != out.Message.ThreadID || read.Version != 2 || read.Revision != 1 {
		t.Errorf("%+v, %v", read, err)
	}
	again, err := w.messages.CreateThread(w.as(w.bob), n)
	if err != nil || again.Created || !again.Repeated || again.Message.ID != out.Message.ID {
		t.Errorf("a repetition: %+v, %v", again, err)
	}
	meet, err := w.messages.CreateThread(w.as(w.anna), app.NewThread{ChannelID: w.channel.ID, ParentID: parent.ID, Message: draft("me too")})
	if err != nil || meet.Created || meet.Message.ThreadID != out.Message.ThreadID || meet.Message.ThreadSeq != 2 {
		t.Errorf("a second thread: %+v, %v", meet, err)
	}
	deeper := app.NewThread{ChannelID: w.channel.ID, ParentID: out.Message.ID, Message: draft("deeper")}
	if _, err := w.messages.CreateThread(w.as(w.anna), deeper); reasonOf(err) != "conflict(thread_depth)" {
		t.Errorf("a thread in a thread: %v", err)
	}
	w.checkLog()
	w.checkCounters()
}

func TestFaultsOfANewThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.newChannel(w.channel.SpaceID, "other")
	parent := w.send(w.anna, "a")
	gone := w.send(w.anna, "b")
	if err := w.messages.Delete(w.as(w.anna), gone.ID, ""); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		n    app.NewThread
		want string
	}{
		"no title":        {app.NewThread{ChannelID: w.channel.ID, Message: draft("x")}, "validation_failed(/title required)"},
		"an empty text":   {app.NewThread{ChannelID: w.channel.ID, Title: "t", Message: draft(" ")}, "validation_failed(/message/content empty)"},
		"a long title":    {app.NewThread{ChannelID: w.channel.ID, Title: strings.Repeat("x", 121), Message: draft("x")}, "validation_failed(/title too_long)"},
		"a stranger":      {app.NewThread{ChannelID: w.channel.ID, ParentID: ids.New(), Message: draft("x")}, "validation_failed(/parent_message_id unknown)"},
		"another channel": {app.NewThread{ChannelID: other.ID, ParentID: parent.ID, Message: draft("x")}, "validation_failed(/parent_message_id unknown)"},
		"a deleted one":   {app.NewThread{ChannelID: w.channel.ID, ParentID: gone.ID, Message: draft("x")}, "message_deleted"},
		"no channel":      {app.NewThread{ChannelID: ids.New(), Title: "t", Message: draft("x")}, "not_found"},
	} {
		if _, err := w.messages.CreateThread(w.as(w.anna), c.n); reasonOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTwoPeopleBeginTheSameThread presses the button many times at once.
func TestTwoPeopleBeginTheSameThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parent := w.send(w.anna, "shall we?")
	var wg sync.WaitGroup
	var mu sync.Mutex
	created, threads := 0, map[ids.ID]bool{}
	for i := range 10 {
		wg.Go(func() {
			out, err := w.messages.CreateThread(w.as([]ids.ID{w.anna, w.bob}[i%2]), app.NewThread{
				ChannelID: w.channel.ID, ParentID: parent.ID, Message: draft(fmt.Sprint("message ", i)),
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			threads[out.Message.ThreadID] = true
			if out.Created {
				created++
			}
		})
	}
	wg.Wait()
	if created != 1 || len(threads) != 1 {
		t.Errorf("%d created, %d threads", created, len(threads))
	}
	list, err := w.threads.UnreadCandidates(w.as(w.anna), []ids.ID{w.channel.ID})
	counts := map[string]int64{}
	for _, thread := range list {
		counts[thread.Kind] = thread.Counters.MessageCount
	}
	if err != nil || len(list) != 2 || counts[chat.ThreadMain] != 1 || counts[chat.ThreadSide] != 10 {
		t.Errorf("%+v, %v", list, err)
	}
	w.checkCounters()
}
