// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/chat"
	chatapp "github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

func TestAMessageIsNumberedStoredAndTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head := w.head()
	d := draft("hi @Bob, not `@anna`, see https://bothy.example/t/0199c2a0-0001-7000-8000-000000000001")
	out, err := w.messages.Create(w.as(w.anna), w.thread, d)
	if err != nil {
		t.Fatal(err)
	}
	m := out.Message
	want := "hi <@" + w.bob.String() + ">, not `@anna`, see https://bothy.example/t/0199c2a0-0001-7000-8000-000000000001"
	if m.Content != want || m.ThreadSeq != 1 || m.SpaceID != w.channel.SpaceID || m.HasBits != domain.HasLink|domain.HasCode|domain.HasMention || out.Repeated {
		t.Errorf("%+v", m)
	}
	stored, err := w.messages.Read(w.as(w.bob), m.ID)
	if err != nil || stored.Content != want || len(stored.Mentions) != 1 || stored.Mentions[0].Label != "Bob" || len(stored.Links.ThreadIDs) != 1 {
		t.Errorf("%+v, %v", stored, err)
	}
	if got := types(w.events(head)); !slices.Equal(got, []string{"message.created"}) {
		t.Errorf("events %v", got)
	}
	e := w.posted.created[0]
	if !slices.Equal(e.Mentioned, []ids.ID{w.bob}) || e.SpaceID != w.channel.SpaceID || e.TriggerRule != chat.TriggerMention || e.ThreadKind != chat.ThreadMain {
		t.Errorf("%+v", e)
	}
	w.checkLog()
}

// TestSendingTakesFewRoundTrips holds the cost of the busiest operation. The decision about
// rights and what subscribers do come on top; one round trip is left for the decision.
func TestSendingTakesFewRoundTrips(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(w.anna, "first, so that statements are prepared")
	reply := draft("second")
	reply.ReplyToID = w.send(w.anna, "target").ID
	for name, d := range map[string]app.Draft{"plain": draft("hello"), "a mention": draft("hello @bob"), "a reply": reply} {
		ctx, meter := pg.WithMeter(w.as(w.anna))
		if _, err := w.messages.Create(ctx, w.thread, d); err != nil {
			t.Fatal(err)
		}
		got := meter.Total()
		t.Logf("%s: %d statements in %d round trips", name, got.Statements, got.RoundTrips)
		if got.Statements > 11 || got.RoundTrips > 3 || meter.Units() != 1 {
			t.Errorf("%s: %d statements in %d round trips of %d units", name, got.Statements, got.RoundTrips, meter.Units())
		}
	}
}

func TestARepeatedSendIsOneMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := draft("once")
	first, err := w.messages.Create(w.as(w.anna), w.thread, d)
	if err != nil {
		t.Fatal(err)
	}
	head := w.head()
	again, err := w.messages.Create(w.as(w.anna), w.thread, d)
	if err != nil || !again.Repeated || again.Message.ID != first.Message.ID || w.head() != head {
		t.Errorf("%+v, %v", again, err)
	}
	other := d
	other.Content = "twice"
	if _, err := w.messages.Create(w.as(w.anna), w.thread, other); !errs.Is(err, errs.CodeIdempotencyKeyReuse) {
		t.Errorf("another body: %v", err)
	}
	if _, err := w.messages.Create(w.as(w.bob), w.thread, d); err != nil {
		t.Errorf("the key of another author: %v", err)
	}
	// A repetition meets neither the present rights to write nor an archived channel.
	if _, err := w.channels.Archive(w.as(w.anna), w.channel.ID, w.channel.Version); err != nil {
		t.Fatal(err)
	}
	w.rules.deny(authorize.ActionMessageCreate, errs.Forbidden("level_insufficient"))
	ctx, checks := authorize.WithCheckLog(w.as(w.anna))
	if again, err = w.messages.Create(ctx, w.thread, d); err != nil || !again.Repeated || !checks.Covers(authorize.ActionMessageCreate) {
		t.Errorf("in an archived channel: %v", err)
	}
	w.rules.deny(authorize.ActionMessageRead, errs.NotFound())
	if _, err := w.messages.Create(w.as(w.anna), w.thread, d); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("no longer readable: %v", err)
	}
}

func TestARepeatedSendShowsTheTombstone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := draft("gone")
	first, err := w.messages.Create(w.as(w.anna), w.thread, d)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.messages.Delete(w.as(w.anna), first.Message.ID, ""); err != nil {
		t.Fatal(err)
	}
	again, err := w.messages.Create(w.as(w.anna), w.thread, d)
	if err != nil || !again.Repeated || again.Message.Deleted == nil || again.Message.Content != "" {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestManyTwinsMakeOneMessage sends the same 50 times at once: the losers of the race meet
// the unique key and read the winner.
func TestManyTwinsMakeOneMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := draft("only one")
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh, seen := 0, map[ids.ID]bool{}
	for range 50 {
		wg.Go(func() {
			out, err := w.messages.Create(w.as(w.anna), w.thread, d)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			seen[out.Message.ID] = true
			if !out.Repeated {
				fresh++
			}
		})
	}
	wg.Wait()
	if fresh != 1 || len(seen) != 1 {
		t.Errorf("%d fresh, %d messages", fresh, len(seen))
	}
	if n := w.db.Count(t, "SELECT count(*) FROM event_log WHERE type = 'message.created'"); n != 1 {
		t.Errorf("%d events", n)
	}
	if n := w.db.Count(t, "SELECT last_thread_seq FROM threads WHERE id = $1", w.thread); n != 1 {
		t.Errorf("the thread is at %d", n)
	}
}

// TestOrderOfNumbersIsTheOrderOfTheLog lets many people write at once, some in vain.
func TestOrderOfNumbersIsTheOrderOfTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	veto := errors.New("a subscriber refuses")
	w.posted.react = func(_ context.Context, e messaging.MessagePosted) error {
		if e.SuppressTrigger {
			return veto
		}
		return nil
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			d := draft("hello")
			d.SuppressTrigger = i%7 == 6
			_, err := w.messages.Create(w.as([]ids.ID{w.anna, w.bob, w.agent}[i%3]), w.thread, d)
			if d.SuppressTrigger != errors.Is(err, veto) || err != nil && !d.SuppressTrigger {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seq := int64(0)
	for _, e := range w.events(0) {
		if e.Type != "message.created" {
			continue
		}
		seq++
		if n := w.db.Count(t, "SELECT thread_seq FROM messages WHERE id = $1", *e.Resource); n != seq {
			t.Fatalf("event %d tells number %d, want %d", e.Seq, n, seq)
		}
	}
	if seq != 43 {
		t.Errorf("%d messages", seq)
	}
	w.checkCounters()
}

func TestFaultsOfADraft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.newChannel(w.channel.SpaceID, "other")
	elsewhere, err := w.messages.Create(w.as(w.anna), other.MainThreadID, draft("elsewhere"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*app.Draft)
		want   string
	}{
		"empty":                      {func(d *app.Draft) { d.Content = " " }, "validation_failed(/content empty)"},
		"an answer to nothing":       {func(d *app.Draft) { d.ReplyToID = ids.New() }, "validation_failed(/reply_to_id unknown)"},
		"an answer to another place": {func(d *app.Draft) { d.ReplyToID = elsewhere.Message.ID }, "validation_failed(/reply_to_id unknown)"},
	} {
		d := draft("x")
		c.change(&d)
		if _, err := w.messages.Create(w.as(w.anna), w.thread, d); reasonOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.messages.Create(w.as(w.anna), ids.New(), draft("x")); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("an unknown thread: %v", err)
	}
	w.rules.deny(authorize.ActionMessageCreate, errs.NotFound())
	if _, err := w.messages.Create(w.as(w.anna), w.thread, draft("x")); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("a hidden thread: %v", err)
	}
}

func TestWarningsGoToTheAuthor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rules.give(w.bob, authorize.Standing{})
	out, err := w.messages.Create(w.as(w.anna), w.thread, draft("@bob @gone @here @nobody"))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, warning := range out.Warnings {
		got = append(got, warning.Code+" "+warning.Label)
	}
	slices.Sort(got)
	want := []string{"broadcast_not_allowed @here", "mention_no_access Bob", "mention_unknown gone", "mention_unknown nobody"}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestChannelsOfTheSpaceAreNamedByID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.newChannel(w.channel.SpaceID, "Plans")
	m := w.send(w.anna, "see #plans.")
	if want := "see <#" + other.ID.String() + ">."; m.Content != want || !slices.Equal(m.Links.ChannelIDs, []ids.ID{other.ID}) || m.Plain != "see #plans." {
		t.Errorf("%+v", m)
	}
	w.rules.deny(authorize.ActionChannelRead, errs.NotFound())
	if m := w.send(w.anna, "see #plans."); m.Content != "see #plans." || len(m.Links.ChannelIDs) != 0 {
		t.Errorf("a hidden channel: %+v", m)
	}
}

func TestBroadcastsNeedTheRightAndHaveALimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rules.give(w.anna, authorize.Standing{Reads: true, Broadcasts: true})
	for i, want := range []string{"<@here> a", "<@here> a", "@here a"} {
		out, err := w.messages.Create(w.as(w.anna), w.thread, draft("@here a"))
		if err != nil || out.Message.Content != want || (i == 2) != (len(out.Warnings) == 1 && out.Warnings[0].Code == domain.WarnBroadcastLimited) {
			t.Errorf("%d: %q %v %v", i, out.Message.Content, out.Warnings, err)
		}
	}
	w.clock.Advance(2 * time.Hour)
	if out, err := w.messages.Create(w.as(w.anna), w.thread, draft("@everyone")); err != nil || out.Message.Content != "<@channel>" {
		t.Errorf("an hour later: %q %v", out.Message.Content, err)
	}
	w.checkLog()
}

func TestSlowModeHoldsPeopleBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seconds := 60
	if _, err := w.channels.Update(w.as(w.anna), w.channel.ID, w.channel.Version, chatapp.ChannelPatch{SlowModeSeconds: &seconds}); err != nil {
		t.Fatal(err)
	}
	w.send(w.bob, "first")
	_, err := w.messages.Create(w.as(w.bob), w.thread, draft("second"))
	if reasonOf(err) != "rate_limited(slow_mode)" || errs.As(err).RetryAfter != time.Minute {
		t.Errorf("%v", err)
	}
	w.send(w.agent, "agents are not held back")
	w.send(w.agent, "nor twice")
	w.rules.give(w.anna, authorize.Standing{Reads: true, Moderates: true})
	w.send(w.anna, "nor who keeps order")
	w.send(w.anna, "nor twice")
	w.clock.Advance(time.Minute)
	w.send(w.bob, "second")
}

func TestSubscribersAddToTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.posted.react = func(ctx context.Context, e messaging.MessagePosted) error {
		if e.Message.Author.Kind != actor.KindPerson {
			return nil
		}
		return w.port.SetTriggerState(ctx, e.Message.ID, messaging.TriggerDenied, []messaging.TriggerOutcome{{AgentID: w.agent, Outcome: "denied", Reason: "agent_offline"}})
	}
	head := w.head()
	out, err := w.messages.Create(w.as(w.anna), w.thread, draft("@builder go"))
	if err != nil || out.Message.TriggerState != "denied" || out.Message.Version != 2 || len(out.Message.Triggers) != 1 {
		t.Fatalf("%+v, %v", out.Message, err)
	}
	if got := types(w.events(head)); !slices.Equal(got, []string{"message.created", "message.updated"}) {
		t.Errorf("events %v", got)
	}
	stored, err := w.messages.Read(w.as(w.anna), out.Message.ID)
	if err != nil || stored.Version != 2 || stored.Triggers[0].Reason != "agent_offline" {
		t.Errorf("%+v, %v", stored, err)
	}
	err = w.units.Do(w.as(w.agent), func(ctx context.Context) error {
		return w.port.SetTriggerState(ctx, out.Message.ID, messaging.TriggerTriggered, []messaging.TriggerOutcome{{AgentID: w.agent, Outcome: "triggered", RunID: ids.New()}})
	})
	if stored, err2 := w.messages.Read(w.as(w.anna), out.Message.ID); err != nil || err2 != nil || stored.Version != 3 || stored.TriggerState != "triggered" {
		t.Errorf("%+v, %v %v", stored, err, err2)
	}
	w.checkLog()
}

func TestAnchorsAndAnswersOfRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := ids.New()
	var anchor, answer messaging.Message
	err := w.units.Do(w.as(w.agent), func(ctx context.Context) error {
		var err error
		if anchor, err = w.port.Anchor(ctx, w.thread, run, w.agent); err != nil {
			return err
		}
		answer, err = w.port.Create(ctx, messaging.NewMessage{
			ThreadID: w.thread, Author: messaging.Author{Kind: actor.KindAgent, ID: w.agent}, Content: "done, @bob", RunID: run,
		})
		return err
	})
	if err != nil || anchor.Kind != messaging.KindRun || anchor.ThreadSeq != 1 || answer.ThreadSeq != 2 || answer.RunID != run {
		t.Fatalf("%+v %+v %v", anchor, answer, err)
	}
	if len(w.posted.created) != 1 || !slices.Equal(w.posted.created[0].Mentioned, []ids.ID{w.bob}) {
		t.Errorf("posted %+v", w.posted.created)
	}
	unread, err := w.port.UnreadCounts(w.as(w.bob), w.bob, []messaging.UnreadQuery{{ThreadID: w.thread}}, 100)
	if err != nil || unread[w.thread] != (messaging.Unread{Count: 1, Mentions: 1}) {
		t.Errorf("unread %+v, %v", unread, err)
	}
	err = w.units.Do(w.as(w.agent), func(ctx context.Context) error {
		_, err := w.port.Anchor(ctx, w.thread, run, w.agent)
		return err
	})
	if pg.Constraint(err) != "messages_anchor_key" {
		t.Errorf("a second anchor: %v", err)
	}
	newest, err := w.port.Newest(w.as(w.agent), w.thread, 0, 10)
	if err != nil || len(newest) != 2 || newest[1].ID != answer.ID {
		t.Errorf("newest %v, %v", newest, err)
	}
	w.checkLog()
	w.checkCounters()
}

// TestAnOrderIsAnsweredWhereItWasGiven holds an agent under an order to the thread of its run
// and to side threads that the run began.
func TestAnOrderIsAnsweredWhereItWasGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.newChannel(w.channel.SpaceID, "other")
	elsewhere := w.send(w.anna, "shall we?")
	theirs, err := w.messages.CreateThread(w.as(w.bob), app.NewThread{ChannelID: w.channel.ID, ParentID: elsewhere.ID, Message: draft("yes")})
	if err != nil {
		t.Fatal(err)
	}
	under := func(run ids.ID) context.Context {
		return actor.With(context.Background(), actor.Actor{ID: w.agent, Kind: actor.KindAgent, ActingFor: &actor.ActingFor{
			PrincipalID: w.anna, RunID: run, ThreadID: w.thread, ChannelID: w.channel.ID,
		}})
	}
	run := ids.New()
	ctx := under(run)
	if out, err := w.messages.Create(ctx, w.thread, draft("the answer")); err != nil || out.Message.RunID != run {
		t.Errorf("in the thread of the run: %+v, %v", out.Message, err)
	}
	own, err := w.messages.CreateThread(ctx, app.NewThread{ChannelID: w.channel.ID, Title: "Details", Message: draft("more")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.messages.Create(ctx, own.Message.ThreadID, draft("and more")); err != nil {
		t.Errorf("in a thread of the run: %v", err)
	}
	refused := map[string]func() error{
		"another channel": func() error { _, err := w.messages.Create(ctx, other.MainThreadID, draft("x")); return err },
		"another thread":  func() error { _, err := w.messages.Create(ctx, theirs.Message.ThreadID, draft("x")); return err },
		"a thread of another run": func() error {
			_, err := w.messages.Create(under(ids.New()), own.Message.ThreadID, draft("x"))
			return err
		},
		"a new thread elsewhere": func() error {
			_, err := w.messages.CreateThread(ctx, app.NewThread{ChannelID: other.ID, Title: "x", Message: draft("x")})
			return err
		},
		"a thread that is there": func() error {
			_, err := w.messages.CreateThread(ctx, app.NewThread{ChannelID: w.channel.ID, ParentID: elsewhere.ID, Message: draft("x")})
			return err
		},
	}
	for name, try := range refused {
		if err := try(); reasonOf(err) != "forbidden(acting_for_limited)" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnreadIsCountedUpToTheCap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 5 {
		w.send(w.anna, "@bob hello")
	}
	w.send(w.bob, "my own do not count")
	w.send(w.anna, "@_bob silently")
	for _, c := range []struct {
		above int64
		limit int
		want  messaging.Unread
	}{
		{0, 100, messaging.Unread{Count: 6, Mentions: 5}}, {0, 3, messaging.Unread{Count: 3, Capped: true, Mentions: 3}},
		{3, 100, messaging.Unread{Count: 3, Mentions: 2}}, {7, 100, messaging.Unread{}},
	} {
		got, err := w.port.UnreadCounts(w.as(w.bob), w.bob, []messaging.UnreadQuery{{ThreadID: w.thread, Above: c.above}}, c.limit)
		if err != nil || got[w.thread] != c.want {
			t.Errorf("above %d, cap %d: %+v, %v", c.above, c.limit, got, err)
		}
	}
}
